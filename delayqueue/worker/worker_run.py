"""One run of a worker: takes jobs from a server, runs their handlers, and reports how they ended."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from delayqueue.client.api_request import TransportError
from delayqueue.client.times import seconds
from delayqueue.domain.job import MAX_BATCH, MAX_POP_TOPICS
from delayqueue.errors import Invalid, NoSuchJob, QueueError, StaleReceipt, TooMany, Unavailable
from delayqueue.tasks import at_most, batched, cancel_all, left_when
from delayqueue.worker.executor import Executor
from delayqueue.worker.progress import ProgressReporter
from delayqueue.worker.verdict import Buried, Finished, Released, is_order, with_traceback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.times import Seconds
    from delayqueue.worker.figures import WorkerFigures
    from delayqueue.worker.handled_job import Tell
    from delayqueue.worker.handlers import Handlers
    from delayqueue.worker.process_limits import ProcessLimits
    from delayqueue.worker.verdict import Verdict

T = TypeVar("T")

log = logging.getLogger(__name__)

POLL_S: Final = 30.0  # length of a poll; the order of topics changes between polls
RETRY_S: Final = 1.0  # before the next poll or touch while the server is unavailable
FIRST_RETRY_S: Final = 0.5  # before the next report of a job's end; doubled up to RETRY_S
LONGEST_RETRY_S: Final = 5.0
LEAVE_S: Final = 1.0  # for jobs that the server has sent when the worker stops
CANCEL_S: Final = 1.0  # for handlers that are cancelled at the end
FIRST_TOUCH_S: Final = 0.4  # most jobs are done by then and cost nothing; the shortest TTR is 1 s
TOUCHES_PER_TTR: Final = 3
ENDS: Final = {Finished: "finished", Released: "released", Buried: "buried"}
# how an error begins that is about its name, which an older server does not know
NAMED: Final = "worker"
TTR_EXPIRED: Final = "ttr expired"  # the server's message for a job whose worker has died


class WorkerRun:
    """One run of a worker; `context` is what its lifespan yields, `described` what the server is told of it."""

    def __init__(
        self,
        handlers: Handlers,
        client: AsyncClient,
        described: dict[str, Any],
        context: Any,
        *,
        figures: WorkerFigures,
        limits: ProcessLimits,
    ) -> None:
        self._handlers = handlers
        self._polls = [*batched(handlers.topics, MAX_POP_TOPICS)]
        self._client = client
        self._changed = asyncio.Event()
        self._executor = Executor(freed=self._changed.set)
        self._described: dict[str, Any] | None = described  # None = the server refuses it
        self._concurrency: int = described["concurrency"]
        self._context = context
        self._figures = figures
        self._limits = limits
        self._enough = asyncio.Event()  # a limit is reached
        self._leaving = asyncio.Event()  # no more polls
        self._slots = asyncio.Semaphore(self._concurrency)
        self._dropped: set[asyncio.Task[None]] = set()  # jobs whose handlers this cancels
        self._running: set[asyncio.Task[None]] = set()
        self._reporting: set[asyncio.Task[None]] = set()  # jobs whose handlers are done

    async def work(self, stop: asyncio.Event, grace: Seconds) -> None:
        """Work until `stop` is set, and up to `grace` longer, or until a limit is reached and all jobs in hand end.

        If cancelled, end at once.
        """
        log.info("waiting for jobs of %s at %s", ", ".join(self._handlers.topics), self._client.url)
        polling = asyncio.create_task(self._poll(), name="poll")
        stopping = asyncio.create_task(stop.wait(), name="stop")
        enough = asyncio.create_task(self._enough.wait(), name="limit")
        try:
            await asyncio.wait([polling, stopping, enough], return_when=asyncio.FIRST_COMPLETED)
            await self._leave(polling)
            if left := self._in_hand():
                log.info("stopping; jobs still running: %d", len(left))
                if self._enough.is_set():  # nobody waits for its end
                    async with left_when(stop):
                        await asyncio.wait(left)
                await asyncio.wait(left, timeout=seconds(grace))
        finally:
            await cancel_all([polling, stopping, enough])
            await self._abandon(self._in_hand())
        if not polling.cancelled():
            polling.result()  # raises: it ends by itself only if it has a bug

    def _in_hand(self) -> set[asyncio.Task[None]]:
        return {task for task in self._running | self._reporting if not task.done()}

    async def _leave(self, polling: asyncio.Task[None]) -> None:
        """Take what the server has sent already; what it has reserved since returns to its list."""
        self._leaving.set()
        self._client.stop_polls()
        self._changed.set()
        await asyncio.wait([polling], timeout=LEAVE_S)
        await cancel_all([polling])

    async def _abandon(self, late: set[asyncio.Task[None]]) -> None:
        for task in late:
            self._drop(task)
        if late:
            log.warning("%d jobs did not end in time; they are delivered again", len(late))
            await asyncio.wait(late, timeout=CANCEL_S)

    async def _poll(self) -> None:
        for turn in count():  # so that no topic is always last
            if not (free := await self._wait_for_room()):
                return
            polls = [_rotated(topics, turn) for topics in _rotated(self._polls, turn)]
            try:
                await (
                    self._take(polls[0], free, POLL_S)
                    if len(polls) == 1
                    else self._take_from_any(polls)
                )
            except (QueueError, TransportError) as error:
                if self._leaving.is_set():
                    return
                if self._described and isinstance(error, Invalid) and str(error).startswith(NAMED):
                    self._described = None
                    log.warning(
                        "the server does not take the worker's name; it polls without it: %s", error
                    )
                    continue
                log.warning("cannot fetch jobs: %s", error)
                async with at_most(_pause_s(error)):
                    await self._leaving.wait()

    async def _take(self, topics: Sequence[str], most: int, wait_s: float) -> int:
        """Take up to `most` jobs and begin with them. Returns how many came."""
        jobs = await self._client.pop_many(*topics, count=most, wait=wait_s, worker=self._described)
        for job in jobs:
            task = asyncio.create_task(self._work(job), name=f"job {job.id}")
            self._running.add(task)
            task.add_done_callback(self._done)
        return len(jobs)

    async def _take_from_any(self, polls: Sequence[Sequence[str]]) -> None:
        """Take what is ready for any of several polls; if there is nothing, wait in all of them for the first job."""
        found = False
        for topics in polls:
            if (free := self._room()) > 0 and not self._leaving.is_set():
                found = bool(await self._take(topics, min(free, MAX_BATCH), 0)) or found
        if found or self._leaving.is_set():
            return
        takes = [asyncio.create_task(self._take(topics, 1, POLL_S)) for topics in polls]
        try:
            ended, others = await asyncio.wait(takes, return_when=asyncio.FIRST_COMPLETED)
            if others:
                self._client.stop_polls()  # what is on its way arrives, and waits for a slot
                await asyncio.wait(others, timeout=LEAVE_S)
        finally:
            await cancel_all(takes)
        for take in ended:
            take.result()

    async def _wait_for_room(self) -> int:
        """How many jobs to ask for; waits until there is room for one. 0 = none any more: the worker is leaving."""
        while not self._leaving.is_set():
            if (free := self._room()) > 0:
                return min(free, MAX_BATCH)
            self._changed.clear()
            await self._changed.wait()
        return 0

    def _room(self) -> int:
        """How many jobs may begin. While jobs are reported others may run, but not without limit."""
        too_many = max(0, len(self._reporting) - self._concurrency)
        return self._concurrency - len(self._running) - too_many - self._executor.hanging

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._reporting.discard(task)
        self._dropped.discard(task)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("%s: bug in the worker", task.get_name(), exc_info=error)

    async def _work(self, job: ReservedJob) -> None:
        task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]  # there is one
        progress = ProgressReporter(self._client, job, self._handlers.scrubbed_text)
        try:
            with _lease(self._client, job, partial(self._drop, task)):
                async with self._slots:
                    with self._figures.running(job.topic):
                        handled = await self._handle(job, progress.report)
                        verdict = self._handlers.scrubbed(handled)
                        await self._uncancel(task)
            self._running.discard(task)
            self._reporting.add(task)
            self._changed.set()
            await progress.end()
        finally:
            progress.drop()
        await self._report(job, verdict)

    async def _handle(self, job: ReservedJob, tell: Tell) -> Verdict:
        last = self._last_attempt(job)
        if last is not None and await self._has_killed(job, last):
            log.error("job %s of %s: its worker has died %d times", job.id, job.topic, last)
            return Released(f"its worker has died {last} times")
        verdict, error = await self._handlers.run(job, self._executor, self._context, tell)
        if error is None:
            return verdict
        is_dropped = asyncio.current_task() in self._dropped
        if not (is_dropped and isinstance(error, asyncio.CancelledError)):
            log.warning(
                "job %s of %s, attempt %d: %s",
                job.id,
                job.topic,
                job.attempt,
                verdict.message,
                exc_info=None if is_order(error) else error,
            )
        if is_dropped:
            raise asyncio.CancelledError
        return verdict

    def _drop(self, task: asyncio.Task[None]) -> None:
        """Cancel the handlers of a job that is not this worker's any more."""
        self._dropped.add(task)
        task.cancel()

    async def _uncancel(self, task: asyncio.Task[None]) -> None:
        """Let a handler that has cancelled its own task end as any other: the job is still to be reported."""
        if task.cancelling() and task not in self._dropped:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # here it is raised, if the handler has not waited since
            while task.cancelling():
                task.uncancel()
            if task in self._dropped:
                task.cancel()

    def _last_attempt(self, job: ReservedJob) -> int | None:
        """How many attempts jobs of the topic get, if this job has had as many before; otherwise None."""
        if job.attempt == 1:
            return None
        last = self._handlers.policy_of(job.topic).last_attempt
        return None if last is None or job.attempt <= last else last

    async def _has_killed(self, job: ReservedJob, times: int) -> bool:
        """Whether this many attempts in a row ended because their worker died."""
        with suppress(QueueError, TransportError):
            if details := await self._client.get(job.id):
                ends = [attempt.message for attempt in details.attempts[-times:]]
                return ends == [TTR_EXPIRED] * times
        return False

    async def _report(self, job: ReservedJob, verdict: Verdict) -> None:
        """Report how the job ended, however long that takes: the server decides whether this worker still holds it."""
        for tries in count():
            try:
                await self._send(job, verdict)
                end = ENDS[type(verdict)]
                self._ended(job, end)
                log.info("job %s of %s, attempt %d: %s", job.id, job.topic, job.attempt, end)
            except (StaleReceipt, NoSuchJob):
                if not tries:
                    log.warning("job %s took longer than its TTR, or was cancelled", job.id)
                # otherwise an earlier report may have arrived, but not its answer
            except (Unavailable, TooMany, TransportError) as error:
                pause_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(tries, 10))
                if isinstance(error, TooMany):
                    pause_s = max(pause_s, error.retry_after_s)
                log.warning("job %s: cannot report its end so far: %s", job.id, error)
                await asyncio.sleep(pause_s)
                continue
            except QueueError as error:
                log.warning(
                    "job %s is delivered again, because its end was refused: %s", job.id, error
                )
            return

    def _ended(self, job: ReservedJob, end: str) -> None:
        self._figures.ended(job.topic, end)
        if not self._enough.is_set() and (reached := self._limits.reached(self._figures)):
            log.info("no more jobs: %s", reached)
            self._enough.set()

    async def _send(self, job: ReservedJob, verdict: Verdict) -> None:
        match verdict:
            case Finished(message):
                await self._client.finish(job, message=message or None)
            case Released():
                await self._release(job, verdict)
            case Buried():
                message = with_traceback(verdict.message, verdict.traceback)
                await self._client.bury(job, message=message)

    async def _release(self, job: ReservedJob, verdict: Released) -> None:
        policy = self._handlers.policy_of(job.topic)
        delays_s = policy.delays_s()
        await self._client.release(
            job,
            delay=verdict.delay,
            retry=None if policy.max_attempts is None else delays_s,
            # endless, and for older servers, which do not know `retry` here
            fallback=delays_s[min(job.attempt, len(delays_s)) - 1] if delays_s else None,
            message=with_traceback(verdict.message, verdict.traceback),
        )


