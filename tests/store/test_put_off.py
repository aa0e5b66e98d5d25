"""A job whose call finds no place at its host is put off, and keeps the time at which it was due."""

import json
from dataclasses import replace
from typing import Any, Final

from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS, Job, Reserved
from delayqueue.store.record import options_of, own_due_ms, parse_record
from delayqueue.store.types import Listing, Range
from delayqueue.store.verbs import Requeue
from tests.store.bucket import ALWAYS, HOUR_MS, Bucket, a_moment, job

CALL: Final = Call(url="https://example.com/")
FAR_MS: Final = 10_000


def called(job_id: str = "a", **options: Any) -> Job:
    return job(job_id, call=CALL, **options)


async def put_off(bucket: Bucket, delay_ms: int = FAR_MS, job_id: str = "a") -> Reserved:
    """Take the job for its call, and put it off. Returns what was taken."""
    [popped] = [each for each in await bucket.pop(CALLS) if each.id == job_id]
    nonce = popped.nonce
    await bucket.store.requeue(0, [Requeue(popped.id, nonce, delay_ms=delay_ms)])
    return popped


async def test_it_keeps_its_due_time_and_says_until_when_it_waits(bucket: Bucket) -> None:
    before_ms = await bucket.now_ms()
    await bucket.push(called())
    due_ms = (await bucket.view("a")).due_ms
    popped = await put_off(bucket)
    view = await bucket.view("a")
    assert (view.state, view.attempt, view.due_ms, popped.due_ms) == ("delayed", 0, due_ms, due_ms)
    assert before_ms + FAR_MS <= view.ready_ms <= await bucket.now_ms() + FAR_MS
    assert view.call == CALL


async def test_however_often_it_is_put_off_its_next_call_knows_when_it_was_due(
    bucket: Bucket,
) -> None:
    await bucket.push(called(priority=7, tags=("x",)))
    due_ms = (await bucket.view("a")).due_ms
    for _ in range(3):
        await put_off(bucket, delay_ms=1)
        await a_moment()
        await bucket.tick()
    [popped] = await bucket.pop(CALLS)
    assert (popped.attempt, popped.due_ms, popped.tags) == (1, due_ms, ("x",))
    assert (await bucket.view("a")).priority == 7


async def test_a_new_due_time_counts_from_then_on(bucket: Bucket) -> None:
    await bucket.push(called())
    await put_off(bucket)
    moved = await bucket.reschedule("a", delay_ms=HOUR_MS)
    view = await bucket.view("a")
    assert view.due_ms == view.ready_ms == moved.time_ms
    await bucket.kick("a")
    [popped] = await bucket.pop(CALLS)
    assert popped.due_ms >= view.due_ms - HOUR_MS


async def test_a_retry_has_its_own_due_time(bucket: Bucket) -> None:
    await bucket.push(called())
    await put_off(bucket, delay_ms=1)
    await a_moment()
    await bucket.tick()
    await bucket.pop(CALLS)
    await bucket.release("a", delay_ms=HOUR_MS)
    view = await bucket.view("a")
    assert view.due_ms == view.ready_ms > await bucket.now_ms()


async def test_a_distance_counts_from_its_own_due_time_and_so_does_its_expiry(
    bucket: Bucket,
) -> None:
    await bucket.push(called(expire_ms=HOUR_MS))
    before = await bucket.view("a")
    await put_off(bucket)
    assert (await bucket.view("a")).expire_ms == before.expire_ms
    assert (await bucket.change("a", by_ms=HOUR_MS)).time_ms == before.due_ms + HOUR_MS
    after = await bucket.view("a")
    assert (after.due_ms, after.expire_ms) == (before.due_ms + HOUR_MS, before.expire_ms + HOUR_MS)


async def test_a_new_priority_changes_neither_time(bucket: Bucket) -> None:
    await bucket.push(called())
    await put_off(bucket)
    before = await bucket.view("a")
    assert (await bucket.change("a", priority=3)).time_ms == before.due_ms
    assert await bucket.view("a") == replace(before, priority=3)


async def test_lists_go_by_the_time_until_which_it_waits(bucket: Bucket) -> None:
    await bucket.push(called("a"), job("b", delay_ms=FAR_MS // 2))
    due_ms = (await bucket.view("a")).due_ms
    await put_off(bucket)

    async def listed(due: Range) -> list[str]:
        pages = bucket.pages(Listing("t", "", "delayed", due))
        return [view.id async for page in pages for view in page]

    assert await listed(ALWAYS) == ["b", "a"]
    assert await listed(Range(due_ms - FAR_MS // 4, due_ms + FAR_MS // 4)) == []


async def test_who_takes_it_is_told_when_it_was_due(bucket: Bucket) -> None:
    await bucket.push(called())
    due_ms = (await bucket.view("a")).due_ms
    await put_off(bucket)
    assert [each.view.due_ms for each in await bucket.take()] == [due_ms]


async def test_what_only_looks_as_if_it_had_been_put_off_stays(bucket: Bucket) -> None:
    """Its options hold texts of users."""
    odd = Call(url="https://example.com/", headers={"x": ',"put_off":[1,2]}'})
    await bucket.push(job("a", call=odd, tags=(',"put_off":[1,2]}',)))
    await put_off(bucket, delay_ms=1)
    await a_moment()
    await bucket.tick()
    [popped] = await bucket.pop(CALLS)
    assert (popped.call, popped.tags) == (odd, (',"put_off":[1,2]}',))


async def test_a_server_of_before_puts_it_off_from_the_time_at_which_it_was_tried(
    bucket: Bucket,
) -> None:
    """It writes another time into the record, and leaves the options as they are."""
    await bucket.push(called())
    await put_off(bucket)
    view = await bucket.view("a")
    [raw] = await bucket.redis.hmget(bucket.key("job"), ["a"])
    assert isinstance(raw, bytes)
    record = parse_record(raw)
    assert json.loads(record.options)["put_off"] == [view.due_ms, view.ready_ms]
    moved = record._replace(due_ms=view.ready_ms + 5)
    assert own_due_ms(moved, options_of(moved)) == view.ready_ms + 5
