"""The random attack finds what is broken: a fault planted in a script, in a copy of the program, does not pass."""

import asyncio
import shutil
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from faults.bed import Bed
from faults.scenarios.random_operations import random_operations
from tests.processes import REPOSITORY

SECONDS: Final = 120.0  # it stops as soon as something is found
SCRIPTS: Final = "delayqueue/store/scripts"

OFTEN: Final = "a job that ends keeps its place"  # who finds this finds the others, too

# a script, words in it and their replacement, and words of the finding
FAULTS: Final = {
    "a job that ends keeps its place": (
        "_job.lua",
        "  leave(id, job)\n  groups.let_pass(id, job)",
        "  groups.let_pass(id, job)",
        "without a job of that topic|ghosts",
    ),
    "a job is ready before it is due": (
        "push.lua",
        "return job.due > now or",
        "return job.due > now + 400 or",
        "could be|must not answer so",
    ),
    "a stale receipt is as good as the right one": (
        "_job.lua",
        "return run.receipt == receipt and",
        "return",
        "must not answer so",
    ),
    "a push that must keep the job replaces it": (
        "push.lua",
        "if_exists == 'keep' and",
        "if_exists == 'never' and",
        "could be|must not answer so",
    ),
    "a kick takes a reserved job, too": (
        "_kick.lua",
        "if not wanted[state_of(id, job)] then",
        "if false then",
        "has the nonce|could be|must not answer so",
    ),
}


@pytest.mark.parametrize(
    ("script", "words", "instead", "found"),
    [
        pytest.param(*each, id=name, marks=() if name == OFTEN else pytest.mark.seldom)
        for name, each in FAULTS.items()
    ],
)
def test_a_fault_planted_in_a_script_is_found(
    tmp_path: Path, script: str, words: str, instead: str, found: str
) -> None:
    program = tmp_path / "program"
    shutil.copytree(REPOSITORY / "delayqueue", program / "delayqueue")
    path = program / SCRIPTS / script
    text = path.read_text(encoding="utf-8")
    assert text.count(words) == 1
    path.write_text(text.replace(words, instead), encoding="utf-8")
    with closing(Bed(tmp_path / "bed", seed=1)) as bed, pytest.raises(AssertionError, match=found):
        asyncio.run(random_operations(bed, seconds=SECONDS, plans=[("zset", 1)], program=program))
