"""Tasks that share a loop with others."""

from __future__ import annotations

from time import monotonic

from delayqueue.tasks import TURN_S, by_turns
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
