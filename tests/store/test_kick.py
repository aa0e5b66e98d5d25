"""kick and reschedule: a new due time for a job that nobody holds."""

from typing import Any

import pytest

from delayqueue.domain.job import State
from delayqueue.errors import Code
from delayqueue.store.types import Moved, Plan
from delayqueue.store.verbs import Kick, Reschedule
from tests.store.bucket import HOUR_MS, STATES, Bucket, a_moment, job
from tests.store.turning import DAY_MS, Clock, coarse


@pytest.mark.parametrize("state", ["delayed", "buried"])
async def test_a_kicked_job_is_ready_now(bucket: Bucket, state: str) -> None:
    await bucket.put_in(state)
    codes, change = await bucket.store.kick(0, [Kick("a")])
    assert (codes, change.ready) == ([Code.OK], [("t", 1)])
    assert await bucket.now_ms() - (await bucket.view("a")).due_ms < 60_000
    assert await bucket.pop_ids() == ["a"]


async def test_a_kick_with_another_body_keeps_all_else(bucket: Bucket) -> None:
    options: dict[str, Any] = {
        "tags": ("order:7",),
        "priority": 9,
        "retain_ms": HOUR_MS,
        "expire_ms": HOUR_MS,
        "texts": {"group": "customer-7"},
    }
    await bucket.push(job("a", body="{-", retry_ms=(0,), **options), job("b", body="b"))
    for message in ("first", "second"):
        await bucket.pop_one()
        await bucket.release("a", message=message)
    before = await bucket.view("a")
    kicks = [Kick("a", "{}"), Kick("b", "not this one")]
    assert (await bucket.store.kick(0, kicks))[0] == [Code.OK, Code.WRONG_STATE]
    after = await bucket.view("a")
    assert (after.body, (await bucket.view("b")).body) == (b"{}", b"b")
    assert [one.message for one in after.attempts] == ["first", "second"]
    kept = (
        "ttr_ms",
        "tags",
        "priority",
        "retain_ms",
        "retry_ms",
        "attempts",
        "attempt",
        "created_ms",
        "texts",
    )
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert after.expire_ms - after.due_ms == before.expire_ms - before.due_ms
    reserved = await bucket.pop_one()
    assert (reserved.id, reserved.body, reserved.attempt) == ("a", b"{}", 3)


async def test_an_empty_body_is_a_body(bucket: Bucket) -> None:
    await bucket.push(job("a", body="full"))
    await bucket.bury("a")
    assert (await bucket.store.kick(0, [Kick("a", "")]))[0] == [Code.OK]
    assert (await bucket.view("a")).body == b""


async def test_a_kick_of_a_topic_takes_the_jobs_of_one_state_only(bucket: Bucket) -> None:
    await bucket.put_in("delayed", "delayed")
    for number in range(3):
        await bucket.push(job(f"buried-{number}"))
        await bucket.bury(f"buried-{number}")
        await a_moment()
    assert (await bucket.store.kick_topic(0, "t", State.BURIED, 2))[0] == 2
    assert await bucket.pop_ids() == ["buried-0", "buried-1"]
    assert (await bucket.store.kick_topic(0, "t", State.BURIED, 9))[0] == 1
    assert (await bucket.store.kick_topic(0, "t", State.BURIED, 9))[0] == 0
    assert await bucket.pop_ids() == ["buried-2"]
    assert (await bucket.store.kick_topic(0, "t", State.DELAYED, 9))[0] == 1
    assert (await bucket.store.kick_topic(0, "t", State.DELAYED, 9))[0] == 0
    assert await bucket.pop_ids() == ["delayed"]


