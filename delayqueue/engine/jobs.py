"""The verbs on jobs that HTTP, beanstalkd's protocol and delivery call."""

import asyncio
import logging
from asyncio import Future
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Final

from delayqueue.domain.access import Scope
from delayqueue.domain.job import Job, Reserved
from delayqueue.engine.end_waits import EndWait
from delayqueue.engine.polls import Polls
from delayqueue.engine.take_service import TakeService
from delayqueue.engine.workers import Workers
from delayqueue.errors import OF_CODE, Code
from delayqueue.store.listings import Listings, read_jobs
from delayqueue.store.store import Store
from delayqueue.store.topics import Topics
from delayqueue.store.types import (
    JobView,
    Moved,
    Plan,
    Postponement,
    Pushed,
    Recording,
    Reservation,
)
from delayqueue.store.verbs import (
    BURY,
    DELETE,
    DISCARD,
    FINISH,
    GET,
    KICK,
    POSTPONE,
    PUSH,
    RECORD,
    RELEASE,
    RESCHEDULE,
    RESERVE,
    TOUCH,
    Burial,
    Claim,
    Discard,
    Ending,
    Kick,
    Release,
    Reschedule,
    Touch,
)

log = logging.getLogger(__name__)

ONLY: Final = itemgetter(0)  # of the results of one item


