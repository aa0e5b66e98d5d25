"""The server shares the interpreter with the loop for other people's work."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from delayqueue.delivery.side_loop import SideLoop
from delayqueue.server.serve import TURN_S, tune_interpreter

OTHER_S = 2 * TURN_S


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(OTHER_S)
    yield
    sys.setswitchinterval(before_s)


def test_a_server_has_its_turn_soon_from_its_start() -> None:
    """How late others are beside busy calls is row 43 of the faults: 80 ms at p99 with CPython's interval, 25 so."""
    tune_interpreter()
    assert sys.getswitchinterval() == pytest.approx(TURN_S)


async def test_the_first_webhook_does_not_change_the_whole_interpreter() -> None:
    side = SideLoop("other people's work")
    await side.run(asyncio.sleep(0))
    assert sys.getswitchinterval() == pytest.approx(OTHER_S)
    await side.aclose()
