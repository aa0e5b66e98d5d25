"""The delay queue inside one server process: the verbs that HTTP and push delivery call."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import copy
from typing import Self, TypeVar

from delayqueue.access import Scope
from delayqueue.engine.caretaker import Caretaker
from delayqueue.engine.heartbeat import Heartbeat, ServerView
from delayqueue.engine.listings import Listings
from delayqueue.engine.lookup import Lookup
from delayqueue.engine.migration import Migration
from delayqueue.engine.schedules import Schedules
from delayqueue.engine.spread import Spread
from delayqueue.engine.subscribers import Subscribers
from delayqueue.engine.taking import Taking
from delayqueue.engine.timer import INTERVAL_S, Timer
from delayqueue.engine.topics import Topics
from delayqueue.engine.waiters import Waiters
from delayqueue.errors import OF_CODE, Code
from delayqueue.job import Job, JobView, Reserved
from delayqueue.metrics import BUCKETS_AWAY, TICK_AGE, WAITING_POLLS
from delayqueue.receipt import nonce_of
from delayqueue.store.registry import Registry
from delayqueue.store.results import Results
from delayqueue.store.store import Store
from delayqueue.store.types import (
    Ending,
    Health,
    Moved,
    Postponement,
    Recording,
    Release,
    Reschedule,
    Stir,
    Touch,
)
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

LOST: int = Code.UNAVAILABLE  # the code of jobs whose bucket does not answer while others do
READY_TICKS = 5  # a timer that has not ticked for so many intervals is not ready


class DelayQueue:
    """The verbs on jobs; those on topics and tags are in `topics`, those on ranges in `listings`
    and `taking`.

    Verbs for one job raise what its code means (NoSuchJob, WrongState, StaleReceipt, JobExists); those for many return
    a code for each. All raise Unavailable where the store does not answer; where only some buckets do not, those for
    many give their jobs that code.
    """

    def __init__(
        self,
        store: Store,
        max_polls: int = 0,
        name: str = "",
        *,
        buried_retain_ms: int | None = None,
    ) -> None:
        self.metrics = store.metrics
        self.metrics.show(WAITING_POLLS, lambda: self._waiters.waiting)
        self.metrics.show(TICK_AGE, self._tick_age_s)
        self.metrics.show(BUCKETS_AWAY, lambda: len(self.stale_buckets()))
        self._migration = Migration(store, self._stir)
        self._waiters = Waiters(store, self._migration, self._stir, max_polls)
        self.taking = Taking(store, self._migration, self._stir)
        self._timers: list[Timer] = []
        self._buried_retain_ms = buried_retain_ms
        self._grown = asyncio.Event()  # there are more timers
        self._heartbeat = Heartbeat(store, self.metrics, name)
        self._spread(store)
        self._grow()
        store.buckets.on_growth(self._grow)

    def confined(self, scope: Scope) -> Self:
        """The same queue for a client that may reach some topics only.

        Verbs by id find no other jobs; verbs that name a topic must have been checked before.
        """
        view = copy(self)
        view._spread(self._store.confined(scope))
        return view

    def _spread(self, store: Store) -> None:
        self._store = store
        self._pushes = Spread(self._migration, self._stirring(store.push), "push", LOST, _bytes_of)
        self._finishes = Spread(self._migration, self._stirring(store.finish), "finish", LOST)
        self._deletes = Spread(self._migration, self._stirring(store.delete), "delete", LOST)
        self._buries = Spread(self._migration, self._stirring(store.bury), "bury")
        self._releases = Spread(self._migration, self._stirring(store.release), "release")
        self._touches = Spread(self._migration, store.touch, "touch")
        results = Results(store)
        self._recordings = Spread(self._migration, results.record, "record")
        self._postponements = Spread(self._migration, self._stirring(results.postpone), "postpone")
        self._reschedules = Spread(
            self._migration, self._stirring(store.reschedule), "reschedule", Moved(LOST, None)
        )
        self._kicks = Spread(self._migration, self._stirring(store.kick), "kick", LOST)
        self._lookup = Lookup(store, self._migration)
        self.listings = Listings(store)
        self.topics = Topics(store, self._migration, self._stir)
        registry = Registry(store)
        self.subscribers = Subscribers(registry)
        self.schedules = Schedules(registry, self._migration, self._stir)

    async def push(self, job: Job) -> None:
        """Add a job, or replace the one of that id. JobExists where `if_exists` is `fail`."""
        raise_for(await self._pushes.one(job.id, job))

    async def push_many(self, jobs: Sequence[Job]) -> list[int]:
        """Add many jobs; a code for each."""
        return await self._pushes.many([job.id for job in jobs], jobs)

    def pop(
        self, topics: tuple[str, ...], count: int, wait_s: float
    ) -> Coroutine[None, None, list[Reserved]]:
        """Reserve up to `count` ready jobs of the topics, in their order; wait up to `wait_s` for the first."""
        return self._waiters.pop(topics, count, wait_s)

    def put_back(self, jobs: Iterable[Reserved]) -> None:
        """Undo reservations whose client is gone: they are ready again at once, the attempt uncounted."""
        self._waiters.requeue(jobs)

    async def finish(
        self, ids: Sequence[str], receipts: Sequence[str], message: str = ""
    ) -> list[int]:
        """End jobs whose work is done; a code for each. A receipt that is not "" limits it to that reservation."""
        return await self._finishes.many(ids, _endings(ids, receipts, message))

    async def delete(
        self, ids: Sequence[str], receipts: Sequence[str], message: str = ""
    ) -> list[int]:
        """End jobs that are not wanted any more; receipts and codes as in finish()."""
        return await self._deletes.many(ids, _endings(ids, receipts, message))

    async def get(self, ids: Sequence[str]) -> list[JobView | None]:
        """All that is known of jobs, None for an unknown id; only of the first ones where all would be too large."""
        return await self._lookup.get(ids)

    async def release(
        self,
        job_id: str,
        receipt: str,
        delay_ms: int | None,
        message: str,
        fallback_ms: int | None = None,
    ) -> int | None:
        """Give a reserved job back after a failed attempt.

        It waits for `delay_ms`; where that is None, as its schedule says; where it has none, for `fallback_ms`. Returns
        its due time, None where the schedule was over, so that it is buried, or nobody needs it any more.
        """
        item = Release(job_id, _nonce(receipt, job_id), delay_ms, message, fallback_ms)
        moved = await self._releases.one(job_id, item)
        if moved.buried:
            log.warning("job %r is buried: it failed at the end of its schedule", job_id)
        return _time_of(moved)

    async def touch(self, job_id: str, receipt: str, ttr_ms: int | None) -> int | None:
        """Extend a reservation by `ttr_ms` from now, or by the job's own TTR; returns the deadline."""
        item = Touch(job_id, _nonce(receipt, job_id), ttr_ms)
        return _time_of(await self._touches.one(job_id, item))

    async def bury(self, job_id: str, receipt: str, message: str) -> None:
        """Give a job up; it is kept for a person."""
        item = Ending(job_id, _nonce(receipt, job_id), message)
        raise_for(await self._buries.one(job_id, item))
        log.warning("job %r is buried: who worked on it has given it up", job_id)

    async def record(self, recording: Recording) -> None:
        """Record how a subscriber fared with a job that is reserved for it."""
        raise_for(await self._recordings.one(recording.id, recording))

    async def postpone(self, postponement: Postponement) -> None:
        """Give a reserved job back until a subscriber that failed may be called again, or bury it."""
        moved = await self._postponements.one(postponement.id, postponement)
        raise_for(moved.code)
        if moved.buried:
            log.warning("job %r is buried: subscribers have failed for good", postponement.id)

    async def reschedule(
        self, ids: Sequence[str], delay_ms: int, due_ms: int | None
    ) -> list[Moved]:
        """Give jobs that are not reserved a new due time, `due_ms`, or `delay_ms` from now; a code and it for each."""
        items = [Reschedule(job_id, delay_ms, due_ms) for job_id in ids]
        return await self._reschedules.many(ids, items)

    async def kick(self, ids: Sequence[str]) -> list[int]:
        """Make buried or delayed jobs ready now; a code for each."""
        return await self._kicks.many(ids, ids)

    @property
    def waiting_polls(self) -> int:
        """How many polls wait in this process."""
        return self._waiters.waiting

    async def servers(self) -> list[ServerView]:
        """All server processes on this store."""
        return await self._heartbeat.servers()

    async def health(self) -> Health:
        """What the store says of itself."""
        return await self._store.health()

    @property
    def doubts(self) -> Sequence[str]:
        """Why a failover could lose an acknowledged job right now, where `durability` asks that it does not."""
        return self._store.doubts

    def _tick_age_s(self) -> float | None:
        """Since the oldest of the buckets' last ticks; None where one has not ticked yet."""
        return _oldest_age_s([timer.last_tick_at for timer in self._timers[: self.bucket_count]])

    def try_age_s(self) -> float | None:
        """Since the oldest of the timers' last tries to tick; None where one has not tried yet.

        It stays small while the store is away: only a timer that hangs makes it grow.
        """
        return _oldest_age_s([timer.last_try_at for timer in self._timers[: self.bucket_count]])

    @property
    def bucket_count(self) -> int:
        """How many buckets there are."""
        return self._store.buckets.count

    def stale_buckets(self) -> list[int]:
        """Buckets that do not work: their timer has not ticked of late, or their store takes nothing in.

        A tick writes only what is due, so a store with a full disk goes on answering. The heartbeat writes to the first
        bucket every two seconds; if nothing arrives there, this holds for all buckets of that server.
        """
        oldest = asyncio.get_running_loop().time() - READY_TICKS * INTERVAL_S
        stale = {
            bucket
            for bucket, timer in enumerate(self._timers[: self.bucket_count])
            if timer.last_tick_at is None or timer.last_tick_at < oldest
        }
        noted_at = self._heartbeat.noted_at
        if noted_at is None or noted_at < oldest:
            stale.update(self._store.beside(0))
        return sorted(stale)

    def background(self) -> dict[str, Callable[[], Coroutine[None, None, None]]]:
        """The loops that must run for the queue to live, by name; the server owns the tasks."""
        return {
            "wakeups": self._listen,
            "heartbeat": self._heartbeat.run,
            "schedules": self.schedules.run,
            "migration": self._migration.run,
            "timers": self._run_timers,
        }

    async def aclose(self) -> None:
        """Answer every waiting poll with nothing; nothing that was reserved for one stays reserved."""
        await self._waiters.close()
        await self.taking.close()

    async def _listen(self) -> None:
        """Other processes' messages wake polls here; what may have been missed is asked for."""
        await self._store.listen(self._waiters.wake, self._waiters.resync)

    def _grow(self) -> None:
        """There may be more buckets: tick them, and let polls ask them."""
        for bucket in range(len(self._timers), len(self._store.buckets.keys)):
            care = Caretaker(bucket, self._store, self._stir).step
            resync = self._waiters.resync
            retain_ms = self._buried_retain_ms
            self._timers.append(Timer(bucket, self._store, self._stir, resync, care, retain_ms))
        self._waiters.grow()
        self._grown.set()

    async def _run_timers(self) -> None:
        """Each in a task of its own; one that dies ends all.

        No TaskGroup: it cancels its tasks once, and that can get lost (tasks.py).
        """
        tasks: list[asyncio.Task[None]] = []
        growth = asyncio.create_task(self._grown.wait(), name="growth")
        try:
            while True:
                for bucket in range(len(tasks), len(self._timers)):
                    run = self._timers[bucket].run()
                    tasks.append(asyncio.create_task(run, name=f"timer {bucket}"))
                await asyncio.wait([growth, *tasks], return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    if task.done():
                        task.result()
                self._grown.clear()
                growth = asyncio.create_task(self._grown.wait(), name="growth")
        finally:
            await cancel_all([growth, *tasks])

    def _stir(self, bucket: int, stir: Stir) -> None:
        """A change in the store: wake those who wait for it."""
        if stir.next_due_ms is not None:
            self._timers[bucket].arm(stir.next_due_ms)
        for topic, arrived in stir.ready:
            self._waiters.wake(bucket, topic, arrived)

    def _stirring(
        self, change: Callable[[int, list[Item]], Awaitable[tuple[list[Result], Stir]]]
    ) -> Callable[[int, list[Item]], Awaitable[list[Result]]]:
        """The same change of a bucket; those who wait for what it stirs hear of it."""

        async def run(bucket: int, items: list[Item]) -> list[Result]:
            results, stir = await change(bucket, items)
            self._stir(bucket, stir)
            return results

        return run


def _oldest_age_s(times: Sequence[float | None]) -> float | None:
    """Since the oldest of these loop times; None where one is None."""
    known = [at for at in times if at is not None]
    return asyncio.get_running_loop().time() - min(known) if len(known) == len(times) else None


def raise_for(code: int) -> None:
    """Raise the error that a script's code stands for."""
    if code != Code.OK:
        raise OF_CODE[Code(code)]


def _time_of(moved: Moved) -> int | None:
    raise_for(moved.code)
    return moved.time_ms


def _nonce(receipt: str, job_id: str) -> str:
    return nonce_of(receipt, job_id) if receipt else ""


def _bytes_of(job: Job) -> int:
    return len(job.body)


def _endings(ids: Sequence[str], receipts: Sequence[str], message: str) -> list[Ending]:
    return [
        Ending(job_id, _nonce(receipt, job_id), message)
        for job_id, receipt in zip(ids, receipts, strict=True)
    ]
