"""record and postpone: subscribers' results for a job, and when it is delivered again."""

import json
from typing import Any

import pytest

from delayqueue.answers.jobs import SubscriberResult
from delayqueue.domain.job import Reserved
from delayqueue.store.types import Moved, Postponement, Recording
from delayqueue.store.verbs import POSTPONE, RECORD
from tests.store.bucket import HOUR_MS, LATER_MS, SOON_MS, Bucket, a_moment, job, later

NAMES = ("one", "two")


async def record(
    bucket: Bucket,
    held: Reserved,
    name: str,
    *,
    delay_ms: int | None = None,
    attempts: int = 1,
    ending: str | None = None,
) -> int:
    """Record a success, or, with a delay, a failure; with an ending, the job is finished."""
    recording = Recording(
        id=held.id,
        nonce=held.nonce,
        subscriber=name,
        succeeded=delay_ms is None,
        message=f"{name} says",
        attempts=attempts,
        took_ms=40,
        delay_ms=delay_ms,
        ending=ending,
    )
    [code] = await bucket.store.all_of(RECORD, [recording])
    return code


async def postpone(bucket: Bucket, held: Reserved, *names: str) -> Moved:
    nonce = held.nonce
    postponement = Postponement(held.id, nonce, "some failed", names)
    [moved] = await bucket.store.all_of(POSTPONE, [postponement])
    return moved


async def results(bucket: Bucket, job_id: str = "a") -> dict[str, SubscriberResult]:
    return {result.subscriber: result for result in (await bucket.view(job_id)).results}


async def reserved(bucket: Bucket, **options: Any) -> Reserved:
    await bucket.push(job("a", **options))
    return await bucket.pop_one()


async def test_a_result_is_kept_with_its_times(bucket: Bucket) -> None:
    held = await reserved(bucket)
    assert await record(bucket, held, "one", delay_ms=HOUR_MS) == 0
    one = (await results(bucket))["one"]
    assert (one.status, one.message, one.attempts) == ("failed", "one says", 1)
    assert one.due is not None
    took_ms, waits_ms = 1000 * (one.ended - one.started), 1000 * (one.due - one.ended)
    assert (round(took_ms), round(waits_ms)) == (40, HOUR_MS)
    assert await record(bucket, held, "one", attempts=2) == 0
    one = (await results(bucket))["one"]
    assert (one.status, one.attempts, one.due) == ("succeeded", 2, None)


async def test_results_go_with_the_job_to_its_end(bucket: Bucket) -> None:
    held = await reserved(bucket, retain_ms=HOUR_MS)
    await record(bucket, held, 'näme "排队"\n')
    await bucket.finish("a", nonce=held.nonce)
    assert await bucket.state("a") == "finished"
    assert list(await results(bucket)) == ['näme "排队"\n']


async def test_the_last_result_ends_the_job(bucket: Bucket) -> None:
    held = await reserved(bucket, retain_ms=HOUR_MS, tags=("x",))
    await record(bucket, held, "one")
    assert await record(bucket, held, "two", ending="one of them failed") == 0
    view = await bucket.view("a")
    assert (view.state, view.message, view.attempt) == ("finished", "one of them failed", 1)
    assert [(result.subscriber, result.attempts) for result in view.results] == [
        ("one", 1),
        ("two", 1),
    ]
    assert await record(bucket, held, "two", ending="again") == 2
    assert (await bucket.view("a")).message == "one of them failed"


async def test_a_job_that_is_not_retained_is_gone_with_its_last_result(bucket: Bucket) -> None:
    held = await reserved(bucket)
    assert await record(bucket, held, "one", ending="") == 0
    assert await bucket.state("a") is None


async def test_only_the_holder_ends_a_job_with_a_result(bucket: Bucket) -> None:
    held = await reserved(bucket, ttr_ms=SOON_MS)
    await a_moment()
    await bucket.tick()
    assert await record(bucket, held, "one", ending="") == 4
    newer = await bucket.pop_one()
    assert await record(bucket, held, "one", ending="") == 4
    assert await results(bucket) == {}
    assert await record(bucket, newer, "one", ending="") == 0


@pytest.mark.parametrize(
    ("poison", "options"),
    [("done:t", {"retain_ms": HOUR_MS}), ("expire:t", {"expire_ms": HOUR_MS})],
    ids=["retained", "not retained"],
)
async def test_a_result_is_kept_where_a_broken_key_prevents_the_end(
    bucket: Bucket, poison: str, options: dict[str, Any]
) -> None:
    held = await reserved(bucket, **options)
    await bucket.spoil(poison)
    assert await record(bucket, held, "one", ending="") == 0
    assert list(await results(bucket)) == ["one"]


async def test_a_job_that_is_pushed_again_begins_without_results(bucket: Bucket) -> None:
    await record(bucket, await reserved(bucket), "one")
    await bucket.push(job("a"))
    assert await results(bucket) == {}


