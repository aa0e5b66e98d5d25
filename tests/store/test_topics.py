"""cancel, purge, pause, topics, sweep: verbs on tags and topics."""

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.store.census import TopicView
from delayqueue.store.types import START
from tests.store.bucket import HOUR_MS, LATER_MS, STATES, Bucket, TagPage, job, later

LIMIT = 50


async def cancel(bucket: Bucket, tag: str, topic: str = "") -> int:
    """Cancel all jobs of a tag. Returns how many ended."""
    position, ended, _ = await bucket.store.cancel(0, TagPage(tag, topic, LIMIT, START, EVERYWHERE))
    while position != START:
        position, more, _ = await bucket.store.cancel(
            0, TagPage(tag, topic, LIMIT, position, EVERYWHERE)
        )
        ended += more
    return ended


async def purge(bucket: Bucket, topic: str, state: str) -> int:
    """Purge a state of a topic. Returns how many jobs were dropped."""
    dropped = 0
    for _ in range(100):
        count, more, _ = await bucket.store.purge(0, topic, state, LIMIT)
        dropped += count
        if not more:
            return dropped
    raise AssertionError("purge does not end")


async def test_a_tag_is_cancelled_in_one_topic(bucket: Bucket) -> None:
    await bucket.push(job("a", tags=("x",)), job("b", topic="u", tags=("x",)))
    assert await cancel(bucket, "x", "u") == 1
    assert await bucket.pop_ids("t", "u") == ["a"]


async def test_a_tag_of_many_jobs_is_cancelled_piece_by_piece(bucket: Bucket) -> None:
    for start in range(0, 3000, 1000):
        await bucket.push(*(job(f"job-{start + n}", tags=("x",)) for n in range(1000)))
    assert await cancel(bucket, "x") == 3000
    assert await bucket.pop() == []


@pytest.mark.parametrize("state", ["delayed", "ready"])
async def test_many_jobs_are_purged_piece_by_piece(bucket: Bucket, state: str) -> None:
    delay_ms = HOUR_MS if state == "delayed" else 0
    await bucket.push(*(job(f"job-{n}", delay_ms=delay_ms) for n in range(525)))
    await bucket.delete(*(f"job-{n}" for n in range(0, 525, 2)))
    assert await purge(bucket, "t", state) == 262
    assert await bucket.counts() == TopicView("t")


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("state", STATES)
async def test_purge_ends_though_what_it_meets_is_no_job(bucket: Bucket, state: str) -> None:
    strays = {f"stray-{n}": n for n in range(LIMIT + 1)}
    if state == "ready":
        await bucket.redis.rpush(bucket.key("dq_queue_t"), *strays)
    else:
        await bucket.redis.zadd(bucket.key(f"{'delay' if state == 'delayed' else state}:t"), strays)
    assert await purge(bucket, "t", state) == 0


def of_states(counts: TopicView) -> tuple[int, ...]:
    return counts.delayed, counts.ready, counts.reserved, counts.buried


async def test_counts_of_many_topics_at_once_are_those_of_each(bucket: Bucket) -> None:
    places = {3: "ready", 25: "reserved", 26: "buried", 47: "delayed", 44: "ready"}
    for number, state in places.items():
        await bucket.put_in(state, f"{state}-{number}", topic=f"topic-{number}")
    await bucket.push(*(job(f"job-{n}", topic=f"topic-{n}", delay_ms=HOUR_MS) for n in range(70)))
    await bucket.push(job("urgent", topic="topic-65", priority=1))
    await bucket.store.pause(0, "topic-66", 0)
    names = [f"topic-{n}" for n in range(70)]
    together = await bucket.store.topics(0, names)
    for number, counts in enumerate(together):
        state = places.get(number, "")
        delayed = 2 if state == "delayed" else 1
        ready = int(state == "ready" or number == 65)
        in_hand, buried = state == "reserved", state == "buried"
        assert of_states(counts) == (delayed, ready, in_hand, buried), number
        assert (counts.oldest_age_ms is None) == (not ready)
        assert counts.paused_until_ms == (0 if number == 66 else None)
        assert counts.urgent == int(number == 65)