def _rotated(items: Sequence[T], turn: int) -> Sequence[T]:
    """The items in a circle, from another one each turn."""
    at = turn % len(items)
    return [*items[at:], *items[:at]]


def _pause_s(error: QueueError | TransportError) -> float:
    """How long to wait after a call that failed, before the next try."""
    return max(RETRY_S, error.retry_after_s) if isinstance(error, TooMany) else RETRY_S


@contextmanager
def _lease(client: AsyncClient, job: ReservedJob, lost: Callable[[], object]) -> Iterator[None]:
    """Extend the reservation during the block; calls `lost` if somebody else may have the job by now."""
    keeping: list[asyncio.Task[None]] = []

    def begin() -> None:
        keeping.append(asyncio.create_task(_extend(client, job, lost), name=f"lease of {job.id}"))

    # a timer costs less than a task
    timer = asyncio.get_running_loop().call_later(FIRST_TOUCH_S, begin)
    try:
        yield
    finally:
        timer.cancel()
        for task in keeping:
            task.cancel()


async def _extend(client: AsyncClient, job: ReservedJob, lost: Callable[[], object]) -> None:
    ttr_s = None
    fails = False
    while True:
        retry_s = inf
        try:
            if ttr_s is None:
                details = await client.get(job.id)
                ttr_s = details.ttr if details else None
            await client.touch(job)
            fails = False
        except (StaleReceipt, NoSuchJob):
            log.warning("job %s no longer belongs to this worker", job.id)
            lost()
            return
        except (QueueError, TransportError) as error:
            if not fails:
                log.warning("job %s could not be extended so far: %s", job.id, error)
            fails = True
            retry_s = _pause_s(error)
        pause_s = FIRST_TOUCH_S if ttr_s is None else ttr_s / TOUCHES_PER_TTR
        await asyncio.sleep(min(pause_s, retry_s))
