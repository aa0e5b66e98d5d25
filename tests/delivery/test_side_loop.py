"""The loop for other people's work shares the interpreter with the server's."""

import asyncio
import sys

import pytest

from delayqueue.delivery.side_loop import TURN_S, SideLoop


async def test_a_busy_loop_lets_the_servers_have_its_turn_soon() -> None:
    """How late others are beside busy calls is row 43 of the faults: 80 ms at p99 with CPython's interval, 25 so."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(2 * TURN_S)
    side = SideLoop("other people's work")
    try:
        await side.run(asyncio.sleep(0))
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
        await side.aclose()
    finally:
        sys.setswitchinterval(before_s)
