"""A store that refuses writes: with full memory it accepts no job, but verbs that make room in it continue to work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.history_steps import RINGS, Row, TopicSum
from delayqueue.domain.topic_counters import Counts
from delayqueue.errors import Code, Unavailable
from delayqueue.store.topics import split_limits
from tests.store.bucket import HOUR_MS, Bucket, job


@asynccontextmanager
async def full(bucket: Bucket) -> AsyncIterator[None]:
    """The memory of the store's server is full while the block runs."""
    await bucket.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable):
            await bucket.push(job("one too many"))
        yield
    finally:
        await bucket.redis.config_set("maxmemory", 0)


async def test_a_full_topic_that_is_held_can_be_let_go_and_drained(bucket: Bucket) -> None:
    limits = bucket.store
    await bucket.push(*(job(f"{n}") for n in range(20)))
    await bucket.store.pause(0, "t", 0)
    await limits.limit(0, "t", {"rate": 1, "concurrency": 1})
    async with full(bucket):
        assert await bucket.pop_ids() == []
        assert (await bucket.store.pause(0, "t", None)).ready == [("t", 20)]
        assert len(await bucket.pop_ids()) == 1
        assert (await limits.limit(0, "t", {"rate": 1000, "concurrency": None})).code == Code.OK
        assert (await limits.limit(0, "t", {"rate": None})).code == Code.OK
        await split_limits(bucket.store.bucket(0), "t", None, 1)
        assert len(ids := await bucket.pop_ids()) == 19
        assert set(await bucket.finish(*ids)) == {Code.OK}


async def test_the_history_is_dropped_as_a_whole_while_the_memory_is_full(bucket: Bucket) -> None:
    history = bucket.store.history
    await history.add([Row(TopicSum.ALL, Counts(pushed=1))])
    async with full(bucket):
        with pytest.raises(Unavailable):
            await history.add([Row(TopicSum.ALL, Counts(pushed=2)), Row("t", Counts(pushed=2))])
        found = await history.read(RINGS["3h"], None, EVERYWHERE)
        assert [step.counts for step in found.steps if step] == [Counts(pushed=1)]


async def test_a_topic_can_be_held_while_the_memory_is_full(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    async with full(bucket):
        await bucket.store.pause(0, "t", HOUR_MS)
        assert await bucket.pop_ids() == []


async def test_a_store_that_refuses_writes_refuses_each_verb_that_writes_as_a_whole(
    bucket: Bucket,
) -> None:
    await bucket.redis.config_set("min-replicas-to-write", 1)
    try:
        for name, function in bucket.store.scripts.items():
            if function.head.writes:
                with pytest.raises(Unavailable, match="too few replicas follow"):
                    await bucket.store.call(name, 0, [])
    finally:
        await bucket.redis.config_set("min-replicas-to-write", 0)
