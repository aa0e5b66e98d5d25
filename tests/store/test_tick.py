"""tick: moves what is due, and nothing else."""

import pytest

from delayqueue.domain.job import State
from delayqueue.store.types import NO_CHANGE, Ticked
from tests.store.bucket import HOUR_MS, LATER_MS, Bucket, a_moment, job, later


async def test_nothing_is_due_in_an_empty_bucket(bucket: Bucket) -> None:
    ticked = await bucket.store.tick(0)
    assert ticked == Ticked(NO_CHANGE, 0, 0, 0, 0, [], [])


async def test_a_due_job_becomes_ready_and_no_other(bucket: Bucket) -> None:
    await bucket.push(job("soon", delay_ms=1), job("later", delay_ms=HOUR_MS))
    await a_moment()
    ticked = await bucket.store.tick(0)
    assert ticked.change.ready == [("t", 1)]
    assert ticked.change.next_due_ms is not None
    assert HOUR_MS - 60_000 < ticked.change.next_due_ms <= HOUR_MS
    assert await bucket.pop_ids() == ["soon"]


async def test_due_jobs_keep_the_order_of_their_due_times(bucket: Bucket) -> None:
    now_ms = await bucket.now_ms()
    await bucket.put_in("delayed", "first in")
    await bucket.push(*(job(f"job-{n}", due_ms=now_ms + HOUR_MS - n) for n in range(300)))
    for number in range(300):
        await bucket.reschedule(f"job-{number}", due_ms=now_ms - number)
    await bucket.tick()
    popped: list[str] = []
    while some := await bucket.pop_ids():
        popped += some
    assert popped == [f"job-{n}" for n in reversed(range(300))]


async def test_one_tick_moves_no_more_than_its_limit_and_says_that_more_is_due(
    bucket: Bucket,
) -> None:
    await bucket.push(*(job(f"job-{n}", delay_ms=1) for n in range(1000)))
    await a_moment()
    moved = []
    next_due_ms: int | None = 0
    while next_due_ms == 0:
        (ready, next_due_ms, _), *_ = await bucket.store.tick(0, limit=300)
        moved.append(dict(ready).get("t", 0))
    assert moved == [300, 300, 300, 100]


@pytest.mark.parametrize("size", [1, 1499, 1999])
async def test_a_full_tick_moves_any_number_at_once(bucket: Bucket, size: int) -> None:
    await bucket.push(*(job(f"job-{n}", delay_ms=1) for n in range(size)))
    await a_moment()
    assert (await bucket.store.tick(0)).change.ready == [("t", size)]


async def test_a_burst_in_one_topic_does_not_hold_up_another(bucket: Bucket) -> None:
    await bucket.push(*(job(f"burst-{n}", topic="burst", delay_ms=1) for n in range(1000)))
    await bucket.push(job("a", topic="calm", delay_ms=2))
    await a_moment()
    ticked = await bucket.store.tick(0, limit=100)
    assert sorted(ticked.change.ready) == [("burst", 50), ("calm", 1)]


async def test_more_topics_than_one_tick_looks_at_are_all_served(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{n}", topic=f"topic-{n}", delay_ms=1) for n in range(1200)))
    await a_moment()
    await bucket.tick()
    for number in (0, 599, 1199):
        assert (await bucket.counts(f"topic-{number}")).ready == 1


async def test_many_topics_delay_neither_the_first_nor_the_last_that_is_due(bucket: Bucket) -> None:
    now_ms = await bucket.now_ms()
    topics = [f"topic-{n}" for n in range(200)]
    await bucket.push(*(job(topic, topic=topic, delay_ms=HOUR_MS) for topic in topics))
    for number, topic in enumerate(topics):
        await bucket.reschedule(topic, due_ms=now_ms - 1000 + number)
    ticked = await bucket.store.tick(0)
    ready = [topic for topic, _ in ticked.change.ready]
    assert {topics[0], topics[-1]} <= {*ready}
    assert len(ready) < len(topics)
    assert ticked.change.next_due_ms == 0


async def test_a_topic_with_much_to_do_does_not_hold_up_another(bucket: Bucket) -> None:
    jobs = [job(f"{n}", topic="much", ttr_ms=1) for n in range(1000)]
    await bucket.push(*jobs, job("other", topic="other", ttr_ms=1))
    while await bucket.pop("much"):
        pass
    await bucket.pop_one("other")
    await a_moment()
    assert 1 < (await bucket.store.tick(0)).redelivered < 300
    assert await bucket.state("other") == "ready"


async def test_a_schedule_delays_each_attempt_and_buries_the_job_at_its_end(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a", ttr_ms=1, retry_ms=(0, 1, HOUR_MS)))
    for state in ("ready", "delayed", "delayed"):
        await bucket.pop_one()
        await a_moment()
        await bucket.store.tick(0)
        assert await bucket.state("a") == state
        await a_moment()
        await bucket.tick()
    view = await bucket.view("a")
    assert (view.state, view.attempt) == (State.DELAYED, 3)
    assert HOUR_MS - 60_000 < view.due_ms - await bucket.now_ms() <= HOUR_MS
    await bucket.reschedule("a")
    await bucket.tick()
    await bucket.pop_one()
    await a_moment()
    ticked = await bucket.store.tick(0)
    assert (ticked.redelivered, ticked.buried, ticked.change.ready) == (1, 1, [])
    view = await bucket.view("a")
    assert view.state == State.BURIED
    assert [note.message for note in view.attempts] == ["ttr expired"] * 4


@pytest.mark.parametrize("state", ["delayed", "ready"])
async def test_an_undelivered_job_expires_at_its_time(bucket: Bucket, state: str) -> None:
    due_ms = await bucket.now_ms() - 10
    await bucket.push(job("a", due_ms=due_ms, expire_ms=11, retain_ms=HOUR_MS))
    if state == "delayed":
        await bucket.push(job("a", delay_ms=1, expire_ms=0, retain_ms=HOUR_MS))
        await bucket.push(job("a", delay_ms=1, expire_ms=1, retain_ms=HOUR_MS))
    await a_moment()
    ticked = await bucket.store.tick(0)
    assert (ticked.expired, ticked.change.ready) == (1, [])
    assert await bucket.state("a") == "expired"
    assert await bucket.pop() == []


async def test_a_job_that_has_expired_is_not_delivered_again(bucket: Bucket) -> None:
    await bucket.push(job("a", ttr_ms=1, expire_ms=LATER_MS))
    await bucket.pop_one()
    await later()
    ticked = await bucket.store.tick(0)
    assert (ticked.redelivered, ticked.expired) == (1, 1)
    assert await bucket.state("a") is None


async def test_a_pause_ends_at_its_time_and_those_who_wait_hear_of_it(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    await bucket.store.pause(0, "t", 1)
    await a_moment()
    assert (await bucket.store.tick(0)).change.ready == [("t", 2)]
    assert await bucket.pop_ids() == ["a", "b"]


async def test_the_timer_hears_of_the_end_of_a_pause(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=1))
    await bucket.store.pause(0, "t", 500)
    await a_moment()
    ticked = await bucket.store.tick(0)
    assert ticked.change.next_due_ms is not None
    assert 0 < ticked.change.next_due_ms <= 500
