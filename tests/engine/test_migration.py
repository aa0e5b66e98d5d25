"""Jobs on their way to other buckets: each point at which a mover may die, and what servers see meanwhile."""

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import Reserved
from delayqueue.domain.receipt import receipt_for
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.rebalance import Rebalance
from delayqueue.engine.timer import Timer
from delayqueue.errors import Code, Unavailable
from delayqueue.metrics import WAITING_POLLS
from delayqueue.store.bucket.migration import Migration
from delayqueue.store.bucket.recovery import LayoutChanged
from delayqueue.store.bucket.transfers import Transfers
from delayqueue.store.store import Store
from delayqueue.store.types import Demand, Listing, Pushed
from delayqueue.store.verbs import BURY, FINISH, PUSH, Burial, Ending
from delayqueue.tasks import cancel_all
from tests.engine.moving import (
    AFTER,
    BEFORE,
    EVER,
    A,
    B,
    Installation,
    all_jobs,
    nobody,
    source,
    target,
)
from tests.store.bucket import HOUR_MS, STATES, job
from tests.waiting import until


async def put_in(store: Store, state: str, job_id: str, **options: Any) -> None:
    """Push a job and bring it into that state, or `ended`."""
    delay_ms = HOUR_MS if state == "delayed" else 0
    retain_ms = HOUR_MS if state == "ended" else 0
    await store.run(
        PUSH, [job(job_id, delay_ms=delay_ms, retain_ms=retain_ms, **options)], EVERYWHERE
    )
    if state == "reserved":
        await store.by_bucket.pop(store.buckets.of(job_id), [Demand(("t",), 1)])
    if state == "buried":
        await store.run(BURY, [Burial(job_id, "", "why")], EVERYWHERE)
    if state == "ended":
        await store.run(FINISH, [Ending(job_id, "", "done")], EVERYWHERE)


async def look(queue: Jobs, job_id: str) -> Any:
    [view] = await queue.get([job_id])
    return view


@pytest.mark.parametrize("state", [*STATES, "ended"])
async def test_a_job_moves_with_all_that_is_known_of_it(ours: Installation, state: str) -> None:
    server = ours.server()
    options = {"tags": ("order",), "retry_ms": (5, 6), "priority": 7}
    await put_in(server, state, A, expire_ms=2 * HOUR_MS, **options)
    queue = all_jobs(server)
    before = await look(queue, A)
    await ours.begin()
    assert (await ours.finish()).moved == 1
    assert await look(queue, A) == before
    tagged = await queue.listings.list_jobs(Listing("", "order", "", EVER), 9, "")
    assert [view.id for view in tagged[0]] == [A]


async def test_a_receipt_is_good_before_and_after(ours: Installation) -> None:
    process = DelayQueue(server := ours.server())
    queue = process.within(EVERYWHERE)
    for job_id in (A, B):
        await queue.push(job(job_id))
    [first, second] = (await server.by_bucket.pop(0, [Demand(("t",), 2)])).jobs[0]
    await ours.begin()
    assert await queue.finish([first.id], [first.receipt]) == [Code.OK]
    await ours.finish()
    stale = receipt_for("0123456789ab-1", second.id)
    assert await queue.finish([second.id], [stale]) == [Code.STALE_RECEIPT]
    assert await queue.finish([second.id], [second.receipt]) == [Code.OK]
    await process.aclose()


@pytest.mark.parametrize("dies", ["before", "sent", "taken in", "confirmed"])
async def test_wherever_somebody_dies_a_server_finds_the_job(ours: Installation, dies: str) -> None:
    queue = all_jobs(ours.server())
    await queue.push(job(A, delay_ms=HOUR_MS))
    await ours.begin()
    if dies != "before":
        transfer = await ours.export(A)
        if dies != "sent":
            await ours.import_(A, transfer)
        if dies == "confirmed":
            await Transfers(ours.mover).confirm(0, 2, transfer)
    assert (await look(queue, A)).state == "delayed"
    assert await queue.kick([A]) == [Code.OK]
    assert [job.id for job in await queue.pop(("t",), 1, 0)] == [A]
    await ours.finish()


