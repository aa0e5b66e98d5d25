"""What is set for a topic is set in all buckets, whoever sets it at the same time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import Unavailable
from tests.engine.moving import BEFORE, before_call

if TYPE_CHECKING:
    from tests.engine.moving import Installation

PAUSE, RESUME = ("pause", "t", 0), ("resume", "t")
FOUR, EIGHT = ("limit", "t", {"concurrency": 4}), ("limit", "t", {"concurrency": 8})


async def set_topic(queue: DelayQueue, verb: str, *args: Any) -> Any:
    return await getattr(queue.topics, verb)(*args)


async def settings(ours: Installation) -> list[Any]:
    """What the buckets have for the topic, without their shares of it."""
    return [
        {
            "paused": "paused_until" in each,
            "concurrency": each.get("limit", {}).get("concurrency"),
        }
        for bucket in range(BEFORE)
        for each in [(await ours.mover.topic_settings(bucket)).get("t", {})]
    ]


@pytest.mark.parametrize(
    ("one", "other", "is_set"),
    [
        (PAUSE, RESUME, {"paused": False, "concurrency": None}),
        (RESUME, PAUSE, {"paused": True, "concurrency": None}),
        (FOUR, EIGHT, {"paused": False, "concurrency": 8}),
        (PAUSE, FOUR, {"paused": True, "concurrency": 4}),
    ],
)
async def test_who_sets_a_topic_in_between_sets_it_everywhere(
    ours: Installation, one: tuple[Any, ...], other: tuple[Any, ...], is_set: dict[str, Any]
) -> None:
    queues = [DelayQueue(ours.server()) for _ in "12"]
    await set_topic(queues[1], *PAUSE)
    await set_topic(queues[1], *RESUME)
    before_call(queues[0]._store._caller, "run", 2, partial(set_topic, queues[1], *other))
    await set_topic(queues[0], *one)
    assert await settings(ours) == [is_set] * BEFORE


async def test_a_change_that_failed_half_way_is_healed_by_the_next_one(ours: Installation) -> None:
    async def failing() -> None:
        raise Unavailable

    queue = DelayQueue(ours.server())
    before_call(queue._store._caller, "run", 2, failing)
    with pytest.raises(Unavailable):
        await set_topic(queue, *PAUSE)
    await set_topic(queue, *FOUR)
    assert await settings(ours) == [{"paused": True, "concurrency": 4}] * BEFORE
