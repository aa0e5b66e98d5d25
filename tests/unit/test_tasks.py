"""Tasks that share a loop with others."""

import asyncio
from contextlib import suppress
from time import monotonic

import pytest

from delayqueue.tasks import TURN_S, SingleFlight, TaskGroup, by_turns
from tests.waiting import Turns


async def test_who_goes_through_many_items_lets_others_have_their_turn() -> None:
    seen = list[int]()
    async with Turns() as turns:
        async for item in by_turns(range(6)):
            seen.append(item)
            until_s = monotonic() + TURN_S
            while monotonic() < until_s:
                pass
    assert seen == list(range(6))
    assert turns.count >= 5


async def test_a_group_cancels_again_if_a_cancellation_got_lost() -> None:
    cancelled = 0

    async def deaf() -> None:
        nonlocal cancelled
        while cancelled < 2:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            cancelled += 1

    async with asyncio.timeout(10), TaskGroup() as group:
        task = group.create_task(deaf(), "deaf")
        await asyncio.sleep(0)
    assert task.done()
    assert cancelled == 2


async def test_the_first_error_of_a_group_ends_all_of_it() -> None:
    async def fail() -> None:
        raise LookupError("a defect")

    group = TaskGroup()
    other = group.create_task(asyncio.sleep(3600), "other")
    group.create_task(fail(), "fails")
    with pytest.raises(LookupError, match="a defect"):
        async with asyncio.timeout(10), group:
            await group.failed()
    assert other.cancelled()


async def test_a_group_that_has_ended_starts_nothing() -> None:
    async with TaskGroup() as group:
        pass
    with pytest.raises(RuntimeError):
        group.create_task(asyncio.sleep(0), "late")


async def test_a_group_raises_the_error_of_its_block_rather_than_that_of_a_task() -> None:
    async def fail() -> None:
        raise LookupError("a defect")

    group = TaskGroup()
    failing = group.create_task(fail(), "fails")
    await asyncio.wait([failing])
    with pytest.raises(KeyError):
        async with group:
            raise KeyError


async def test_work_that_is_done_anew_began_after_each_caller_asked_for_it() -> None:
    flights, began, free = SingleFlight[int](), 0, asyncio.Event()

    async def work() -> int:
        nonlocal began
        began += 1
        mine = began
        await free.wait()
        return mine

    first = asyncio.create_task(flights.do_anew(None, work))
    await asyncio.sleep(0)
    late = [asyncio.create_task(flights.do_anew(None, work)) for _ in range(3)]
    await asyncio.sleep(0)
    free.set()
    assert await asyncio.gather(first, *late) == [1, 2, 2, 2]
