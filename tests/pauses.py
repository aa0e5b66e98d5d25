"""Pauses the loop of each test at random moments, as a busy machine does: `pytest -p tests.pauses -n 8 tests/engine`.

A test that fails with it depends on time. Servers of their own processes go on meanwhile.
"""

import os
import random
import selectors
import time
from collections.abc import Generator
from typing import Any, Final

import pytest

PAUSE_S: Final = float(os.environ.get("PAUSE_S", "1.2"))
AGAIN: Final = 0.5  # how likely another pause follows
turns_left: float = float("inf")  # of the loop, before the next pause
select: Final = selectors.DefaultSelector.select


def some_turns() -> int:
    """From one to three hundred, and one as likely as a hundred."""
    return int(10 ** random.uniform(0, 2.5))


def paused_select(selector: Any, timeout: float | None = None) -> Any:
    global turns_left  # noqa: PLW0603  # of the test that runs
    turns_left -= 1
    if turns_left < 0:
        turns_left = some_turns() if random.random() < AGAIN else float("inf")
        time.sleep(PAUSE_S)
    return select(selector, timeout)


selectors.DefaultSelector.select = paused_select  # type: ignore[method-assign, assignment]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    global turns_left  # noqa: PLW0603
    turns_left = some_turns()
    try:
        return (yield)
    finally:
        turns_left = float("inf")
