"""Rows of the matrix in their small sizes: some in every test run, all with --every-store."""

import sys
from pathlib import Path
from typing import Final

import pytest

from faults.bed import Bed
from faults.row import Row, run
from faults.rows import ROWS

# killed at each call; scripts flushed; one id at once; hostile names; random calls of every verb
OFTEN: Final = {3, 9, 16, 26, 29}
SMALL: Final = [
    pytest.param(
        row,
        id=str(row),
        marks=() if row.number in OFTEN else pytest.mark.seldom,
    )
    for row in ROWS
    if row.small is not None
]


@pytest.mark.parametrize("row", SMALL)
def test_what_is_promised_holds_under_the_fault(row: Row, tmp_path: Path) -> None:
    outcome = run(row, tmp_path, small=True)
    sys.stdout.write(f"seed {outcome.seed}: {outcome.figures}\n{outcome.logs}\n")
    if outcome.failure:
        pytest.fail(outcome.failure, pytrace=False)
    if outcome.not_run:
        pytest.skip(outcome.not_run)


def test_the_failures_of_tasks_are_named(tmp_path: Path) -> None:
    async def fail(_: Bed) -> dict[str, int]:
        raise ExceptionGroup("tasks", [ValueError("a"), ExceptionGroup("more", [KeyError("b")])])

    outcome = run(Row(99, fail), tmp_path, small=True)
    assert outcome.failure == "ValueError: a; KeyError: 'b'"
    assert "in fail" in outcome.logs
