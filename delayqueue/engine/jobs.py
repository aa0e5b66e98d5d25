"""The verbs on jobs that HTTP, beanstalkd's protocol and delivery call."""

import logging
from collections.abc import Coroutine, Iterable, Sequence

from delayqueue.domain.access import Scope
from delayqueue.domain.job import Job, JobView, Reserved
from delayqueue.domain.receipt import HELD_BY_NOBODY, nonce_of
from delayqueue.engine.take_service import TakeService
from delayqueue.engine.wait_queue import Poll
from delayqueue.engine.waiters import Waiters
from delayqueue.errors import OF_CODE, Code
from delayqueue.store.dead_letters import DeadLetters
from delayqueue.store.listings import Listings
from delayqueue.store.search import Search
from delayqueue.store.store import Store
from delayqueue.store.topics import Topics
from delayqueue.store.types import (
    Burial,
    Ending,
    Kick,
    Moved,
    Plan,
    Postponement,
    Recording,
    Release,
    Reschedule,
    Touch,
)

log = logging.getLogger(__name__)


class Jobs:
    """The verbs on the jobs of a scope: jobs of other topics do not exist here. DelayQueue.within() makes it.

    Those on topics and tags are in `topics`, those on ranges in `listings` and `taking`. Verbs that name topics do not
    check them: the caller does.

    Verbs for one job raise the error for its code (NoSuchJob, WrongState, StaleReceipt, JobExists); verbs for many jobs
    return a code for each. All raise Unavailable if the store does not answer; if only some buckets do not, verbs for
    many give their jobs that code.
    """

    def __init__(self, store: Store, waiters: Waiters, taking: TakeService, scope: Scope) -> None:
        self._store = store
        self._waiters = waiters
        self.scope = scope
        self.taking = taking
        self.topics = Topics(store, scope)
        self.listings = Listings(store.by_bucket, scope)
        self.dead_letters = DeadLetters(store.by_bucket)
        self.search = Search(store.by_bucket, scope)

    async def push(self, job: Job) -> None:
        """Add a job, or replace the one with that id. Raises JobExists if `if_exists` is `fail`."""
        [code] = await self._store.push((job,), self.scope)
        raise_for(code)

    def push_many(self, jobs: Sequence[Job]) -> Coroutine[None, None, list[int]]:
        """Add many jobs. Returns a code for each."""
        return self._store.push(jobs, self.scope)

    def pop(
        self, topics: tuple[str, ...], count: int, wait_s: float, *, by_priority: bool = False
    ) -> Coroutine[None, None, list[Reserved]]:
        """Reserve up to `count` ready jobs, by order of topics, or by priority across all of them.

        Waits up to `wait_s` for the first.
        """
        return self._waiters.pop(topics, count, wait_s, by_priority=by_priority)

    def poll(
        self, topics: tuple[str, ...], count: int, wait_s: float, *, by_priority: bool = False
    ) -> Poll:
        """Begin to wait as pop() does. Whoever calls it takes the poll's answer, or leaves."""
        return self._waiters.poll(topics, count, wait_s, by_priority=by_priority)

    def leave(self, poll: Poll) -> None:
        """End a poll whose client is gone: what was reserved for it is put back."""
        self._waiters.leave(poll)

    def requeue(self, jobs: Iterable[Reserved], message: str = "") -> None:
        """Undo reservations whose client is gone: the jobs are ready again at once, and the attempt does not count.

        A job that was reserved by its id before it was due goes back to its time, a buried one is buried again. A
        message is kept with the jobs, among the remarks that belong to no attempt.
        """
        self._waiters.requeue(jobs, message)

    def finish(
        self,
        ids: Sequence[str],
        receipts: Sequence[str],
        message: str = "",
    ) -> Coroutine[None, None, list[int]]:
        """End jobs whose work is done. Returns a code for each.

        A receipt other than "" limits it to that reservation.
        """
        return self._store.finish(_endings(ids, receipts, message), self.scope)

    def delete(
        self,
        ids: Sequence[str],
        receipts: Sequence[str],
        message: str = "",
    ) -> Coroutine[None, None, list[int]]:
        """End jobs that are no longer wanted; receipts and codes as in finish()."""
        return self._store.delete(_endings(ids, receipts, message), self.scope)

    def get(self, ids: Sequence[str]) -> Coroutine[None, None, list[JobView | None]]:
        """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
        return self._store.get(ids, self.scope)

    async def release(  # noqa: PLR0913  # everything that can be said about a failed attempt
        self,
        job_id: str,
        receipt: str,
        delay_ms: int | None,
        message: str,
        fallback_ms: int | None = None,
        *,
        priority: int | None = None,
        retry_ms: tuple[int, ...] | None = None,
    ) -> int | None:
        """Give a reserved job back after a failed attempt. A `priority` replaces the job's own, None = keep it.

        The job waits for `delay_ms`; if that is None, as its schedule says; if it has none, as `retry_ms` says, whose
        end buries it even with a `delay_ms`, or else for `fallback_ms`. Returns its due time; None if its schedule was
        over, so that it is buried, or if it has expired.
        """
        nonce = _nonce(receipt, job_id)
        item = Release(job_id, nonce, delay_ms, message, fallback_ms, priority, retry_ms)
        [moved] = await self._store.release((item,), self.scope)
        if moved.buried:
            log.warning("job %r is buried: it failed with no retries left", job_id)
        return _time_of(moved)

    async def discard(self, job_id: str, created_ms: int | None = None) -> None:
        """End a job that is no longer wanted, unless it is reserved (WrongState).

        With `created_ms` only the job of that push: raises NoSuchJob if another one has replaced it.
        """
        nonce = HELD_BY_NOBODY if created_ms is None else f"{HELD_BY_NOBODY}{created_ms}"
        [code] = await self._store.delete([Ending(job_id, nonce, "")], self.scope)
        raise_for(code)

    async def reserve(self, job_id: str) -> Reserved:
        """Reserve this job, although it may be delayed or buried.

        Raises NoSuchJob if it does not exist or has ended, WrongState if it is reserved.
        """
        [found] = await self._store.reserve((job_id,), self.scope)
        if found.job is None:
            raise OF_CODE[Code(found.code)]
        return found.job

    async def touch(self, job_id: str, receipt: str, ttr_ms: int | None) -> int | None:
        """Extend a reservation by `ttr_ms` from now, or by the job's own TTR; returns the deadline."""
        item = Touch(job_id, _nonce(receipt, job_id), ttr_ms)
        [moved] = await self._store.touch((item,), self.scope)
        return _time_of(moved)

    async def bury(
        self,
        job_id: str,
        receipt: str,
        message: str,
        *,
        priority: int | None = None,
    ) -> None:
        """Bury a job. A `priority` replaces the job's own, None = keep it."""
        item = Burial(job_id, _nonce(receipt, job_id), message, priority)
        [code] = await self._store.bury((item,), self.scope)
        raise_for(code)
        log.warning("job %r is buried: its worker gave it up", job_id)

    async def record(self, recording: Recording) -> None:
        """Record a subscriber's result for a job that is reserved for it."""
        [code] = await self._store.record((recording,))
        raise_for(code)

    async def postpone(self, postponement: Postponement) -> None:
        """Give a reserved job back until a failed subscriber may be called again, or bury it."""
        [moved] = await self._store.postpone((postponement,))
        raise_for(moved.code)
        if moved.buried:
            log.warning("job %r is buried: its subscribers failed for good", postponement.id)

    def reschedule(self, ids: Sequence[str], plan: Plan) -> Coroutine[None, None, list[Moved]]:
        """Give jobs that are not reserved a new due time, a new priority, or both; an id may occur once only.

        Returns a code and the due time for each.
        """
        return self._store.reschedule([Reschedule(job_id, plan) for job_id in ids], self.scope)

    def kick(
        self, ids: Sequence[str], *, body: str | None = None
    ) -> Coroutine[None, None, list[int]]:
        """Make buried or delayed jobs ready now, with another `body` if it is not None. Returns a code for each."""
        return self._store.kick([Kick(job_id, body) for job_id in ids], self.scope)


def raise_for(code: int) -> None:
    """Raise the error that a script's code stands for."""
    if code != Code.OK:
        raise OF_CODE[Code(code)]


def _time_of(moved: Moved) -> int | None:
    raise_for(moved.code)
    return moved.time_ms


def _nonce(receipt: str, job_id: str) -> str:
    return nonce_of(receipt, job_id) if receipt else ""


def _endings(ids: Sequence[str], receipts: Sequence[str], message: str) -> list[Ending]:
    return [
        Ending(job_id, _nonce(receipt, job_id), message)
        for job_id, receipt in zip(ids, receipts, strict=True)
    ]
