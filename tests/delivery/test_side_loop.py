"""The loop of webhooks shares the interpreter with the server's."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from time import thread_time

import pytest

from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.side_loop import BUSY_S, SideLoop, Turns
from delayqueue.delivery.webhook import Webhooks
from tests.waiting import until


@pytest.fixture
def interval_s() -> Iterator[float]:
    """For so long, a busy thread does not have to give the interpreter away to one that wants it."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield sys.getswitchinterval()
    sys.setswitchinterval(before_s)


async def test_a_busy_loop_lets_the_servers_have_its_turn(interval_s: float) -> None:
    """How late others are beside busy calls is row 43 of the faults."""
    has_begun, is_seen = threading.Event(), False
    turns, side = Turns(), SideLoop("webhooks")

    async def works() -> bool:
        """Whether the other loop has had a turn within a thousand times BUSY_S."""
        has_begun.set()
        end_s = thread_time() + 1000 * BUSY_S
        while not is_seen and thread_time() < end_s:
            turns.leave()
        return is_seen

    working = asyncio.create_task(side.run(works()))
    await until(has_begun.is_set)
    is_seen = True
    assert await working
    await side.aclose()


async def test_webhooks_do_not_change_how_threads_take_turns_in_the_whole_interpreter(
    interval_s: float,
) -> None:
    async with Webhooks.open(AddressGuard(())):
        assert sys.getswitchinterval() == interval_s
