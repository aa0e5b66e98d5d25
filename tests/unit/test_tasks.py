"""Tasks among others."""

from __future__ import annotations

import asyncio
from time import monotonic

from delayqueue.tasks import TURN_S, by_turns


async def test_who_goes_through_many_items_lets_others_have_their_turn() -> None:
    seen, turns = list[int](), 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other())
    async for item in by_turns(range(6)):
        seen.append(item)
        until_s = monotonic() + TURN_S
        while monotonic() < until_s:
            pass
    task.cancel()
    assert seen == list(range(6))
    assert turns >= 5
