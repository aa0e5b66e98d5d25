"""The verbs on topics: settings reach all buckets, and a purge misses nothing."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from delayqueue.domain.job import State
from delayqueue.engine.jobs import Jobs
from delayqueue.errors import NoSuchJob, Unavailable
from delayqueue.store.buckets import Layout
from delayqueue.store.connection import Link, Sendable
from delayqueue.store.topics import settings_in
from tests.engine.moving import BEFORE, Installation, all_jobs
from tests.store.between import before_send
from tests.store.bucket import HOUR_MS, job
from tests.waiting import until

PAUSE, RESUME = ("pause", "t", 0), ("pause", "t", None)
FOUR, EIGHT = ("limit", "t", {"concurrency": 4}), ("limit", "t", {"concurrency": 8})


async def set_topic(queue: Jobs, verb: str, *args: Any) -> Any:
    return await getattr(queue.topics, verb)(*args)


async def settings(ours: Installation) -> list[Any]:
    """The buckets' settings of the topic, without their shares."""
    return [
        {
            "paused": "paused_until" in each,
            "concurrency": each.get("limit", {}).get("concurrency"),
        }
        for bucket in range(BEFORE)
        for each in [(await settings_in(ours.server().bucket(bucket))).get("t", {})]
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
    queues = [all_jobs(ours.server()) for _ in "12"]
    await set_topic(queues[1], *PAUSE)
    await set_topic(queues[1], *RESUME)
    before_send(queues[0]._store, 2, partial(set_topic, queues[1], *other))
    await set_topic(queues[0], *one)
    assert await settings(ours) == [is_set] * BEFORE


async def test_a_change_that_failed_half_way_is_healed_by_the_next_one(ours: Installation) -> None:
    async def failing() -> None:
        raise Unavailable

    queue = all_jobs(ours.server())
    before_send(queue._store, 2, failing)
    with pytest.raises(Unavailable):
        await set_topic(queue, *PAUSE)
    await set_topic(queue, *FOUR)
    assert await settings(ours) == [{"paused": True, "concurrency": 4}] * BEFORE


@pytest.mark.parametrize("number", [2, 3, 4])
async def test_a_purge_of_all_states_misses_no_job_that_moves_meanwhile(
    ours: Installation, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr("delayqueue.store.topics.PIECE", 5)
    queue = all_jobs(ours.server())
    names = [f"job-{n}" for n in range(20)]
    await queue.push_many([job(name) for name in names])
    held = await queue.polls.pop(("t",), 10, 0)

    async def give_back() -> None:
        for each in held:
            with suppress(NoSuchJob):
                await queue.release(each.id, each.nonce, HOUR_MS, "")

    before_send(queue._store, number, give_back, "purge")
    assert await queue.topics.purge("t", None) == len(names)
    assert await queue.get(names) == [None] * len(names)


async def test_a_job_that_is_buried_again_meanwhile_is_not_kicked_again(ours: Installation) -> None:
    queue = all_jobs(store := ours.server())
    job_id = next(f"{n}" for n in range(99) if store.buckets.of(f"{n}") == 0)
    await queue.push(job(job_id))
    await queue.bury(job_id, None, "")
    before_send(store, 2, partial(queue.bury, job_id, None, ""))
    assert await queue.topics.kick("t", State.BURIED, 9) == 1
    [view] = await queue.get([job_id])
    assert view is not None
    assert view.state is State.BURIED


async def test_what_is_done_for_a_client_that_has_left_is_counted(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = all_jobs(store := ours.server(Layout(1)))
    await queue.push(job("a", tags=("order",)))
    begin, sent = Link.begin, asyncio.Event()

    def note(link: Link, calls: Sequence[Sendable], *more: Any) -> None:
        begin(link, calls, *more)
        if any(b"cancel" in call.packed for call in calls):
            sent.set()

    monkeypatch.setattr(Link, "begin", note)
    client = asyncio.create_task(queue.topics.cancel("order", None))
    await sent.wait()
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    await until(lambda: store.metrics.events("cancelled") == 1)
    assert await queue.get(["a"]) == [None]
