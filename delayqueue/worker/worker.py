"""Takes jobs from a server and runs their handlers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from delayqueue.client.address import DEFAULT_URL
from delayqueue.client.aio import AsyncClient
from delayqueue.client.calls import TransportError
from delayqueue.client.jobs import seconds
from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import NoSuchJob, QueueError, StaleReceipt, TooMany, Unavailable
from delayqueue.tasks import is_told_to_end
from delayqueue.threads import Threads
from delayqueue.worker import lease, program
from delayqueue.worker.finisher import Finisher
from delayqueue.worker.handlers import Handlers
from delayqueue.worker.verdict import Buried, Bury, Finished, Released, Retry, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from delayqueue.client.jobs import ReservedJob, Seconds
    from delayqueue.worker.handlers import H, M
    from delayqueue.worker.verdict import Verdict

log = logging.getLogger(__name__)

DEFAULT_CONCURRENCY: Final = 10
POLL_S: Final = 30.0  # of a poll; between polls the order of the topics changes
RETRY_S: Final = 1.0  # until the next poll when the server is away
FIRST_RETRY_S: Final = 0.5  # until the next report of a job's end; doubled up to the other
LONGEST_RETRY_S: Final = 5.0
# A job without a retry schedule that fails comes again after 1 s, 2 s, 4 s, … up to this
LONGEST_PAUSE_S: Final = 300
DEFAULT_GRACE_S: Final = 30.0
CANCEL_S: Final = 1.0  # for handlers that are cancelled then


class Worker:
    """Runs functions for the jobs of topics: `@worker.on("mail")` above them, then `worker.run()`.

    Plain functions run in threads, `async` ones in the loop, `concurrency` jobs at a time. A handler that returns has
    finished its job, one that raises has failed it: the job comes again by its retry schedule. Retry and Bury steer.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency {concurrency}: must be at least 1")
        self.handlers: Handlers = Handlers()
        self._url = url
        self._token = token
        self._concurrency = concurrency

    def on(self, *topics: str, order: int = 0) -> Callable[[H], H]:
        """Have the decorated function called with each ReservedJob of these topics.

        A topic may have several: they run one after the other, the least `order` first; where one raises, those after
        it do not run, and the next attempt begins with the first.
        """
        if not topics:
            raise ValueError("on: name a topic")

        def decorate(handler: H) -> H:
            for topic in topics:
                self.handlers.add(topic, order, handler)
            return handler

        return decorate

    def middleware(self, middleware: M) -> M:
        """Have the decorated `async def around(job, next)` called around each job's handlers; it awaits `next(job)`."""
        self.handlers.wrap(middleware)
        return middleware

    def run(self, *, grace: Seconds = DEFAULT_GRACE_S) -> None:
        """Work until SIGTERM or SIGINT. Then take no more jobs, and give those that run `grace` to end.

        A second SIGINT ends the program at once.
        """
        program.run(lambda stop: self.work(stop, grace=grace), seconds(grace))

    async def work(self, stop: asyncio.Event, *, grace: Seconds = DEFAULT_GRACE_S) -> None:
        """Work until `stop` is set, for programs that have a loop of their own; else as run()."""
        if not self.handlers.topics:
            raise ValueError("this worker has no handlers: decorate a function with on()")
        async with AsyncClient(self._url, token=self._token) as client:
            await _Shift(self.handlers, client, self._concurrency).work(stop, grace)


class _Shift:
    """One run of a worker."""

    def __init__(
        self,
        handlers: Handlers,
        client: AsyncClient,
        concurrency: int,
    ) -> None:
        self._handlers = handlers
        self._client = client
        self._finisher = Finisher(client)
        self._threads = Threads("delay-queue-worker")
        self._concurrency = concurrency
        self._running: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    async def work(self, stop: asyncio.Event, grace: Seconds) -> None:
        log.info("waiting for jobs of %s", ", ".join(self._handlers.topics))
        polling = asyncio.create_task(self._poll(), name="poll")
        stopping = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait([polling, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        # what the server has reserved for a poll that is cut off goes back to its list
        polling.cancel()
        with suppress(asyncio.CancelledError):
            await polling
        await self._end(grace)

    async def _end(self, grace: Seconds) -> None:
        if not self._running:
            return
        log.info("stopping, %d jobs run still", len(self._running))
        _, late = await asyncio.wait(self._running, timeout=seconds(grace))
        for task in late:
            task.cancel()
        if late:
            log.warning("%d jobs did not end in time; they come again", len(late))
            await asyncio.wait(late, timeout=CANCEL_S)
        await self._finisher.close()

    async def _poll(self) -> None:
        topics = self._handlers.topics
        for turn in count():
            at = turn % len(topics)  # so that no topic is always last
            free = await self._free()
            try:
                jobs = await self._client.pop_many(
                    *topics[at:], *topics[:at], count=free, wait=POLL_S
                )
            except (QueueError, TransportError) as error:
                log.warning("no jobs can be had: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            for job in jobs:
                task = asyncio.create_task(self._work(job), name=f"job {job.id}")
                self._running.add(task)
                task.add_done_callback(self._done)

    async def _free(self) -> int:
        """How many jobs to ask for; waits until there is room for one."""
        while len(self._running) >= self._concurrency:
            self._changed.clear()
            await self._changed.wait()
        return min(self._concurrency - len(self._running), MAX_BATCH)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("%s: a defect of the worker", task.get_name(), exc_info=error)

    async def _work(self, job: ReservedJob) -> None:
        handling: asyncio.Task[object] | None = asyncio.current_task()
        with lease.kept(self._client, job, lambda: handling and handling.cancel()):
            verdict = await self._handle(job)
        await self._report(job, verdict)

    async def _handle(self, job: ReservedJob) -> Verdict:
        try:
            await self._handlers.run(job, self._threads)
        except BaseException as error:  # it is somebody else's code: whatever it raises
            if is_told_to_end(error):
                raise
            verdict = verdict_of(error)
            traceback = None if isinstance(error, (Retry, Bury)) else error
            log.warning(
                "job %s of %s, attempt %d: %s",
                job.id,
                job.topic,
                job.attempt,
                verdict.message,
                exc_info=traceback,
            )
            return verdict
        return Finished()

    async def _report(self, job: ReservedJob, verdict: Verdict) -> None:
        """Tell the server, however long it is away: it says whether the reservation is still this worker's."""
        for tries in count():
            try:
                await self._tell(job, verdict)
            except (StaleReceipt, NoSuchJob):
                if not tries:
                    log.warning("job %s took longer than its TTR, or was cancelled", job.id)
                # else an earlier report may have arrived though its answer did not
            except (Unavailable, TooMany, TransportError) as error:
                pause_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(tries, 10))
                log.warning("job %s: its end could not be reported yet: %s", job.id, error)
                await asyncio.sleep(pause_s)
                continue
            except QueueError as error:
                log.warning("job %s comes again, as its end was refused: %s", job.id, error)
            return

    async def _tell(self, job: ReservedJob, verdict: Verdict) -> None:
        match verdict:
            case Finished():
                await self._finisher.finish(job)
            case Released(message, delay_s):
                fallback_s = min(LONGEST_PAUSE_S, 2 ** min(job.attempt - 1, 30))
                await self._client.release(job, delay=delay_s, fallback=fallback_s, message=message)
            case Buried(message):
                await self._client.bury(job, message=message)
