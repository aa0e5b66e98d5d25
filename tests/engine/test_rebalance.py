"""Changing the number of buckets: interference, failures on the way, settings of topics."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from delayqueue.config.startup import StartupError
from delayqueue.domain.limit import Limit
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.rebalance import Rebalance
from delayqueue.errors import Code, Invalid, Unavailable
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.following import AnotherChange
from delayqueue.store.bucket.limits import Limits
from delayqueue.store.bucket.migration import Migration
from delayqueue.store.types import Listing
from tests.engine.moving import (
    AFTER,
    BEFORE,
    EVER,
    A,
    B,
    Installation,
    all_jobs,
    before_call,
    nobody,
    pop_all,
    source,
)
from tests.processes import Processes
from tests.store.bucket import HOUR_MS, job
from tests.store.conftest import connect

NAMES = [f"job-{n}" for n in range(300)]


async def with_jobs(ours: Installation, names: Sequence[str] = NAMES) -> Jobs:
    """A server and delayed jobs."""
    queue = all_jobs(ours.server())
    for at in range(0, len(names), 500):
        await queue.push_many([job(name, delay_ms=HOUR_MS) for name in names[at : at + 500]])
    return queue


async def test_fewer_buckets_hold_all_jobs_as_well(ours: Installation) -> None:
    queue = await with_jobs(ours)
    await ours.begin(1)
    assert (await ours.finish()).moved == sum(source(name) == 1 for name in NAMES)
    assert ours.mover.buckets.count == 1
    assert all(await queue.get(NAMES))


async def test_one_change_at_a_time(ours: Installation) -> None:
    await ours.begin()
    late = ours.server().by_bucket
    with pytest.raises(AnotherChange):
        await Rebalance(late, 5).run()
    await late.follow_layout()
    with pytest.raises(StartupError, match="--buckets 3` to the end first"):
        await Rebalance(late, 5).run()


async def test_two_who_move_jobs_at_once_do_not_disturb_each_other(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.push_many([job(name) for name in NAMES])
    await ours.begin()
    other = ours.server().by_bucket
    await other.follow_layout()
    await asyncio.gather(Rebalance(other, AFTER).run(), ours.finish())
    assert sorted(await pop_all(queue, "t")) == sorted(NAMES)


async def test_who_was_held_up_ends_no_later_change(ours: Installation) -> None:
    """It is at its second bucket when another one ends the change, and a third one begins the next."""
    queue = await with_jobs(ours)
    await ours.begin()
    slow = ours.server().by_bucket
    await slow.follow_layout()
    work = Rebalance(slow, AFTER)

    async def overtake() -> None:
        await ours.finish()
        await Rebalance(ours.mover, 5).begin()

    before_call(work._transfers, "ids", 3, overtake)
    with pytest.raises(AnotherChange):
        await work.run()
    await slow.follow_layout()
    assert slow.buckets.layout.moving
    assert all(await queue.get(NAMES))


@pytest.mark.parametrize("which", ["redis", "valkey"])
async def test_a_store_that_starts_again_meanwhile_keeps_no_job_back(
    processes: Processes, which: str
) -> None:
    """A new process has other cursors."""
    store = getattr(processes, which)("--appendonly", "yes")
    names = [f"job-{n}" for n in range(4000)]
    async with connect(store, 0) as redis:
        ours = Installation(redis, "zset")
        queue = await with_jobs(ours, names)
        await ours.begin(8)
        work = Rebalance(ours.mover, 8)

        async def restart() -> None:
            await asyncio.to_thread(store.stop)
            await asyncio.to_thread(store.start)

        before_call(work._transfers, "ids", 3, restart)
        await work.run()
        assert all(await queue.get(names))


async def test_numbers_that_the_store_has_forgotten_are_not_used_again(ours: Installation) -> None:
    """A failover takes the old bucket back to before a job was sent off; the new one has had transfers since."""
    queue = await with_jobs(ours, [A, B])
    await ours.begin()
    keys: Any = [key async for key in ours.redis.scan_iter("{dq_bucket_1}:*")]
    dumps = {key: await ours.redis.dump(key) for key in keys}
    assert await queue.finish([A], [""]) == [Code.OK]
    later: Any = [key async for key in ours.redis.scan_iter("{dq_bucket_1}:*")]
    await ours.redis.delete(*later)
    for key, dump in dumps.items():
        await ours.redis.restore(key, 0, dump or b"")
    assert (await queue.get([B]))[0] is not None


async def test_given_the_number_that_there_is_it_looks_everywhere_for_strays(
    ours: Installation,
) -> None:
    """Also in a bucket that holds no more jobs."""
    stray = next(name for name in NAMES if source(name) == 1)
    queue = await with_jobs(ours, [stray])
    await ours.redis.hset("{dq_bucket_1}:layout", "bucket_size", str(BEFORE))
    await ours.mover.begin_move(1)
    await ours.mover.end_move(ours.mover.buckets.layout)
    assert (await ours.finish()).moved == 1
    assert (await queue.get([stray]))[0] is not None


async def test_a_parcel_goes_on_while_another_bucket_is_away(ours: Installation) -> None:
    queue = await with_jobs(ours, [A])
    await ours.begin()
    await ours.export(A)
    await ours.redis.set("{dq_bucket_2}:sent", "of another type")
    with pytest.raises(Unavailable):
        await Migration(ours.mover, nobody).forward()
    await ours.redis.delete("{dq_bucket_2}:sent")
    assert await ours.redis.hexists("{dq_bucket_3}:job", A)
    assert (await queue.get([A]))[0] is not None


async def test_what_cannot_be_reached_does_not_keep_the_rest_of_an_array(
    ours: Installation,
) -> None:
    """The former bucket of some jobs is away."""
    queue = all_jobs(ours.server())
    await ours.begin()
    await ours.redis.set("{dq_bucket_1}:sent", "of another type")
    await ours.redis.set("{dq_bucket_1}:parcel:2", "of another type")
    codes = [pushed.code for pushed in await queue.push_many([job(name) for name in NAMES])]
    buckets = {source(name) for name, code in zip(NAMES, codes, strict=True) if code == Code.OK}
    assert 1 in buckets
    assert Code.UNAVAILABLE in codes
    await ours.redis.delete("{dq_bucket_1}:sent", "{dq_bucket_1}:parcel:2")


async def test_a_fence_beyond_the_layout_is_told(
    ours: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """The master of bucket 1 has lost its last writes. The next change goes beyond the fence."""
    queue = await with_jobs(ours, [A])
    await ours.redis.zadd("{dq_bucket_1}:fence", {"generation": 7})
    with pytest.raises(Unavailable):
        await queue.push(job(A))
    assert "a bucket knows a later layout than bucket 1" in caplog.text
    await ours.begin()
    assert ours.mover.buckets.layout.generation == 8
    assert (await queue.get([A]))[0] is not None


async def test_a_change_goes_beyond_the_fence_of_a_bucket_that_goes(ours: Installation) -> None:
    await ours.redis.zadd("{dq_bucket_2}:fence", {"generation": 7})
    await ours.begin(1)
    assert ours.mover.buckets.layout.generation == 8
    await ours.finish()


async def test_pauses_and_limits_hold_in_the_new_buckets(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.pause("t", 0)
    await queue.topics.limit("u", {"concurrency": 9})
    await ours.begin()
    await queue.push_many([job(f"{topic}{n}", topic=topic) for n in range(90) for topic in "tu"])
    assert await queue.pop(("t",), 90, 0) == []
    assert len(await pop_all(queue, "u")) == 9
    await ours.finish()
    for bucket in range(AFTER):
        assert (await Limits(ours.mover).all(bucket))["u"] == Limit(concurrency=9)


async def test_pauses_hold_from_the_first_moment_on(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.pause("t", 0)
    work = Rebalance(ours.mover, AFTER)
    # after the change has begun, before anything else is done
    before_call(work._limits, "split_limits", 2, dying)
    with pytest.raises(KeyboardInterrupt):
        await work.begin()
    assert ours.mover.buckets.layout.moving
    await queue.push_many([job(name) for name in NAMES])
    assert await pop_all(queue, "t") == []


async def test_a_pause_that_was_lifted_does_not_come_back(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.pause("t", 0)
    await ours.begin(1)
    await ours.finish()
    await queue.topics.resume("t")
    await Rebalance(ours.mover, BEFORE).run()
    await queue.push_many([job(name) for name in NAMES])
    assert len(await pop_all(queue, "t")) == len(NAMES)


@pytest.mark.parametrize(("verb", "args"), [("pause", ("t", 0)), ("resume", ("t",))])
async def test_what_is_set_meanwhile_stays_set(
    ours: Installation, verb: str, args: tuple[Any, ...]
) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.limit("t", {"rate": 1000})
    if verb == "resume":
        await queue.topics.pause("t", 0)
    await ours.begin()
    work = Rebalance(ours.mover, AFTER)
    before_call(work._limits, "split_limits", 2, partial(getattr(queue.topics, verb), *args))
    await work.run()
    await queue.push_many([job(name) for name in NAMES[:20]])
    assert len(await pop_all(queue, "t")) == (0 if verb == "pause" else 20)


async def test_a_limit_is_checked_by_the_number_that_there_is(ours: Installation) -> None:
    unaware = all_jobs(ours.server())
    await ours.begin(5)
    with pytest.raises(Invalid, match="at least 5"):
        await unaware.topics.limit("t", {"concurrency": 2})
    await ours.finish()
    await unaware.push_many([job(name) for name in NAMES[:20]])
    served = 0
    while jobs := await unaware.pop(("t",), 1, 0):
        await unaware.finish([each.id for each in jobs], [each.receipt for each in jobs])
        served += len(jobs)
    assert served == 20


async def test_a_limit_that_is_too_small_for_so_many_buckets_is_named(ours: Installation) -> None:
    await all_jobs(ours.server()).topics.limit("u", {"concurrency": 2})
    with pytest.raises(StartupError, match="'u': concurrency: must be at least "):
        await ours.begin()
    assert not ours.mover.buckets.layout.moving


async def test_the_whole_of_a_limit_is_there_when_fewer_buckets_are(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.limit("t", {"concurrency": 16})
    await ours.begin(1)
    before_call(ours.mover, "end_move", 1, dying)
    with pytest.raises(KeyboardInterrupt):
        await ours.finish()
    await queue.push_many([job(name) for name in NAMES])
    assert len(await pop_all(queue, "t")) == 16


async def dying() -> None:
    raise KeyboardInterrupt


async def test_settings_that_cannot_be_read_count_as_none(ours: Installation) -> None:
    await ours.redis.hset("{dq_bucket_1}:topics", "t", "no JSON")
    await ours.begin()
    await Rebalance(ours.mover, AFTER).run()
    assert not ours.mover.buckets.layout.moving


async def test_a_listing_goes_on_after_buckets_are_gone(ours: Installation) -> None:
    queue = await with_jobs(ours)
    what, cursor = Listing("t", "", "delayed", EVER), ""
    listed: list[str] = []
    while cursor or not listed:
        jobs, cursor = await queue.listings.list_jobs(what, 10, cursor)
        listed += [view.id for view in jobs]
        if len(listed) == 100:
            await ours.begin(1)
            await ours.finish()
            await queue.get(["to hear of it"])
    assert sorted(listed) == sorted(NAMES)


async def test_there_is_a_timer_for_each_bucket_that_ever_was(ours: Installation) -> None:
    """The layout was read before the fences were up, and followed after everything was over."""
    store = ours.server()
    store.buckets.adopt(Layout(2, 1, (4,), moving=True, fenced=False))
    store.buckets.adopt(Layout(2, 1, (4,)))
    queue = DelayQueue(store)
    store.buckets.adopt(Layout(4, 2, (4, 2), moving=True))
    assert queue.store.buckets.count == 4
    store.notify(3, (await store.by_bucket.pause(3, "t", 5))._replace(next_due_ms=5))


def test_buckets_know_what_was_before() -> None:
    buckets = Buckets("b_%d", "q_%s", Layout(2, 3, (1, 4), moving=True))
    assert (buckets.count, buckets.layout.former_size, len(buckets.keys)) == (4, 4, 4)
