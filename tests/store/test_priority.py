"""Priorities: of ready jobs the smallest number goes first, of equal ones the first that was due."""

from typing import Any

import pytest

from delayqueue.domain.job import MAX_PRIORITY, USUAL_PRIORITY
from delayqueue.errors import Code
from tests.store.bucket import HOUR_MS, LATER_MS, SOON_MS, Bucket, a_moment, job, later, on_zset


async def test_ids_that_are_numbers_count_up(bucket: Bucket) -> None:
    ids = [f"{number}" for number in range(1, 101)]
    await bucket.push(*(job(job_id, priority=7, due_ms=1000) for job_id in ids))
    assert await bucket.pop_ids() == ids


async def test_more_than_one_call_reads_of_each(bucket: Bucket) -> None:
    """pop reads 32 records per command."""
    for number in range(100):
        for priority in (3, USUAL_PRIORITY, 9999):
            await bucket.push(job(f"{priority}-{number}", priority=priority))
    wanted = [f"{each}-{n}" for each in (3, USUAL_PRIORITY, 9999) for n in range(100)]
    popped: list[str] = []
    while len(popped) < len(wanted):
        some = await bucket.pop_ids()
        assert len(some) > 100 or len(popped) + len(some) == len(wanted)
        popped += some
    assert popped == wanted


async def test_counts_and_ages_take_in_all_priorities(bucket: Bucket) -> None:
    await bucket.push(job("a", priority=1), job("b"), job("c", priority=MAX_PRIORITY))
    await later()
    counts = await bucket.counts()
    assert (counts.ready, (counts.oldest_age_ms or 0) >= LATER_MS) == (3, True)
    await bucket.finish("a", "b")
    counts = await bucket.counts()
    assert (counts.ready, (counts.oldest_age_ms or 0) >= LATER_MS) == (1, True)


async def test_one_call_makes_place_for_all_that_was_said(bucket: Bucket) -> None:
    await bucket.push(job("a", priority=1))
    for end in (bucket.finish, bucket.delete):
        await bucket.push(job("a", priority=1))
        assert await end("a") == [Code.OK]
        assert await bucket.pop() == []
    assert await bucket.redis.exists(bucket.key("ranked:t"), bucket.key("priorities")) == 0


@on_zset
async def test_a_job_that_an_older_server_made_ready_is_handed_out(bucket: Bucket) -> None:
    """Its tick knows no priorities: it puts every job that is due into the list."""
    await bucket.push(
        job("a", priority=1, delay_ms=HOUR_MS), job("b", priority=2, delay_ms=HOUR_MS)
    )
    for job_id in ("a", "b"):
        await bucket.redis.zrem(bucket.key("delay:t"), job_id)
        await bucket.redis.rpush(bucket.key("dq_queue_t"), job_id)
    await bucket.delete("b")
    assert await bucket.pop_ids() == ["a"]
    assert await bucket.pop() == []


@pytest.mark.parametrize("priority", [USUAL_PRIORITY, 7])
async def test_a_priority_is_replaced_wherever_it_stands_among_the_options(
    bucket: Bucket, priority: int
) -> None:
    tags = (',"priority":9', '","priority":9')
    await bucket.push(job("a", priority=9, tags=tags, delay_ms=HOUR_MS))
    raw: Any = await bucket.redis.hget(bucket.key("job"), "a")
    before, first, others = raw.partition(b'"priority":9,')
    options, _, body = others.rpartition(b"}")
    written = before + options + b"," + first[:-1] + b"}" + body
    await bucket.redis.hset(bucket.key("job"), "a", written)
    assert (await bucket.change("a", priority=priority)).code == Code.OK
    view = await bucket.view("a")
    assert (view.priority, view.tags, view.body) == (priority, tags, b"body")


@pytest.mark.parametrize("priority", [USUAL_PRIORITY, 1])
@pytest.mark.parametrize("state", ["delayed", "ready", "buried"])
async def test_a_job_can_be_reserved_by_its_id(bucket: Bucket, state: str, priority: int) -> None:
    await bucket.put_in(state, priority=priority, ttr_ms=HOUR_MS)
    [(code, held)], _ = await bucket.store.reserve(0, ["a"])
    assert held is not None
    assert (code, held.id, held.topic, held.body, held.attempt) == (Code.OK, "a", "t", b"body", 1)
    assert await bucket.state("a") == "reserved"
    assert await bucket.pop() == []
    assert await bucket.finish("a", nonce=held.nonce) == [Code.OK]


async def test_a_job_that_has_expired_cannot_be_reserved(bucket: Bucket) -> None:
    await bucket.push(job("a", expire_ms=SOON_MS))
    await a_moment()
    [(code, _)], _ = await bucket.store.reserve(0, ["a"])
    assert (code, await bucket.get("a")) == (Code.NO_SUCH_JOB, None)


async def test_a_body_is_any_bytes(bucket: Bucket) -> None:
    raw = bytes(range(256))
    await bucket.push(job("a", body=raw))
    assert (await bucket.view("a")).body == raw
    [(_, held)], _ = await bucket.store.reserve(0, ["a"])
    assert held is not None
    await bucket.requeue(held)
    assert (await bucket.pop_one()).body == raw


async def test_numbers_are_given_out_once(bucket: Bucket) -> None:
    registry = bucket.store.registry
    assert [await registry.numbers(count) for count in (1, 10, 1)] == [1, 2, 12]


# what an older version of the server, without priorities, leaves behind


async def test_a_job_that_came_with_a_parcel_of_an_older_server_is_handed_out(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a", priority=1, delay_ms=HOUR_MS))
    await bucket.redis.delete(bucket.key("priorities"))
    await bucket.kick("a")
    assert await bucket.pop_ids() == ["a"]


async def test_a_purge_ends_though_older_servers_have_left_entries(bucket: Bucket) -> None:
    ids = [f"job-{n}" for n in range(100)]
    await bucket.push(*(job(job_id, priority=1) for job_id in ids))
    await bucket.redis.hdel(bucket.key("job"), *ids[:50])
    await bucket.redis.hdel(bucket.key("priorities"), *ids[:50])
    counts, has_more = list[int](), True
    while has_more and len(counts) < 100:
        count, has_more, _ = await bucket.store.purge(0, "t", "ready", 10)
        counts.append(count)
    assert (sum(counts), has_more) == (50, False)
    assert await bucket.redis.exists(bucket.key("ranked:t")) == 0


@pytest.mark.parametrize("how", ["requeue", "ttr"])
async def test_a_dead_letter_outlives_one_who_reserved_it(bucket: Bucket, how: str) -> None:
    await bucket.push(job("a", expire_ms=LATER_MS, ttr_ms=SOON_MS))
    await bucket.bury("a")
    await later()
    [(_, held)], _ = await bucket.store.reserve(0, ["a"])
    assert held is not None
    await a_moment()
    if how == "requeue":
        await bucket.requeue(held)
    await bucket.tick()
    assert await bucket.state("a") == ("buried" if how == "requeue" else "ready")
