"""Jobs on their way to other buckets: each point at which somebody may die, and what servers see meanwhile."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

from delayqueue.config import StartupError
from delayqueue.engine.migration import Migration
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.rebalance import Progress, Rebalance
from delayqueue.errors import Code, Unavailable
from delayqueue.limit import Limit
from delayqueue.receipt import receipt_for
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.caller import LayoutChanged
from delayqueue.store.layout import AnotherChange
from delayqueue.store.limits import Limits
from delayqueue.store.parcels import Parcels
from delayqueue.store.scheduler import ZSET, Scheduler
from delayqueue.store.shards import Shards
from delayqueue.store.store import Store
from delayqueue.store.types import Demand, Ending, Listing, Range
from delayqueue.tasks import cancel_all
from tests.store.bucket import HOUR_MS, SCHEDULERS, STATES, WHEEL_SLOTS, job
from tests.store.conftest import connect
from tests.store.invariants import violations
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis

    from delayqueue.store.types import Stir

BEFORE, AFTER = 2, 3  # buckets
EVER: Final = Range(0, 10**15)


def nobody(bucket: int, stir: Stir) -> None:
    """Waits."""


class Installation:
    """A database with two buckets, and what its servers see."""

    def __init__(self, redis: Redis, scheduler: str) -> None:
        self.redis = redis
        self._slots = WHEEL_SLOTS if scheduler == "wheel" else 0
        self._scheduler = Scheduler("wheel", WHEEL_SLOTS) if self._slots else ZSET
        self.mover = self.server()

    def server(self) -> Store:
        """A store that knows the layout of the beginning."""
        buckets = Buckets("dq_bucket_%d", "dq_queue_%s", Layout(BEFORE))
        return Store(Shards.one(self.redis), buckets, self._scheduler)

    async def begin(self, size: int = AFTER) -> None:
        await self.redis.hset("{dq_bucket_1}:layout", "bucket_size", str(BEFORE))
        await Rebalance(self.mover, size).begin()

    async def finish(self) -> Rebalance:
        """Bring all jobs to where they belong, and prove that they are whole there."""
        work = Rebalance(self.mover, self.mover.buckets.layout.size)
        await work.run()
        buckets = self.mover.buckets
        for number, keys in enumerate(buckets.keys):
            found = await violations(self.redis, keys, self._slots, among=buckets.keys)
            assert found == []
            for kind in ("job", "ended"):
                ids: Any = await self.redis.hkeys(f"{keys.tag}:{kind}")
                assert all(buckets.of(job_id.decode()) == number for job_id in ids)
        return work

    async def send_off(self, job_id: str) -> Any:
        """Somebody takes a job out, and dies."""
        return await Parcels(self.mover).send_off(source(job_id), target(job_id), [job_id])

    async def take_in(self, job_id: str, parcel: Any) -> None:
        """Somebody brings a parcel, and dies."""
        await Parcels(self.mover).take_in(source(job_id), target(job_id), parcel)


def source(job_id: str) -> int:
    return Buckets("%d", "%s", Layout(BEFORE)).of(job_id)


def target(job_id: str) -> int:
    return Buckets("%d", "%s", Layout(AFTER)).of(job_id)


def ids(number: int) -> list[str]:
    """So many ids that all go the same way, from the first bucket to the last."""
    names = (f"job-{n}" for n in count())
    mine = (name for name in names if (source(name), target(name)) == (0, 2))
    return [next(mine) for _ in range(number)]


A, B = ids(2)


@pytest.fixture(params=SCHEDULERS)
async def ours(request: pytest.FixtureRequest, valkey_server: Any) -> AsyncIterator[Installation]:
    async with connect(valkey_server) as redis:
        yield Installation(redis, request.param)


async def put_in(store: Store, state: str, job_id: str, **options: Any) -> None:
    """Push a job and bring it into that state, or `ended`."""
    bucket = store.buckets.of(job_id)
    delay_ms = HOUR_MS if state == "delayed" else 0
    retain_ms = HOUR_MS if state == "ended" else 0
    await store.push(bucket, [job(job_id, delay_ms=delay_ms, retain_ms=retain_ms, **options)])
    if state == "reserved":
        await store.pop(bucket, [Demand(("t",), 1)])
    if state == "buried":
        await store.bury(bucket, [Ending(job_id, "", "why")])
    if state == "ended":
        await store.finish(bucket, [Ending(job_id, "", "done")])


async def look(queue: DelayQueue, job_id: str) -> Any:
    [view] = await queue.get([job_id])
    return view


async def pop_all(queue: DelayQueue, topic: str) -> list[str]:
    """The ids of all ready jobs; each bucket answers for itself."""
    popped: list[str] = []
    while jobs := await queue.pop((topic,), 1000, 0):
        popped += [job.id for job in jobs]
    return popped


@pytest.mark.parametrize("state", [*STATES, "ended"])
async def test_a_job_moves_with_all_that_is_known_of_it(ours: Installation, state: str) -> None:
    server = ours.server()
    await put_in(server, state, A, tags=("order",), retry_ms=(5, 6), expire_ms=2 * HOUR_MS)
    queue = DelayQueue(server)
    before = await look(queue, A)
    await ours.begin()
    assert (await ours.finish()).moved == 1
    assert await look(queue, A) == before
    tagged = await queue.topics.list_jobs(Listing("", "order", "", EVER), 9, "")
    assert [view.id for view in tagged[0]] == [A]


async def test_a_receipt_is_good_before_and_after(ours: Installation) -> None:
    queue = DelayQueue(server := ours.server())
    for job_id in (A, B):
        await queue.push(job(job_id))
    [first, second] = (await server.pop(0, [Demand(("t",), 2)])).jobs[0]
    await ours.begin()
    assert await queue.finish([first.id], [first.receipt]) == [Code.OK]
    await ours.finish()
    stale = receipt_for("0123456789ab-1", second.id)
    assert await queue.finish([second.id], [stale]) == [Code.STALE_RECEIPT]
    assert await queue.finish([second.id], [second.receipt]) == [Code.OK]
    await queue.aclose()


@pytest.mark.parametrize("dies", ["before", "sent", "taken in", "confirmed"])
async def test_wherever_somebody_dies_a_server_finds_the_job(ours: Installation, dies: str) -> None:
    queue = DelayQueue(ours.server())
    await queue.push(job(A, delay_ms=HOUR_MS))
    await ours.begin()
    if dies != "before":
        parcel = await ours.send_off(A)
        if dies != "sent":
            await ours.take_in(A, parcel)
        if dies == "confirmed":
            await Parcels(ours.mover).confirm(0, 2, parcel)
    assert (await look(queue, A)).state == "delayed"
    assert await queue.kick([A]) == [Code.OK]
    assert [job.id for job in await queue.pop(("t",), 1, 0)] == [A]
    await ours.finish()


async def test_a_parcel_that_comes_again_brings_nothing_back(ours: Installation) -> None:
    queue = DelayQueue(ours.server())
    await queue.push(job(A, delay_ms=HOUR_MS))
    await ours.begin()
    parcel = await ours.send_off(A)
    assert await queue.finish([A], [""]) == [Code.OK]
    await ours.take_in(A, parcel)
    assert await look(queue, A) is None
    await ours.finish()
    await ours.take_in(A, parcel)
    assert await look(queue, A) is None


async def test_a_parcel_on_its_way_comes_in_place_of_a_new_one(ours: Installation) -> None:
    queue = DelayQueue(ours.server())
    await queue.push_many([job(A), job(B)])
    await ours.begin()
    first = await ours.send_off(A)
    again = await ours.send_off(B)
    assert (again.number, again.parts) == (first.number, first.parts)
    assert await queue.finish([B], [""]) == [Code.OK]
    assert (await look(queue, A)).state == "ready"
    assert await look(queue, B) is None
    await ours.finish()


async def test_a_job_that_is_there_already_stays(ours: Installation) -> None:
    """As after a failover, in which the old bucket's server lost that it had sent the job off."""
    queue = DelayQueue(ours.server())
    await queue.push(job(A, body="old"))
    await ours.begin()
    parcel = await ours.send_off(A)
    await queue.push(job(A, body="new"))
    late = parcel._replace(number=parcel.number + 1)
    await ours.take_in(A, late)
    assert (await look(queue, A)).body == "new"