@pytest.mark.parametrize("state", [state for state in STATES if state != "reserved"])
async def test_a_rescheduled_job_waits_for_its_new_time(bucket: Bucket, state: str) -> None:
    await bucket.put_in(state)
    moved = await bucket.reschedule("a", delay_ms=2 * HOUR_MS)
    assert moved.time_ms == (await bucket.view("a")).due_ms
    assert await bucket.state("a") == "delayed"
    await bucket.tick()
    assert await bucket.pop() == []
    assert await bucket.reschedule("a", due_ms=5) == Moved(Code.OK, 5)
    await bucket.tick()
    assert [job.due_ms for job in await bucket.pop()] == [5]


async def test_the_timer_hears_of_the_earliest_new_time(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    moves = [
        Reschedule(job_id, Plan(delay_ms))
        for job_id, delay_ms in (("a", 900), ("b", 500), ("x", 1))
    ]
    _, change = await bucket.store.reschedule(0, moves)
    assert change.next_due_ms == 500
    _, change = await bucket.store.reschedule(0, [Reschedule("a", Plan(due_ms=1))])
    assert change.next_due_ms == 0


@pytest.mark.parametrize("verb", ["kick", "reschedule"])
async def test_a_job_that_waits_for_a_retry_does_not_expire_by_coming_earlier(
    bucket: Bucket, verb: str
) -> None:
    await bucket.push(job("a", expire_ms=HOUR_MS))
    await bucket.pop_one()
    await bucket.release("a", delay_ms=2 * HOUR_MS)
    await getattr(bucket, verb)("a")
    await bucket.tick()
    assert await bucket.pop_ids() == ["a"]


@coarse
@pytest.mark.parametrize("verb", ["kick", "reschedule"])
async def test_a_dead_letter_that_waited_for_a_retry_can_outlive_its_expiry(
    wheel: Bucket, clock: Clock, verb: str
) -> None:
    await wheel.push(job("a", expire_ms=HOUR_MS))
    await wheel.pop_one()
    await wheel.release("a", delay_ms=DAY_MS)
    await wheel.bury("a")
    clock.pass_ms(2 * HOUR_MS)
    await getattr(wheel, verb)("a")
    await wheel.tick()
    assert await wheel.pop_ids() == ["a"]
    await wheel.release("a", delay_ms=DAY_MS)
    clock.pass_ms(2 * HOUR_MS)
    await wheel.tick()
    assert await wheel.state("a") is None


async def test_a_job_that_expires_as_late_as_a_record_can_hold_may_be_moved(bucket: Bucket) -> None:
    far_ms = 10**13
    await bucket.push(job("a", expire_ms=far_ms))
    await bucket.pop_one()
    await bucket.release("a", delay_ms=HOUR_MS)
    for _ in range(10):
        await bucket.reschedule("a", due_ms=far_ms)
        await bucket.reschedule("a", delay_ms=0)
    await bucket.tick()
    assert await bucket.pop_ids() == ["a"]


async def test_a_message_about_a_job_that_was_never_delivered_does_not_keep_it(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a", delay_ms=2 * HOUR_MS, expire_ms=HOUR_MS))
    await bucket.bury("a", message="nobody wants it")
    await bucket.reschedule("a", due_ms=await bucket.now_ms() - 2 * HOUR_MS)
    await bucket.tick()
    assert await bucket.state("a") is None


async def test_a_buried_job_that_was_passed_over_expires_after_a_reschedule(
    bucket: Bucket,
) -> None:
    await bucket.put_in("buried", expire_ms=1)
    await a_moment()
    await bucket.tick()
    assert await bucket.state("a") == "buried"
    await bucket.reschedule("a", delay_ms=1)
    await a_moment()
    await bucket.tick()
    assert await bucket.state("a") is None


async def test_a_kicked_job_that_nobody_needed_any_more_is_delivered(bucket: Bucket) -> None:
    long_ago = await bucket.now_ms() - 2 * HOUR_MS
    await bucket.push(job("a", due_ms=long_ago, expire_ms=HOUR_MS))
    await bucket.bury("a")
    await bucket.tick()
    assert await bucket.kick("a") == [Code.OK]
    await bucket.tick()
    assert await bucket.pop_ids() == ["a"]
