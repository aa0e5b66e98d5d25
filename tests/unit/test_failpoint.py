"""The failpoint of the fault harness ends the process where it is told to, and nowhere else."""

import subprocess
import sys

import pytest

from delayqueue.config.failpoint import EXIT_STATUS

REACH = """
from delayqueue.config.failpoint import Failpoint
point = Failpoint({text!r})
for name in ("pop.before", "push.before", "push.after", "push.before", "push.after"):
    print(name, flush=True)
    point.reach(name)
"""

CASES = [
    ("push.before", 2, "the first time where no number is given"),
    ("push.after:2", 5, "the second time"),
]


@pytest.mark.parametrize(("text", "lines", "_reason"), CASES)
def test_the_process_ends_at_its_failpoint(text: str, lines: int, _reason: str) -> None:
    command = [sys.executable, "-c", REACH.format(text=text)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == EXIT_STATUS, done.stderr
    assert len(done.stdout.splitlines()) == lines


def test_a_failpoint_that_is_not_reached_does_nothing() -> None:
    command = [sys.executable, "-c", REACH.format(text="push.after:3")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
