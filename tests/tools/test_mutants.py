"""The deliberate faults of tests/mutants.py have their places in the code: one whose text is gone proves nothing."""

import pytest

from tests.mutants import MUTANTS, PACKAGE, Mutant
from tests.processes import REPOSITORY


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.why)
def test_a_fault_has_its_place_and_tests(mutant: Mutant) -> None:
    text = (REPOSITORY / PACKAGE / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    for name in mutant.tests.split():
        assert (REPOSITORY / name).exists()