async def test_the_age_of_the_job_at_the_head_is_told(bucket: Bucket) -> None:
    await bucket.put_in("buried", "nothing is ready")
    assert (await bucket.counts()).oldest_age_ms is None
    await bucket.push(job("ghost"), job("head", due_ms=await bucket.now_ms() - HOUR_MS), job("b"))
    await bucket.delete("ghost")
    await later()
    age_ms = (await bucket.counts()).oldest_age_ms
    assert age_ms is not None
    assert LATER_MS <= age_ms < HOUR_MS  # its time was over when it was pushed


async def test_a_pause_is_told_until_it_ends(bucket: Bucket) -> None:
    assert (await bucket.counts()).paused_until_ms is None
    await bucket.store.pause(0, "t", 0)
    assert (await bucket.counts()).paused_until_ms == 0
    await bucket.store.pause(0, "t", HOUR_MS)
    until_ms = (await bucket.counts()).paused_until_ms
    assert until_ms is not None
    assert HOUR_MS - 60_000 < until_ms - await bucket.now_ms() <= HOUR_MS
    await bucket.store.pause(0, "t", None)
    assert (await bucket.counts()).paused_until_ms is None


async def test_a_pause_outlives_its_jobs(bucket: Bucket) -> None:
    await bucket.store.pause(0, "t", 0)
    await bucket.store.sweep(0, 0, 10)
    await bucket.push(job("a"))
    assert await bucket.pop() == []


async def test_sweep_takes_ghosts_out_of_ready_lists(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{n}") for n in range(100)))
    await bucket.delete(*(f"job-{n}" for n in range(90)))
    assert (await bucket.store.sweep(0, 0, 10)).ghosts == 90
    assert await bucket.redis.llen(bucket.key("dq_queue_t")) == 10
    assert (await bucket.counts()).ready == 10


async def test_sweep_sees_all_of_a_long_list_in_time(bucket: Bucket) -> None:
    for start in range(0, 4000, 1000):
        await bucket.push(*(job(f"job-{start + n}") for n in range(1000)))
    await bucket.delete(*(f"job-{n}" for n in range(3990)))
    for _ in range(200):
        await bucket.store.sweep(0, 0, 10)
    assert await bucket.redis.llen(bucket.key("dq_queue_t")) < 4000
    assert (await bucket.counts()).ready == 10


async def test_a_topic_that_is_empty_for_good_is_forgotten(bucket: Bucket) -> None:
    await bucket.push(job("a", topic="empty"), job("b", topic="kept", retain_ms=HOUR_MS))
    await bucket.put_in("buried", "c", topic="full")
    await bucket.store.pause(0, "paused", 0)
    await bucket.pop("empty", "kept")
    await bucket.finish("a", "b")
    assert (await bucket.store.sweep(0, 0, 10)).forgotten == 1
    assert sorted(await bucket.topic_names()) == ["full", "kept", "paused"]


async def test_a_topic_whose_ready_jobs_were_deleted_is_forgotten_at_once(bucket: Bucket) -> None:
    for number in range(30):
        await bucket.push(job(f"{number}", topic=f"topic-{number}"))
        await bucket.delete(f"{number}")
    swept = await bucket.store.sweep(0, 0, 1000)
    assert (swept.ghosts, swept.forgotten) == (30, 30)
    assert await bucket.redis.keys() == []


async def test_sweep_looks_at_a_bounded_number_of_ids_however_many_topics(
    bucket: Bucket,
) -> None:
    """Redis returns a small hash as a whole, whatever count was requested."""
    for topic in range(10):
        await bucket.push(*(job(f"{topic}/{n}", topic=f"topic-{topic}") for n in range(300)))
        await bucket.delete(*(f"{topic}/{n}" for n in range(299)))
    assert (await bucket.store.sweep(0, 0, 1)).ghosts <= 1000
    while (await bucket.store.sweep(0, 0, 1)).ghosts:
        pass
    assert [(await bucket.counts(f"topic-{n}")).ready for n in range(10)] == [1] * 10