class Jobs:
    """The verbs on the jobs of a scope: jobs of other topics do not exist here. DelayQueue.within() makes it.

    Those on topics and tags are in `topics`, the counts of all topics, of any scope, in `census`, those on ranges in
    `listings` and `taking`, those on polls in `polls`. Verbs that name topics do not check them: the
    caller does.

    Verbs that need one call of the store return its Future. Verbs for one job raise the error for its code (NoSuchJob,
    WrongState, StaleReceipt); push, and verbs for many jobs, return a code for each. All raise Unavailable if the store
    does not answer; if only some buckets do not, verbs for many give their jobs that code.
    """

    def __init__(
        self, store: Store, polls: Polls, taking: TakeService, workers: Workers, scope: Scope
    ) -> None:
        self._store = store
        self._workers = workers
        self.scope = scope
        self.taking = taking
        self.census = store.census
        self.topics = Topics(store, scope)
        self.listings = Listings(store, scope)
        self.polls = polls  # they name their topics, whatever the scope

    def check_group(self, job_id: str, group: str) -> None:
        """Raises Invalid if jobs of the group with such ids can be in several buckets."""
        self._store.buckets.check_group(job_id, group)

    def push(self, job: Job) -> Future[Pushed]:
        """Add a job, or replace the one with that id. Returns a code: JOB_EXISTS if `if_exists` is `fail`."""
        return self._store.run_then(PUSH, (job,), self.scope, ONLY)

    def push_many(self, jobs: Sequence[Job]) -> Future[list[Pushed]]:
        """Add many jobs. Returns a code for each."""
        return self._store.run(PUSH, jobs, self.scope)

    def finish(self, jobs: Sequence[Ending]) -> Future[list[int]]:
        """End jobs whose work is done. Returns a code for each."""
        noted = partial(self._workers.note_finished, jobs) if self._workers.in_hand else list
        return self._store.run_then(FINISH, jobs, self.scope, noted)

    def delete(self, jobs: Sequence[Ending]) -> Future[list[int]]:
        """End jobs that are no longer wanted. Returns a code for each."""
        return self._store.run(DELETE, jobs, self.scope)

    def get(self, ids: Sequence[str]) -> Future[list[JobView | None]]:
        """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
        if len(ids) == 1:
            return self._store.run(GET, ids, self.scope)
        return asyncio.create_task(read_jobs(self._store, ids, self.scope), name="get")

    def wait_for_end(self, job_id: str, wait_s: float) -> EndWait:
        """Begin to wait, up to `wait_s`, for a job's end or burial. Whoever calls it takes the answer, or stops."""
        return self.polls.ends.wait(job_id, wait_s, self.scope)

    def release(  # noqa: PLR0913  # everything that can be said about a failed attempt
        self,
        job_id: str,
        nonce: str | None,
        delay_ms: int | None,
        message: str,
        fallback_ms: int | None = None,
        *,
        priority: int | None = None,
        retry_ms: tuple[int, ...] | None = None,
    ) -> Future[int | None]:
        """Give a reserved job back after a failed attempt; nonce None = in any reservation.

        A `priority` replaces the job's own, None = keep it.
        The job waits for `delay_ms`; if that is None, as its schedule says; if it has none, as `retry_ms` says, whose
        end buries it even with a `delay_ms`, or else for `fallback_ms`. Returns its due time; None if its schedule was
        over, so that it is buried, or if it has expired.
        """
        item = Release(job_id, nonce, delay_ms, message, fallback_ms, priority, retry_ms)

        def read(results: Sequence[Moved]) -> int | None:
            if results[0].buried:
                log.warning("job %r is buried: it failed with no retries left", job_id)
            time_ms = _time(results)
            self._workers.note_given_back(job_id, nonce)
            return time_ms

        return self._store.run_then(RELEASE, (item,), self.scope, read)

    def discard(self, job_id: str, created_ms: int | None = None) -> Future[None]:
        """End a job that is no longer wanted, unless it is reserved (WrongState).

        With `created_ms` only the job of that push: raises NoSuchJob if another one has replaced it.
        """
        return self._store.run_then(DISCARD, (Discard(job_id, created_ms),), self.scope, _check)

    def reserve(self, job_id: str) -> Future[Reserved]:
        """Reserve this job, although it may be delayed or buried.

        Raises NoSuchJob if it does not exist or has ended, WrongState if it is reserved.
        """
        return self._store.run_then(
            RESERVE, (Claim(job_id, next(self._store.nonces)),), self.scope, _reserved
        )

    def touch(
        self,
        job_id: str,
        nonce: str | None,
        ttr_ms: int | None,
        percent: float | None = None,
        message: str | None = None,
    ) -> Future[int | None]:
        """Extend a reservation by `ttr_ms` from now, or by the job's own TTR; returns the deadline.

        `percent` and `message` are its progress; None = not told.
        """
        item = Touch(job_id, nonce, ttr_ms, percent, message)
        return self._store.run_then(TOUCH, (item,), self.scope, _time)

    def bury(
        self, job_id: str, nonce: str | None, message: str, *, priority: int | None = None
    ) -> Future[None]:
        """Bury a job; without a nonce, in any state. A `priority` replaces the job's own, None = keep it."""
        item = Burial(job_id, nonce, message, priority)

        def read(results: Sequence[int]) -> None:
            _check(results)
            self._workers.note_given_back(job_id, nonce)
            log.warning("job %r is buried: its worker gave it up", job_id)

        return self._store.run_then(BURY, (item,), self.scope, read)

    def record(self, recording: Recording) -> Future[None]:
        """Record a subscriber's result for a job that is reserved for it, and end the job if it is the last one."""
        return self._store.run_then(RECORD, (recording,), self.scope, _check)

    def postpone(self, postponement: Postponement) -> Future[None]:
        """Give a reserved job back until a failed subscriber may be called again, or bury it."""

        def read(results: Sequence[Moved]) -> None:
            raise_for(results[0].code)
            if results[0].buried:
                log.warning("job %r is buried: its subscribers failed for good", postponement.id)

        return self._store.run_then(POSTPONE, (postponement,), self.scope, read)

    def reschedule(self, ids: Sequence[str], plan: Plan) -> Future[list[Moved]]:
        """Give jobs that are not reserved a new due time, a new priority, or both; an id may occur once only.

        Returns a code and the due time for each.
        """
        items = [Reschedule(job_id, plan) for job_id in ids]
        return self._store.run(RESCHEDULE, items, self.scope)

    def kick(self, ids: Sequence[str], *, body: str | None = None) -> Future[list[int]]:
        """Make buried or delayed jobs ready now, with another `body` if it is not None. Returns a code for each."""
        return self._store.run(KICK, [Kick(job_id, body) for job_id in ids], self.scope)


def raise_for(code: int) -> None:
    """Raise the error that a script's code stands for."""
    if code:
        raise OF_CODE[Code(code)]


def _check(codes: Sequence[int]) -> None:
    raise_for(codes[0])


def _time(results: Sequence[Moved]) -> int | None:
    raise_for(results[0].code)
    return results[0].time_ms


def _reserved(results: Sequence[Reservation]) -> Reserved:
    code, job = results[0]
    if job is None:
        raise OF_CODE[Code(code)]
    return job
