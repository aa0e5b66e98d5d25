"""Reserves the jobs of one topic for its subscribers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from delayqueue.delivery.caller import SubscriberCaller
from delayqueue.delivery.delivery import Delivery
from delayqueue.domain.job import Reserved
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import TooMany, Unavailable

if TYPE_CHECKING:
    from delayqueue.engine.wait_queue import StandingPoll

RETRY_S = 0.2  # before the next try if the store has failed, or too many polls are waiting

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class TopicConsumer:
    """Consumes a topic like any worker, with at most the smallest concurrency of its subscribers as jobs in hand.

    A job is with one subscriber at a time. So no subscriber gets more calls at once, and no job waits for its turn.
    """

    def __init__(
        self,
        queue: DelayQueue,
        jobs: Jobs,
        caller: SubscriberCaller,
        topic: str,
        *,
        refresh: Callable[[str], Awaitable[None]],
        spawn: Spawn,
    ) -> None:
        self._queue = queue
        self._jobs = jobs
        self._caller = caller
        self._topic = topic
        self._refresh = refresh
        self._spawn = spawn
        self._subscribers: Sequence[Subscriber] = ()
        self._deliveries: set[asyncio.Task[None]] = set()
        self._reserving: asyncio.Task[None] | None = None
        self._poll: StandingPoll | None = None  # wants as many jobs as there is room for
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()

    def subscribe(self, subscribers: Sequence[Subscriber]) -> None:
        """Use these subscribers of the topic from now on, in order; if there are none, reserve nothing more."""
        if subscribers == self._subscribers:
            return
        self._subscribers = subscribers
        if self._reserving is not None:  # its poll may ask for more than the new limit
            self._reserving.cancel()
            self._reserving = None
        if subscribers and not self._stopping.is_set():
            self._reserving = self._spawn(self._reserve(), f"subscribers of {self._topic}")

    def stop(self) -> None:
        """Reserve nothing more; jobs in hand are given back before their next subscriber's call."""
        self._stopping.set()
        if self._reserving is not None:
            self._reserving.cancel()

    @property
    def deliveries(self) -> set[asyncio.Task[None]]:
        """The jobs in hand."""
        return self._deliveries

    def _limit(self) -> int:
        return min(subscriber.concurrency for subscriber in self._subscribers)

    async def _reserve(self) -> None:
        while True:
            self._room.clear()
            room = self._limit() - len(self._deliveries)
            if room <= 0:
                await self._room.wait()
                continue
            try:
                await self._consume(room)
            except (Unavailable, TooMany):
                await asyncio.sleep(RETRY_S)

    async def _consume(self, room: int) -> None:
        """Begin jobs as they become ready, endlessly; there is room for that many more."""
        poll = self._poll = self._jobs.consume((self._topic,), room)
        try:
            while True:
                await poll.future
                for job in poll.take():
                    self._begin(job)
        finally:
            self._poll = None
            self._jobs.leave(poll)

    def _begin(self, job: Reserved) -> None:
        work = Delivery(
            self._queue,
            self._jobs,
            self._caller,
            job,
            subscribers=lambda: self._subscribers,
            refresh=self._refresh,
            stopping=self._stopping,
        )
        task = self._spawn(work.run(), f"job of {self._topic}")
        self._deliveries.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._deliveries.discard(task)
        self._room.set()
        if self._poll is not None:
            self._jobs.widen(self._poll)