async def test_a_parcel_that_comes_again_brings_nothing_back(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.push(job(A, delay_ms=HOUR_MS))
    await ours.begin()
    transfer = await ours.export(A)
    assert await queue.finish([A], [""]) == [Code.OK]
    await ours.import_(A, transfer)
    assert await look(queue, A) is None
    await ours.finish()
    await ours.import_(A, transfer)
    assert await look(queue, A) is None


async def test_a_parcel_on_its_way_comes_in_place_of_a_new_one(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.push_many([job(A), job(B)])
    await ours.begin()
    first = await ours.export(A)
    again = await ours.export(B)
    assert (again.number, again.parts) == (first.number, first.parts)
    assert await queue.finish([B], [""]) == [Code.OK]
    assert (await look(queue, A)).state == "ready"
    assert await look(queue, B) is None
    await ours.finish()


async def test_a_job_that_is_there_already_stays(ours: Installation) -> None:
    """As after a failover, in which the old bucket's server forgot that it had sent the job off."""
    queue = all_jobs(ours.server())
    await queue.push(job(A, body="old"))
    await ours.begin()
    transfer = await ours.export(A)
    await queue.push(job(A, body="new"))
    late = transfer._replace(number=transfer.number + 1)
    await ours.import_(A, late)
    assert (await look(queue, A)).body == "new"


async def test_what_was_left_on_its_way_is_forwarded(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.push(job(A))
    await ours.begin()
    await ours.export(A)
    assert await Migration(ours.mover, nobody).forward() == 1
    assert [job.id for job in await queue.pop(("t",), 1, 0)] == [A]
    await ours.finish()


async def test_a_server_of_the_old_layout_adds_nothing_to_an_old_bucket(
    ours: Installation,
) -> None:
    server = ours.server()
    await ours.begin()
    with pytest.raises(LayoutChanged):
        await server.by_bucket.run_verb(PUSH, 0, [job(A)], EVERYWHERE)
    await all_jobs(server).push(job(A))
    assert server.buckets.layout == ours.mover.buckets.layout
    assert (await ours.finish()).moved == 0


async def test_a_call_that_waited_behind_the_change_goes_to_the_new_bucket(
    ours: Installation,
) -> None:
    queue = all_jobs(ours.server())
    await ours.begin()
    pushes = [queue.push(job(f"{n}")) for n in range(50)]
    await asyncio.gather(*pushes)
    assert (await ours.finish()).moved == 0


async def test_what_a_bucket_has_done_is_not_done_again_when_it_becomes_the_only_one(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (next(f"{n}" for n in count() if source(f"{n}") == at) for at in (0, 1))
    queue = all_jobs(server := ours.server())
    is_pushed = asyncio.Event()
    reserved: list[Reserved] = []
    run = server.by_bucket.caller.call

    async def change_between(verb: str, bucket: int, *what: Any, **named: Any) -> Any:
        if (verb, bucket) == ("push", 1) and not is_pushed.is_set():
            await is_pushed.wait()
            reserved.extend((await ours.mover.pop(0, [Demand(("t",), 1)])).jobs[0])
            await ours.begin(1)
        answer = await run(verb, bucket, *what, **named)
        if verb == "push":
            is_pushed.set()
        return answer

    def call(*args: Any, **named: Any) -> asyncio.Future[Any]:
        return asyncio.ensure_future(change_between(*args, **named))

    monkeypatch.setattr(server.by_bucket.caller, "call", call)
    assert await queue.push_many([job(first), job(second)]) == [Pushed(Code.OK)] * 2
    [once] = reserved
    assert await queue.finish([once.id], [once.receipt]) == [Code.OK]
    assert [each.id for each in await queue.pop(("t",), 9, 0)] == [second]
    await ours.finish()


async def test_a_cancel_misses_no_job_that_moves_past_it(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the last bucket, which was checked before, to the first; and one is left in a transfer."""
    names = (f"job-{n}" for n in count())
    astray = (name for name in names if (source(name), target(name)) == (1, 0))
    passed, parked = next(astray), A
    queue = all_jobs(server := ours.server())
    await queue.push_many([job(passed, tags=("x",)), job(parked, tags=("x",))])
    await ours.begin()
    await server.by_bucket.follow_layout()
    cancel = server.by_bucket.cancel

    async def move_on(bucket: int, *what: Any) -> Any:
        answer = await cancel(bucket, *what)
        if bucket == 0 and ours.mover.buckets.layout.moving:
            generation = ours.mover.buckets.layout.generation
            await Migration(ours.mover, nobody).carry(1, 0, [passed], generation)
        return answer

    monkeypatch.setattr(server.by_bucket, "cancel", move_on)
    await ours.export(parked)
    assert await queue.topics.cancel("x", "") == 2
    assert await queue.get([passed, parked]) == [None, None]
    await ours.finish()


async def test_a_poll_that_waits_hears_of_jobs_in_buckets_that_are_new(
    ours: Installation,
) -> None:
    process = DelayQueue(ours.server())
    queue = process.within(EVERYWHERE)
    loops = [asyncio.create_task(run()) for run in process.background().values()]
    try:
        poll = asyncio.create_task(queue.pop(("t",), 1, 30))
        await until(lambda: process.metrics.snapshot()[WAITING_POLLS.name] == [[[], 1]])
        await ours.begin()
        await until(lambda: process.store.buckets.count == AFTER)
        other = all_jobs(Store(ours.mover))
        await other.push(job(A, delay_ms=300))
        [popped] = await poll
        assert popped.id == A
    finally:
        await cancel_all(loops)
        await process.aclose()


async def test_a_key_of_another_type_stops_a_job_where_it_is(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.push(job(A, tags=("x",)))
    await ours.begin()
    await ours.redis.set("{dq_bucket_3}:tag:x", "not a set")
    transfer = await ours.export(A)
    with pytest.raises(Unavailable):
        await ours.import_(A, transfer)
    await ours.redis.delete("{dq_bucket_3}:tag:x")
    assert (await look(queue, A)).state == "ready"
    await ours.finish()


async def test_what_a_person_has_to_look_at_moves_as_it_is(ours: Installation) -> None:
    server = ours.server()
    await ours.redis.hset("{dq_bucket_1}:job", A, "no record")
    await ours.redis.zadd("{dq_bucket_1}:broken", {A: 5})
    await ours.begin()
    assert (await ours.finish()).moved == 1
    assert await ours.redis.hget("{dq_bucket_3}:job", A) == b"no record"
    assert await ours.redis.zscore("{dq_bucket_3}:broken", A) == 5
    assert server.buckets.count == BEFORE


async def test_a_job_goes_back_to_the_bucket_that_it_came_from(ours: Installation) -> None:
    process = DelayQueue(ours.server())
    queue = process.within(EVERYWHERE)
    await queue.push(job(A))
    await ours.begin()
    await ours.finish()
    await Rebalance(ours.mover, BEFORE).run()
    await ours.finish()
    [popped] = await queue.pop(("t",), 9, 0)
    queue.requeue([popped])
    await process.aclose()
    assert (await look(queue, A)).state == "ready"


async def test_the_timers_end_although_a_cancellation_gets_lost(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it can while redis-py connects."""
    started = asyncio.Event()

    async def stubborn(_: Timer) -> None:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    monkeypatch.setattr(Timer, "run", stubborn)
    timers = asyncio.create_task(DelayQueue(ours.server()).background()["timers"]())
    await started.wait()
    async with asyncio.timeout(10):
        await cancel_all([timers])