async def test_what_was_left_on_its_way_is_forwarded(ours: Installation) -> None:
    queue = DelayQueue(ours.server())
    await queue.push(job(A))
    await ours.begin()
    await ours.send_off(A)
    assert await Migration(ours.mover, nobody).forward() == 1
    assert [job.id for job in await queue.pop(("t",), 1, 0)] == [A]
    await ours.finish()


async def test_a_server_of_the_old_layout_adds_nothing_to_an_old_bucket(
    ours: Installation,
) -> None:
    server = ours.server()
    await ours.begin()
    with pytest.raises(LayoutChanged):
        await server.push(0, [job(A)])
    await DelayQueue(server).push(job(A))
    assert server.buckets.layout == ours.mover.buckets.layout
    assert (await ours.finish()).moved == 0


async def test_a_call_that_waited_behind_the_change_goes_to_the_new_bucket(
    ours: Installation,
) -> None:
    queue = DelayQueue(ours.server())
    await ours.begin()
    pushes = [queue.push(job(f"{n}")) for n in range(50)]
    await asyncio.gather(*pushes)
    assert (await ours.finish()).moved == 0


async def test_a_cancel_misses_no_job_that_moves_past_it(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the last bucket, which was looked at before, to the first; and one is left in a parcel."""
    names = (f"job-{n}" for n in count())
    astray = (name for name in names if (source(name), target(name)) == (1, 0))
    passed, parked = next(astray), A
    queue = DelayQueue(server := ours.server())
    await queue.push_many([job(passed, tags=("x",)), job(parked, tags=("x",))])
    await ours.begin()
    await server.follow_layout()
    cancel = server.cancel

    async def move_on(bucket: int, *what: Any) -> Any:
        answer = await cancel(bucket, *what)
        if bucket == 0 and ours.mover.buckets.layout.moving:
            await Migration(ours.mover, nobody).carry(1, 0, [passed])
        return answer

    monkeypatch.setattr(server, "cancel", move_on)
    await ours.send_off(parked)
    assert await queue.topics.cancel("x", "") == 2
    assert await queue.get([passed, parked]) == [None, None]
    await ours.finish()


async def test_a_poll_that_waits_hears_of_jobs_in_buckets_that_are_new(
    ours: Installation,
) -> None:
    queue = DelayQueue(ours.server())
    loops = [asyncio.create_task(run()) for run in queue.background().values()]
    try:
        poll = asyncio.create_task(queue.pop(("t",), 1, 30))
        await until(lambda: queue.waiting_polls == 1)
        await ours.begin()
        await until(lambda: queue.bucket_count == AFTER)
        other = DelayQueue(ours.mover)
        await other.push(job(A, delay_ms=300))
        [popped] = await poll
        assert popped.id == A
    finally:
        await cancel_all(loops)
        await queue.aclose()


async def test_fewer_buckets_hold_all_jobs_as_well(ours: Installation) -> None:
    queue = DelayQueue(ours.server())
    names = [f"job-{n}" for n in range(600)]
    await queue.push_many([job(name, delay_ms=HOUR_MS) for name in names])
    await ours.begin(1)
    work = await ours.finish()
    assert work.moved == sum(source(name) == 1 for name in names)
    assert work.progress == Progress(2, 2, work.moved, work.moved)
    assert ours.mover.buckets.count == 1
    assert all(await queue.get(names))


async def test_pauses_and_limits_hold_in_the_new_buckets(ours: Installation) -> None:
    queue = DelayQueue(ours.server())
    await queue.topics.pause("t", 0)
    await queue.topics.limit("u", {"concurrency": 9})
    await ours.begin()
    await queue.push_many([job(f"{topic}{n}", topic=topic) for n in range(90) for topic in "tu"])
    assert await queue.pop(("t",), 90, 0) == []
    assert len(await pop_all(queue, "u")) == 9
    await ours.finish()
    for bucket in range(AFTER):
        assert (await Limits(ours.mover).all(bucket))["u"] == Limit(concurrency=9)


async def test_a_limit_that_is_too_small_for_so_many_buckets_is_named(ours: Installation) -> None:
    await DelayQueue(ours.server()).topics.limit("u", {"concurrency": 2})
    with pytest.raises(StartupError, match="'u' has a concurrency of 2"):
        await ours.begin()
    assert not ours.mover.buckets.layout.moving


async def test_one_change_at_a_time(ours: Installation) -> None:
    await ours.begin()
    late = ours.server()
    with pytest.raises(AnotherChange):
        await Rebalance(late, 5).run()
    await late.follow_layout()
    with pytest.raises(StartupError, match="--buckets 3` to its end first"):
        await Rebalance(late, 5).run()


async def test_two_who_move_jobs_at_once_do_not_disturb_each_other(ours: Installation) -> None:
    names = [f"job-{n}" for n in range(900)]
    queue = DelayQueue(ours.server())
    await queue.push_many([job(name) for name in names])
    await ours.begin()
    other = ours.server()
    await other.follow_layout()
    await asyncio.gather(Rebalance(other, AFTER).run(), ours.finish())
    assert sorted(await pop_all(queue, "t")) == sorted(names)


async def test_a_key_of_another_type_stops_a_job_where_it_is(ours: Installation) -> None:
    queue = DelayQueue(ours.server())
    await queue.push(job(A, tags=("x",)))
    await ours.begin()
    await ours.redis.set("{dq_bucket_3}:tag:x", "not a set")
    parcel = await ours.send_off(A)
    with pytest.raises(Unavailable):
        await ours.take_in(A, parcel)
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
    queue = DelayQueue(ours.server())
    await queue.push(job(A))
    await ours.begin()
    await ours.finish()
    await Rebalance(ours.mover, BEFORE).run()
    await ours.finish()
    [popped] = await queue.pop(("t",), 9, 0)
    queue.put_back([popped])
    await queue.aclose()
    assert (await look(queue, A)).state == "ready"
