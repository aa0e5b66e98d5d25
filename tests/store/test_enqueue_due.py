"""enqueue_due: each occurrence of a schedule pushes its job once, whichever servers call and however often."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS, Job
from delayqueue.domain.schedule import CatchUp, Schedule
from delayqueue.engine.fsck import examine
from delayqueue.engine.schedules import CORRECTION_MS, Schedules
from delayqueue.errors import Unavailable
from delayqueue.store.registry import DUE_LIMIT, DueJobs, Enqueued, Entry, OccurrenceJob, Registry
from delayqueue.tasks import cancel_all
from tests.store.bucket import HOUR_MS, Bucket, a_moment, job
from tests.store.turning import DAY_MS, Clock, coarse
from tests.waiting import until_async

DEFINITION = '{"declared": false}'


@pytest.fixture
def registry(bucket: Bucket) -> Registry:
    return bucket.store.registry


async def registered(registry: Registry, bucket: Bucket, time_ms: int = 0) -> Entry:
    """A schedule whose time has come."""
    entry = Entry("s", DEFINITION, time_ms or await bucket.now_ms() - 10)
    assert await registry.register("schedules", entry, "fail") == 0
    return entry


def firing(entry: Entry, next_ms: int | None, *ids: str) -> DueJobs:
    due_ms = entry.time_ms or 0
    jobs = [OccurrenceJob(one, f"{one}~", due_ms) for one in ids]
    return DueJobs(entry, next_ms, Job("t", "", "body", 5000), jobs)


async def test_its_job_has_its_call(bucket: Bucket, registry: Registry) -> None:
    call = Call(url="http://h.example/", headers={"X-Key": "abc"})
    due = firing(await registered(registry, bucket), None, "a")
    due = due._replace(job=replace(due.job, call=call))
    assert (await registry.enqueue_due(due)).done
    await bucket.tick()
    assert await bucket.pop_ids() == []
    [popped] = await bucket.pop(CALLS)
    assert (popped.id, popped.body, popped.call) == ("a", b"body", call)


async def test_a_time_that_has_come_is_seen_until_its_job_is_pushed(
    bucket: Bucket, registry: Registry
) -> None:
    assert (await registry.due_schedules()).wait_ms is None
    entry = await registered(registry, bucket)
    now_ms, wait_ms, entries = await registry.due_schedules()
    assert (entries, wait_ms) == ([entry], 0)
    assert now_ms >= (entry.time_ms or 0)
    assert (await registry.enqueue_due(firing(entry, now_ms + HOUR_MS, "a", "b"))).done
    _, wait_ms, entries = await registry.due_schedules()
    assert entries == []
    assert 0 < (wait_ms or 0) <= HOUR_MS
    await bucket.tick()
    popped = await bucket.pop()
    assert [(one.id, one.body, one.due_ms, one.ttr_ms) for one in popped] == [
        ("a", b"body", entry.time_ms, 5000),
        ("b", b"body", entry.time_ms, 5000),
    ]


async def test_of_schedules_with_large_bodies_some_are_read_at_a_time(
    bucket: Bucket, registry: Registry
) -> None:
    definition, time_ms = "x" * 1_000_000, await bucket.now_ms()
    for n in range(6):
        await registry.register("schedules", Entry(f"s{n}", definition, time_ms - n), "fail")
    await a_moment()
    _, wait_ms, entries = await registry.due_schedules()
    assert ([entry.name for entry in entries or []], wait_ms) == (["s5", "s4", "s3", "s2"], 0)


async def test_of_many_who_push_its_job_one_does(bucket: Bucket, registry: Registry) -> None:
    entry = await registered(registry, bucket)
    wanted = firing(entry, (entry.time_ms or 0) + HOUR_MS, "a")
    assert (
        sum(
            enqueued.done
            for enqueued in await asyncio.gather(*(registry.enqueue_due(wanted) for _ in range(20)))
        )
        == 1
    )
    await bucket.tick()
    assert await bucket.pop_ids() == ["a"]
    await bucket.finish("a")
    assert not (await registry.enqueue_due(wanted)).done  # even if the job is done and forgotten
    assert await bucket.get("a") is None


async def test_a_schedule_that_was_changed_or_dropped_pushes_nothing(
    bucket: Bucket, registry: Registry
) -> None:
    entry = await registered(registry, bucket)
    changed = Entry("s", '{"declared": false, "body": "new"}', entry.time_ms)
    await registry.register("schedules", changed, "replace")
    assert not (await registry.enqueue_due(firing(entry, None, "a"))).done
    await registry.unregister("schedules", "s")
    assert not (await registry.enqueue_due(firing(changed, None, "a"))).done
    assert await bucket.get("a") is None


async def test_the_same_again_keeps_its_time(bucket: Bucket, registry: Registry) -> None:
    entry = await registered(registry, bucket)
    again = entry._replace(time_ms=(entry.time_ms or 0) + HOUR_MS)
    await registry.register("schedules", again, "replace")
    assert (await registry.registered("schedules")).entries == [entry]


async def test_a_schedule_can_come_to_its_end(bucket: Bucket, registry: Registry) -> None:
    entry = await registered(registry, bucket)
    assert (await registry.enqueue_due(firing(entry, None, "a"))).done
    assert (await registry.due_schedules()).wait_ms is None
    assert (await registry.registered("schedules")).entries == [entry._replace(time_ms=None)]


async def test_an_occurrence_may_push_nothing(bucket: Bucket, registry: Registry) -> None:
    entry = await registered(registry, bucket)
    assert (await registry.enqueue_due(firing(entry, (entry.time_ms or 0) + HOUR_MS))).done
    assert await bucket.topic_names() == []


async def test_a_job_of_the_same_id_is_left_alone_and_the_occurrence_has_another(
    bucket: Bucket, registry: Registry
) -> None:
    await bucket.push(job("a", body="mine"), job("b", retain_ms=HOUR_MS, tags=("x",)))
    await bucket.finish("b")
    entry = await registered(registry, bucket)
    assert await registry.enqueue_due(firing(entry, None, "a", "b")) == Enqueued(True, ["a"])
    await bucket.tick()
    found = {one.id: one.body for one in await bucket.pop()}
    assert found == {"a": b"mine", "a~": b"body", "b": b"body"}


@pytest.mark.parametrize("key", ["", "rounds:t", "dq_queue_t", "topics", "timers", "ended"])
async def test_a_broken_key_makes_no_second_job_of_an_occurrence(
    bucket: Bucket, registry: Registry, key: str
) -> None:
    entry = await registered(registry, bucket)
    key = key or ("wheel:t" if bucket.wheel_slots else "delay:t")
    await bucket.redis.delete(bucket.key(key))
    await bucket.spoil(key)
    with suppress(Unavailable):  # `rounds` is the wheel's
        await registry.enqueue_due(firing(entry, None, "a", "b"))
    await examine(bucket.store, lambda *_: None, repair=True)
    await registry.enqueue_due(firing(entry, None, "a", "b"))
    await bucket.tick()
    assert await bucket.pop_ids() == ["a", "b"]


async def test_what_a_file_declares_no_more_pushes_no_more(
    bucket: Bucket, registry: Registry
) -> None:
    declared = Entry("s", '{"declared": true}', await bucket.now_ms())
    assert await registry.declare("schedules", [declared]) == [0]
    assert (await registry.due_schedules()).entries == [declared]
    await registry.declare("schedules", [])
    assert (await registry.due_schedules()).entries == []


async def next_times(schedules: Schedules) -> dict[str, int]:
    return {one.name: round(1000 * (one.next or 0)) for one in await schedules.all()}


@coarse
@pytest.mark.parametrize("is_running", [True, False])
async def test_a_schedule_that_a_clock_far_ahead_has_planned_goes_on_when_it_is_right_again(
    wheel: Bucket, clock: Clock, *, is_running: bool
) -> None:
    schedules = Schedules(wheel.store.registry)
    await schedules.register(Schedule(name="s", topic="t", every_ms=HOUR_MS), "fail")
    task = asyncio.create_task(schedules.run())
    clock.pass_ms(400 * DAY_MS)

    async def has_gone_on() -> bool:
        return clock.now_ms < (await next_times(schedules))["s"] <= clock.now_ms + HOUR_MS

    await until_async(has_gone_on)
    if not is_running:
        await cancel_all([task])
    clock.pass_ms(-400 * DAY_MS)
    if not is_running:
        task = asyncio.create_task(Schedules(wheel.store.registry).run())
    await until_async(has_gone_on)
    await cancel_all([task])


@coarse
async def test_a_clock_that_is_put_back_by_little_repeats_no_occurrence(
    wheel: Bucket, clock: Clock
) -> None:
    schedules = Schedules(wheel.store.registry)
    for name, ahead_ms in (("little", CORRECTION_MS), ("much", CORRECTION_MS + HOUR_MS)):
        clock.pass_ms(ahead_ms)
        await schedules.register(Schedule(name=name, topic="t", every_ms=HOUR_MS), "fail")
        clock.pass_ms(-ahead_ms)
    planned = await next_times(schedules)
    task = asyncio.create_task(schedules.run())

    async def has_looked() -> bool:
        return (await next_times(schedules))["much"] != planned["much"]

    await until_async(has_looked)
    await cancel_all([task])
    assert (await next_times(schedules))["little"] == planned["little"]


@coarse
async def test_occurrences_that_were_missed_come_though_the_body_was_changed_first(
    wheel: Bucket, clock: Clock
) -> None:
    """As a program does that sends its schedules when it starts, after an outage."""
    schedules = Schedules(wheel.store.registry)
    one = Schedule(name="s", topic="t", every_ms=HOUR_MS, catch_up=CatchUp.ALL)
    await schedules.register(one, "fail")
    missed = await schedules.next_ms("s")
    clock.pass_ms(2 * HOUR_MS)
    await schedules.change("s", {"body": "new"})
    assert await schedules.next_ms("s") == missed
    task = asyncio.create_task(schedules.run())

    async def has_caught_up() -> bool:
        return (await next_times(schedules))["s"] > clock.now_ms

    await until_async(has_caught_up)
    await cancel_all([task])
    await wheel.tick()
    popped = await wheel.pop()
    assert [(job.due_ms, job.body) for job in popped] == [
        (missed, b"new"),
        ((missed or 0) + HOUR_MS, b"new"),
    ]


@coarse
async def test_zones_that_this_server_does_not_know_are_left_to_the_others_however_many(
    wheel: Bucket, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    registry = wheel.store.registry
    unknown = Schedule(name="s", topic="t", cron="* * * * *", tz="Mars/Base")
    odd = replace(unknown, name="odd", cron="a newer syntax", tz="UTC")
    many = [replace(unknown, name=f"s{n}") for n in range(DUE_LIMIT)]
    entries = [Entry(one.name, one.definition, clock.now_ms) for one in (*many, odd)]
    for entry in entries:
        await registry.register("schedules", entry, "fail")
    schedules = Schedules(registry)
    await schedules.register(Schedule(name="known", topic="t", every_ms=HOUR_MS), "fail")
    planned = await next_times(schedules)
    task = asyncio.create_task(schedules.run())
    clock.pass_ms(HOUR_MS)

    async def is_pushed() -> bool:
        return await wheel.topic_names() == ["t"]

    await until_async(is_pushed)
    assert not task.done()
    await cancel_all([task])
    found = await next_times(schedules)
    assert {found[entry.name] for entry in entries} == {entries[0].time_ms}
    assert found["known"] > planned["known"]
    assert "does not know the time zone Mars/Base" in caplog.text


@coarse
async def test_a_server_that_starts_corrects_times_that_came_of_other_rules_of_a_zone(
    wheel: Bucket, clock: Clock
) -> None:
    registry = wheel.store.registry
    schedules = Schedules(registry)
    one = Schedule(name="s", topic="t", cron="0 9 * * *", tz="Asia/Shanghai")
    right_ms = one.after(clock.now_ms) or 0
    others = Entry("s", one.definition, right_ms + HOUR_MS)
    await registry.register("schedules", others, "fail")
    task = asyncio.create_task(schedules.run())

    async def is_corrected() -> bool:
        return (await next_times(schedules))["s"] == right_ms

    await until_async(is_corrected)
    await cancel_all([task])
    assert await wheel.topic_names() == []


@coarse
async def test_a_time_whose_schedule_the_store_has_dropped_keeps_no_other_from_its_jobs(
    wheel: Bucket, clock: Clock
) -> None:
    schedules = Schedules(wheel.store.registry)
    for name in ("lost", "kept"):
        await schedules.register(Schedule(name=name, topic=name, every_ms=HOUR_MS), "fail")
    await wheel.redis.hdel(wheel.key("schedules"), "lost")
    task = asyncio.create_task(schedules.run())
    clock.pass_ms(HOUR_MS)

    async def is_pushed() -> bool:
        return await wheel.topic_names() == ["kept"]

    await until_async(is_pushed)
    assert not task.done()
    await cancel_all([task])
    await wheel.redis.zrem(wheel.key("schedule_times"), "lost")  # as fsck does


@coarse
@pytest.mark.parametrize("is_running", [True, False])
async def test_schedules_whose_times_the_store_has_dropped_go_on_but_not_paused_ones(
    wheel: Bucket, clock: Clock, caplog: pytest.LogCaptureFixture, *, is_running: bool
) -> None:
    schedules = Schedules(wheel.store.registry)
    one = Schedule(name="s", topic="t", every_ms=HOUR_MS)
    await schedules.register(one, "fail")
    planned = await schedules.next_ms("s")
    await schedules.register(replace(one, name="paused", paused=True), "fail")
    task = asyncio.create_task(schedules.run())
    clock.pass_ms(HOUR_MS)

    async def has_gone_on() -> bool:
        return (await schedules.next_ms("s")) == (planned or 0) + HOUR_MS

    await until_async(has_gone_on)
    if not is_running:
        await cancel_all([task])
    await wheel.redis.delete(wheel.key("schedule_times"))
    if not is_running:
        task = asyncio.create_task(Schedules(wheel.store.registry).run())
    await until_async(has_gone_on)
    assert await schedules.next_ms("paused") is None
    await cancel_all([task])
    assert "schedule 's' has a new next time: the store has lost" in caplog.text