async def test_only_the_holder_records_and_postpones(bucket: Bucket) -> None:
    held = await reserved(bucket, ttr_ms=SOON_MS)
    await a_moment()
    await bucket.tick()
    newer = await bucket.pop_one()
    assert await record(bucket, held, "one") == 4
    assert (await postpone(bucket, held, "one")).code == 4
    assert await record(bucket, newer, "one") == 0
    await bucket.delete("a")
    assert await record(bucket, newer, "one") == 2
    assert (await postpone(bucket, newer, "one")).code == 2


async def test_a_postponed_job_waits_for_the_first_that_may_be_called(bucket: Bucket) -> None:
    held = await reserved(bucket)
    await record(bucket, held, "one", delay_ms=2 * HOUR_MS)
    await record(bucket, held, "two", delay_ms=HOUR_MS)
    await record(bucket, held, "three", delay_ms=SOON_MS)
    moved = await postpone(bucket, held, *NAMES)  # three is no longer subscribed
    assert moved.time_ms is not None
    view = await bucket.view("a")
    assert (view.state, view.message, view.due_ms) == ("delayed", "some failed", moved.time_ms)
    assert (await results(bucket))["two"].due == moved.time_ms / 1000


async def test_pauses_of_one_round_begin_together(bucket: Bucket) -> None:
    held = await reserved(bucket)
    await record(bucket, held, "one", delay_ms=HOUR_MS)
    await a_moment()
    await record(bucket, held, "two", delay_ms=HOUR_MS)
    await a_moment()
    before_ms = await bucket.now_ms()
    await postpone(bucket, held, *NAMES)
    dues = {result.due for result in (await results(bucket)).values()}
    assert len(dues) == 1
    assert min(due or 0 for due in dues) >= (before_ms + HOUR_MS) / 1000


async def test_where_none_may_be_called_again_the_job_is_buried(bucket: Bucket) -> None:
    held = await reserved(bucket)
    await record(bucket, held, "one")
    assert await postpone(bucket, held, *NAMES) == Moved(0, None, buried=True)
    assert await bucket.state("a") == "buried"


async def test_a_pause_of_nothing_makes_the_job_ready(bucket: Bucket) -> None:
    held = await reserved(bucket)
    await record(bucket, held, "one", delay_ms=0)
    await postpone(bucket, held, "one")
    assert (await bucket.pop_one()).attempt == 2


async def test_a_kick_and_a_reschedule_open_the_results_that_failed(bucket: Bucket) -> None:
    for verb in ("kick", "reschedule"):
        held = await reserved(bucket)
        await record(bucket, held, "one")
        await record(bucket, held, "two", delay_ms=HOUR_MS, attempts=3)
        await postpone(bucket, held, *NAMES)
        await getattr(bucket, verb)("a")
        found = await results(bucket)
        assert (found["one"].attempts, found["one"].due) == (1, None)
        assert (found["two"].attempts, found["two"].due) == (0, 0)


async def test_an_attempt_with_results_counts_though_it_is_put_back(bucket: Bucket) -> None:
    held = await reserved(bucket)
    await record(bucket, held, "one")
    await bucket.requeue(held)
    assert (await bucket.pop_one()).attempt == 2


async def test_an_expired_job_ends_instead_of_being_postponed(bucket: Bucket) -> None:
    held = await reserved(bucket, expire_ms=LATER_MS, retain_ms=HOUR_MS)
    await record(bucket, held, "one", delay_ms=HOUR_MS)
    await later()
    await postpone(bucket, held, "one")
    assert await bucket.state("a") == "expired"


async def test_the_message_of_a_failure_is_cut_behind_a_whole_character(bucket: Bucket) -> None:
    held, name = await reserved(bucket), "x" + "é" * 300  # which the message begins with
    assert await record(bucket, held, name, delay_ms=HOUR_MS) == 0
    [failure] = await bucket.redis.lrange(bucket.key(f"subscriber_failures:{name}"), 0, -1)
    assert json.loads(failure)["message"] == "x" + "é" * 199


async def test_results_that_cannot_be_read_cost_no_other_job_its_own(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    first, second = await bucket.pop()
    await record(bucket, first, "one")
    run = await bucket.redis.hget(bucket.key("run"), "a")
    assert isinstance(run, bytes)
    await bucket.redis.hset(bucket.key("run"), "a", run.replace(b'"one"', b"xonex"))
    codes = await bucket.store.all_of(
        RECORD,
        [
            Recording(held.id, held.nonce, "two", True, "said", 1, 40, None)
            for held in (first, second)
        ],
    )
    assert codes == [0, 0]
    assert list(await results(bucket, "a")) == list(await results(bucket, "b")) == ["two"]
