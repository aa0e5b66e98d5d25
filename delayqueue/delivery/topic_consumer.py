"""Delivers the jobs of one topic to its subscribers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from delayqueue.delivery.consumer import Consumer, Spawn
from delayqueue.delivery.delivery import Delivery
from delayqueue.delivery.failure_log import FailureLog
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.job import Reserved
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue


class TopicConsumer:
    """Consumes a topic with at most the smallest concurrency of its subscribers as jobs in hand.

    A job is with one subscriber at a time. So no subscriber gets more calls at once, and no job waits for its turn.
    """

    def __init__(  # noqa: PLR0913  # what delivery shares, and the topic
        self,
        queue: DelayQueue,
        jobs: Jobs,
        webhooks: Webhooks,
        topic: str,
        *,
        refresh: Callable[[str], Awaitable[None]],
        failures: FailureLog,
        spawn: Spawn,
    ) -> None:
        self._queue = queue
        self._jobs = jobs
        self._webhooks = webhooks
        self._refresh = refresh
        self._failures = failures
        self._subscribers: Sequence[Subscriber] = ()
        self._stopping = asyncio.Event()
        self._consumer = Consumer(
            jobs, (topic,), name=f"subscribers of {topic}", work=self._deliver, spawn=spawn
        )

    def subscribe(self, subscribers: Sequence[Subscriber]) -> None:
        """Use these subscribers of the topic from now on, in order; if there are none, reserve nothing more."""
        if subscribers == self._subscribers:
            return
        self._subscribers = subscribers
        limits = [subscriber.concurrency for subscriber in subscribers]
        self._consumer.reserve(0 if self._stopping.is_set() else min(limits, default=0))

    def stop(self) -> None:
        """Reserve nothing more; jobs in hand are given back before their next subscriber's call."""
        self._stopping.set()
        self._consumer.reserve(0)

    @property
    def deliveries(self) -> set[asyncio.Task[None]]:
        """The jobs in hand."""
        return self._consumer.in_hand

    def _deliver(self, job: Reserved) -> Coroutine[Any, Any, None]:
        return Delivery(
            self._queue,
            self._jobs,
            self._webhooks.call,
            job,
            subscribers=lambda: self._subscribers,
            refresh=self._refresh,
            stopping=self._stopping,
            failures=self._failures,
        ).run()
