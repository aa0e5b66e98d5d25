"""A reserved job's way through the subscribers of its topic."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Self, TypeVar

from delayqueue.answers.jobs import SubscriberResult
from delayqueue.delivery.failure_log import FailureLog
from delayqueue.delivery.outcome import EarlierResult, Event, WebhookOutcome
from delayqueue.domain.job import Reserved
from delayqueue.domain.subscriber import OnFailure, Payload, Subscriber
from delayqueue.domain.text import clean
from delayqueue.domain.troubles import Kind
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import NoSuchJob, StaleReceipt, Unavailable
from delayqueue.metrics import SUBSCRIBER_CALLS
from delayqueue.store.types import Postponement, Recording
from delayqueue.store.verbs import Ending
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

# statuses that another attempt is not going to change
HOPELESS = frozenset((400, 401, 403, 404, 405, 410, 422))
TOUCHES_PER_TTR = 3
RETRY_S = 0.2  # before the next try if the store has failed

T = TypeVar("T")


class Delivery:
    """Calls the subscribers that have not succeeded so far, one after the other, and records each result at once.

    The last result is recorded in the call of the store that ends the job. So a crash repeats at most the call that was
    in flight. `call` calls a subscriber; `subscribers` returns the topic's present ones, in order; `refresh` makes sure
    that these are at least of a revision, None = up to date, and raises Unavailable if the store does not answer. The
    work is done in `place`, a context manager that may make the job wait.
    """

    def __init__(  # noqa: PLR0913  # what delivery shares, and the job
        self,
        queue: DelayQueue,
        jobs: Jobs,
        call: Callable[[Subscriber, Event], Awaitable[WebhookOutcome]],
        job: Reserved,
        *,
        subscribers: Callable[[], Sequence[Subscriber]],
        refresh: Callable[[str | None], Awaitable[None]],
        stopping: asyncio.Event,
        failures: FailureLog,
        place: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        self._queue = queue
        self._jobs = jobs
        self._call_one = call
        self._job = job
        self._subscribers = subscribers
        self._refresh = refresh
        self._stopping = stopping
        self._failures = failures
        self._place = place or nullcontext()
        self._begun_with: Sequence[Subscriber] = ()
        self._earlier = dict[str, SubscriberResult]()  # of earlier deliveries
        self._began = 0.0  # this delivery, in unix seconds, if there were any
        self._results: dict[str, EarlierResult] = {}  # in calling order
        self._again: set[str] = set()  # failed, and will be called again

    async def run(self) -> None:
        """Work on the job until it is finished, postponed or given back. If cancelled, gives it back."""
        try:
            async with Lease(self._jobs, self._job), self._place:
                await self._work()
        except (StaleReceipt, NoSuchJob):
            log.info("job %r was taken away from its subscribers", self._job.id)
        except asyncio.CancelledError:
            self._jobs.polls.requeue([self._job])
            raise
        except Exception:
            log.exception("bug: job %r is delivered again after its TTR", self._job.id)

    async def _work(self) -> None:
        """Call the subscribers that are due, one after the other; a result is recorded before the next call."""
        # a subscriber older than the reservation must be called
        await self._surely(lambda: self._refresh(self._job.revision))
        self._begun_with = self._subscribers()
        await self._read_earlier()
        last: Recording | None = None  # not recorded yet: it may end the job
        for name in [one.name for one in self._begun_with]:
            if last is not None and self._due(name):
                await self._record(last)
                last = None
            subscriber = self._due(name)
            if subscriber is None:
                if (result := self._earlier.get(name)) is not None:
                    is_done = result.status == "succeeded"
                    self._note(name, is_done, result.message, result.due)
                continue
            if self._stopping.is_set():
                self._jobs.polls.requeue([self._job])
                return
            last = await self._call(subscriber)
        await self._end(last)

    async def _read_earlier(self) -> None:
        """Note the results of earlier deliveries, and when this one began."""
        if self._job.attempt == 1:
            return
        [view] = await self._surely(lambda: self._jobs.get([self._job.id]))
        if view is None:
            raise NoSuchJob
        self._earlier = {result.subscriber: result for result in view.results}
        self._began = (view.started_ms or 0) / 1000

    def _due(self, name: str) -> Subscriber | None:
        """The subscriber if it must be called in this delivery, in its present form; None if it was removed."""
        earlier = self._earlier.get(name)
        if earlier is not None and (
            earlier.status == "succeeded" or earlier.due is None or earlier.due > self._began
        ):
            return None
        return next((one for one in self._subscribers() if one.name == name), None)

    async def _call(self, subscriber: Subscriber) -> Recording | None:
        """Call a subscriber. Returns what to record; None if its answer was 410 and it is unsubscribed."""
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        event = Event.of(self._job, dict(self._results))
        outcome = self._with_kept_message(subscriber, await self._call_one(subscriber, event))
        word = "succeeded" if outcome.succeeded else "failed"
        self._queue.metrics.count(SUBSCRIBER_CALLS, subscriber.name, word)
        self._note_trouble(subscriber, outcome)
        if outcome.gone:
            log.warning("%s is unsubscribed: its URL answered 410", subscriber.name)
            await self._surely(lambda: self._queue.subscribers.drop(subscriber))
            await self._surely(lambda: self._refresh(None))
            return None
        before = self._earlier.get(subscriber.name)
        attempts_before = before.attempts if before else 0
        recording = Recording(
            id=self._job.id,
            nonce=self._job.nonce,
            subscriber=subscriber.name,
            succeeded=outcome.succeeded,
            message=outcome.message,
            attempts=attempts_before + 1,
            took_ms=round(1000 * (loop.time() - started_at)),
            delay_ms=self._delay_ms(subscriber, attempts_before, outcome),
        )
        if not outcome.succeeded:
            self._failures.failed(subscriber, self._job.topic, recording, outcome)
        self._note(subscriber.name, outcome.succeeded, recording.message, recording.delay_ms)
        return recording

    def _with_kept_message(self, subscriber: Subscriber, outcome: WebhookOutcome) -> WebhookOutcome:
        """The outcome with as much of its message as is kept: all of a result that a later subscriber gets.

        If that is not possible, the attempt has failed, because half a result is worse than none.
        """
        if not (outcome.succeeded and self._is_handed_on(subscriber)):
            return outcome._replace(message=clean(outcome.message))
        if outcome.lacks:
            return WebhookOutcome(False, f"its result, which others get, {outcome.lacks}")
        return outcome

    def _is_handed_on(self, subscriber: Subscriber) -> bool:
        """Whether a later subscriber gets the result."""
        subscribers = self._subscribers() or self._begun_with  # there are none while one is paused
        names = [one.name for one in subscribers]
        behind = names.index(subscriber.name) + 1 if subscriber.name in names else 0
        return any(one.payload is Payload.EVENT for one in subscribers[behind:])

    def _note_trouble(self, subscriber: Subscriber, outcome: WebhookOutcome) -> None:
        """Note among the troubles whether the subscriber fails, unless it was removed while it was called.

        For jobs' own calls, /stats shows the hosts instead.
        """
        if self._job.call:
            return
        if outcome.succeeded or outcome.gone:
            self._queue.troubles.forget(Kind.SUBSCRIBER, subscriber.name)
        elif any(one.name == subscriber.name for one in self._subscribers()):
            topic, message = self._job.topic, outcome.message
            self._queue.troubles.note(
                Kind.SUBSCRIBER, subscriber.name, topic=topic, message=message
            )

    def _delay_ms(
        self, subscriber: Subscriber, attempts_before: int, outcome: WebhookOutcome
    ) -> int | None:
        """How long the subscriber waits for its next call; None = there is none."""
        if subscriber.give_up and outcome.status in HOPELESS:
            return None
        own = self._job.retry_ms
        schedule = subscriber.retry_ms if own is None else own
        if outcome.succeeded or attempts_before >= len(schedule):
            return None
        return max(schedule[attempts_before], outcome.retry_after_ms)

    async def _record(self, recording: Recording) -> None:
        await self._surely(lambda: self._jobs.record(recording))

    async def _end(self, last: Recording | None) -> None:
        """End this delivery. `last` is recorded, in the same call if the job is finished with it."""
        subscribers = [one for one in self._subscribers() if one.name in self._results]
        failed = [one for one in subscribers if not self._results[one.name].succeeded]
        message = clean(
            "; ".join(f"{one.name}: {self._results[one.name].message}" for one in failed)
        )
        is_over = bool(subscribers) and all(self._is_over(one) for one in failed)
        if last is not None:
            await self._record(last._replace(ending=message) if is_over else last)
            if is_over:
                return
        if not subscribers:  # all were unsubscribed meanwhile: the job waits for new ones
            self._jobs.polls.requeue([self._job])
        elif is_over:
            ending = Ending(self._job.id, self._job.nonce, message)
            await self._surely(lambda: self._jobs.finish([ending]))
        else:
            names = tuple(one.name for one in subscribers)
            postponement = Postponement(self._job.id, self._job.nonce, message, names)
            await self._surely(lambda: self._jobs.postpone(postponement))

    def _is_over(self, subscriber: Subscriber) -> bool:
        """Whether a failed subscriber is not called again, and its failure does not keep the job from ending."""
        return subscriber.on_failure is OnFailure.CONTINUE and subscriber.name not in self._again

    def _note(self, name: str, succeeded: bool, message: str, again: float | None) -> None:
        self._results[name] = EarlierResult(succeeded, message)
        if not succeeded and again is not None:
            self._again.add(name)

    async def _surely(self, call: Callable[[], Awaitable[T]]) -> T:
        """The store's answer, however long it takes: what a subscriber has done must not be forgotten."""
        while True:
            with suppress(Unavailable):
                return await call()
            await asyncio.sleep(RETRY_S)


class Lease:
    """Extends the reservation while the block runs, or until it is lost. Most jobs end before the first time."""

    def __init__(self, jobs: Jobs, job: Reserved) -> None:
        self._jobs = jobs
        self._job = job
        self._pause_s = job.ttr_ms / 1000 / TOUCHES_PER_TTR
        self._touching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._begin)
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._timer.cancel()
        if self._touching is not None:
            await cancel_all([self._touching])
            if not self._touching.cancelled():
                self._touching.result()  # raises what is a bug

    def _begin(self) -> None:
        self._touching = asyncio.create_task(self._touch(), name=f"lease of {self._job.topic}")

    async def _touch(self) -> None:
        with suppress(StaleReceipt, NoSuchJob):
            while True:
                try:
                    await self._jobs.touch(self._job.id, self._job.nonce, None)
                except Unavailable:
                    await asyncio.sleep(RETRY_S)
                else:
                    await asyncio.sleep(self._pause_s)
