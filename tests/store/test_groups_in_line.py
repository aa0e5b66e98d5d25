"""Groups that stand in line: all are told of what they may have, none waits for ever."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from delayqueue.domain.job import CALLS
from delayqueue.errors import Code
from delayqueue.store.servers import Servers
from delayqueue.store.types import Demand
from delayqueue.store.verbs import Ending
from tests.store.bucket import (
    HOUR_MS,
    SOON_MS,
    Bucket,
    VerbStore,
    a_moment,
    job,
    on_one_store,
    with_functions,
)
from tests.store.test_broken_keys import heal
from tests.store.test_groups import CALL, limit, many, of, one_by_one
from tests.store.test_model import CLOCK, stepped


@asynccontextmanager
async def turned(bucket: Bucket) -> AsyncIterator[tuple[Callable[[int], Awaitable[None]], Bucket]]:
    """The bucket with a clock that stands still; and a function that turns it by ms."""
    scripts = stepped("wheel" if bucket.wheel_slots else "zset", bucket.wheel_slots)
    store = VerbStore(Servers.one(bucket.redis), bucket.store.buckets, scripts)
    now_ms = await bucket.now_ms()

    async def turn(ms: int) -> None:
        nonlocal now_ms
        now_ms += ms
        await bucket.redis.set(CLOCK, now_ms)

    await turn(0)
    try:
        yield turn, Bucket(bucket.redis, bucket.keys, store, bucket.wheel_slots)
    finally:
        await bucket.redis.delete(CLOCK)


def ends(*jobs: Any) -> list[Ending]:
    return [Ending(held.id, held.nonce, "") for held in jobs]


@pytest.mark.parametrize("call", [None, CALL])
async def test_each_of_a_groups_jobs_that_may_be_had_is_announced(
    bucket: Bucket, call: Any
) -> None:
    topic = CALLS if call else "t"
    await limit(bucket, group_concurrency=3)
    await bucket.push(*many("a", 9, call=call))
    held = await bucket.pop(topic)
    assert (len(held), await bucket.pop(topic)) == (3, [])
    _, change = await bucket.store.finish(0, ends(*held))
    assert dict(change.ready) == {topic: 3}


async def test_one_that_may_be_had_is_announced_also_if_its_group_was_in_line_by_then(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_concurrency=2)
    await bucket.push(*many("a", 9))
    one, other = await bucket.pop()
    assert await bucket.pop() == []
    for held in one, other:
        _, change = await bucket.store.finish(0, ends(held))
        assert dict(change.ready) == {"t": 1}


async def test_a_held_group_whose_job_gets_another_priority_is_told_of_when_it_may_go_on(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2))
    [held] = await bucket.pop()
    assert await bucket.pop() == []
    await bucket.change("a1", priority=7)
    _, change = await bucket.store.finish(0, ends(held))
    assert dict(change.ready) == {"t": 1}


async def test_a_pop_of_many_gives_jobs_without_a_group_no_more_than_a_group(
    bucket: Bucket,
) -> None:
    await bucket.push(*many("a", 300), *(job(f"x{n}") for n in range(300)))
    shares = Counter(each[0] for each in await bucket.pop_ids(wanted=200))
    assert abs(shares["a"] - shares["x"]) <= 40


async def test_a_reservation_whose_record_is_gone_holds_up_its_group_no_longer_than_its_ttr(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2, ttr_ms=SOON_MS))
    await bucket.pop_one()
    assert await bucket.pop() == []
    for name in "job", "run", "priorities":
        await bucket.redis.hdel(bucket.key(name), "a0")
    await a_moment()
    ticked = await bucket.store.tick(0)
    assert ticked.set_aside == 1
    assert dict(ticked.change.ready) == {"t": 1}
    assert await bucket.pop_ids() == ["a1"]


@on_one_store
async def test_a_stream_of_new_groups_keeps_nobody_waiting_for_ever(bucket: Bucket) -> None:
    async with turned(bucket) as (turn, clocked):
        await clocked.push(
            *many("old", 2), job("alone"), *(of(f"n{n}", f"n{n}") for n in range(20))
        )
        found: list[str] = []
        for n in range(20, 60):
            await turn(100)
            await clocked.push(of(f"n{n}", f"n{n}"))
            found += await one_by_one(clocked, 1)
        assert {"alone", "old0", "old1"} <= {*found}
        assert len(await clocked.pop_ids()) == 23


@pytest.mark.parametrize("call", [None, CALL])
async def test_the_only_group_gives_way_to_whoever_comes(bucket: Bucket, call: Any) -> None:
    topic = CALLS if call else "t"
    await bucket.push(*many("alone", 9, call=call))
    assert await one_by_one(bucket, 3, topic) == ["alone0", "alone1", "alone2"]
    await bucket.push(of("b", "b0", call=call), job("x", call=call))
    assert {*await one_by_one(bucket, 3, topic)} == {"b0", "x", "alone3"}
    assert await bucket.pop_ids(topic) == [f"alone{n}" for n in range(4, 9)]


async def test_the_only_group_goes_on_behind_jobs_that_have_expired(bucket: Bucket) -> None:
    await bucket.push(*many("alone", 40, expire_ms=SOON_MS), of("alone", "last"))
    await a_moment()
    assert await bucket.pop_ids(wanted=1) == ["last"]


async def test_turns_are_forgotten_when_the_last_group_is_gone(bucket: Bucket) -> None:
    await bucket.push(*many("a", 2), of("b", "b0"))
    assert await one_by_one(bucket, 1) == ["a0"]
    await bucket.finish("a0")
    await bucket.delete("a1")
    await bucket.delete("b0")
    assert await bucket.redis.exists(bucket.key("rested:t")) == 0


@on_one_store
@pytest.mark.parametrize("key", ["grouped", "turns", "next", "held", "rested", "hand", "first"])
async def test_a_broken_key_of_groups_loses_no_job_and_stops_no_other_topic(
    bucket: Bucket, key: str
) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(*many("a", 3), *many("b", 2), job("x"), job("other", topic="u"))
    await bucket.push(of("d", "d0", delay_ms=SOON_MS), job("late", delay_ms=SOON_MS))
    held, failing = await bucket.pop_one(), await bucket.pop_one()
    await bucket.spoil(f"{key}:t")
    assert await bucket.finish(held.id, nonce=held.nonce) == [Code.OK]
    await bucket.release(failing.id, nonce=failing.nonce, delay_ms=0)
    pushed, *codes = await bucket.push(of("c", "c0"), job("y"), job("more", topic="u"))
    assert codes == [Code.OK, Code.OK]
    assert {*await bucket.pop_ids("t", "u")} >= {"other", "more"}
    await a_moment()
    await bucket.tick()
    await heal(bucket)
    await limit(bucket, group_order=None)
    await bucket.tick()
    await bucket.pop()
    left = {"a1", "a2", "b0", "b1", "d0", "late", "x", "y", *(["c0"] if pushed == Code.OK else [])}
    assert {each for each in left if await bucket.state(each) == "reserved"} == left


@on_one_store
@pytest.mark.parametrize("scheduler", ["zset"])
@pytest.mark.parametrize("key", ["grouped", "turns", "next", "held", "rested", "delay"])
async def test_a_push_that_a_broken_key_of_its_group_prevents_leaves_nothing(
    bucket: Bucket, key: str
) -> None:
    await bucket.push(of("a", "before"))  # its keys are sound: for a second nobody asks again
    await bucket.delete("before")
    await bucket.spoil(f"{key}:t")
    delay_ms = HOUR_MS if key == "delay" else 0
    assert await bucket.push(of("a", "a0", delay_ms=delay_ms)) == [Code.UNAVAILABLE]
    await bucket.redis.delete(bucket.key(f"{key}:t"))
    assert await bucket.violations() == []
    assert not await bucket.redis.exists(*map(bucket.key, ("job", "priorities", "turns:t")))
    await bucket.push(of("a", "a0"))
    assert await bucket.pop_ids() == ["a0"]


@pytest.mark.usefixtures("poison")
async def test_records_that_are_gone_or_unreadable_stop_no_group(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(*many("a", 4), *many("b", 1), job("x"))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    for job_id in held.id, "a1":
        await bucket.redis.hdel(bucket.key("job"), job_id)
    await bucket.redis.hset(bucket.key("job"), "a2", "no record")
    assert {*await bucket.pop_ids()} == {"a3", "b0", "x"}


async def test_a_purge_of_what_an_older_version_has_ended_leaves_no_group_in_line(
    bucket: Bucket,
) -> None:
    await bucket.push(*many("a", 1), *many("b", 1, call=CALL))
    for job_id in "a0", "b0":
        for name in "job", "priorities":
            await bucket.redis.hdel(bucket.key(name), job_id)
    await bucket.store.purge(0, "t", "ready", 100)
    assert await bucket.redis.exists(bucket.key("turns:t"), bucket.key("called_turns:t")) == 0


@on_one_store
async def test_held_groups_are_not_looked_at_all_the_time_after_the_clock_was_put_back(
    bucket: Bucket,
) -> None:
    async with turned(bucket) as (turn, clocked):
        await limit(clocked, group_concurrency=1)
        await clocked.push(*(of(f"{n}", f"{n}-{k}") for n in range(120) for k in range(2)))
        while await clocked.pop_ids():
            pass
        await turn(-HOUR_MS)
        for _ in range(5):
            await turn(1)
            popped = await clocked.store.pop(0, [Demand(("t",), 1)])
        assert (popped.jobs, popped.complete) == ([[]], 1)


@with_functions
async def test_pushes_of_the_same_millisecond_keep_their_order_where_it_is_strict(
    bucket: Bucket,
) -> None:
    async with turned(bucket) as (_, clocked):
        await limit(clocked, group_order=True)
        for job_id in "zbya":
            await clocked.push(of("a", job_id))
        for job_id in "zbya":
            assert await clocked.pop_ids() == [job_id]
            await clocked.finish(job_id)
