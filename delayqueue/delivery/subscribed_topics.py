"""Webhook delivery: follows the subscribers as they come and go, with a consumer for each topic that has some."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from delayqueue.delivery.consumer import Consumer, Spawn
from delayqueue.delivery.delivery import Delivery
from delayqueue.delivery.failure_log import FailureLog
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import Reserved
from delayqueue.domain.subscriber import Subscriber
from delayqueue.domain.troubles import Kind
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.subscribers import Subscribed
from delayqueue.errors import Unavailable
from delayqueue.tasks import SingleFlight, TaskGroup

log = logging.getLogger(__name__)

REFRESH_S = 0.5  # how soon a topic's first subscriber is served


class SubscribedTopic:
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
        refresh: Callable[[str | None], Awaitable[None]],
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
    def in_hand(self) -> set[asyncio.Task[None]]:
        """The work on its jobs."""
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


class SubscribedTopics:
    """Calls the subscribers of this server's store. `run` is a background loop of the server."""

    def __init__(self, queue: DelayQueue, webhooks: Webhooks) -> None:
        self._queue = queue
        self._jobs = queue.within(EVERYWHERE)
        self._webhooks = webhooks
        self._topics: dict[str, SubscribedTopic] = {}
        self._names: set[str] = set()  # of the subscribers
        self._failures = FailureLog()
        self._tasks = TaskGroup()
        self._stopping = False
        self._revision: str | None = None  # of the subscribers that are known
        self._refreshes = SingleFlight[None]()

    async def run(self) -> None:
        """Follow the subscribers until cancelled; then jobs in hand are given back. If a task of it dies, all end."""
        async with self._tasks:
            while True:
                with suppress(Unavailable):
                    await self.refresh()
                await self._tasks.failed(REFRESH_S)

    async def refresh(self, revision: str | None = None) -> None:
        """Read the subscribers, unless those of this revision are known. Raises Unavailable if the store is away."""
        if revision is None or revision != self._revision:
            await self._refreshes.do_anew(None, self._refresh)

    async def _refresh(self) -> None:
        self._revision, subscribers = await self._queue.subscribers.changes(self._revision)
        if subscribers is not None and not self._stopping:
            self._follow(subscribers)

    def stop(self) -> None:
        """Reserve nothing more."""
        self._stopping = True
        for followed in self._topics.values():
            followed.stop()

    @property
    def in_hand(self) -> set[asyncio.Task[None]]:
        """The work on jobs of all topics."""
        return {task for followed in self._topics.values() for task in followed.in_hand}

    def _follow(self, subscribers: Sequence[Subscribed]) -> None:
        names = {one.subscriber.name for one in subscribers}
        for gone in self._names - names:
            self._queue.troubles.forget(Kind.SUBSCRIBER, gone)
        self._names = names
        by_topic = {
            topic: list(group)
            for topic, group in groupby(subscribers, lambda one: one.subscriber.topic)
        }
        for topic in by_topic.keys() - self._topics.keys():
            self._topics[topic] = SubscribedTopic(
                self._queue,
                self._jobs,
                self._webhooks,
                topic,
                refresh=self.refresh,
                failures=self._failures,
                spawn=self._tasks.create_task,
            )
        for topic, followed in list(self._topics.items()):
            followed.subscribe(self._callable(topic, by_topic.get(topic, [])))
            if topic not in by_topic and not followed.in_hand:
                del self._topics[topic]

    def _callable(self, topic: str, subscribed: list[Subscribed]) -> list[Subscriber]:
        """The subscribers; none if one is paused, or has no URL, because no job may skip it.

        A server of an earlier version can have put a Python function there, and calls it.
        """
        if any(one.paused_ms is not None for one in subscribed):
            return []
        subscribers = [one.subscriber for one in subscribed]
        without_url = [one.name for one in subscribers if not one.url]
        if not without_url:
            return subscribers
        log.warning(
            "topic %r is left to servers of an earlier version and to workers: Python functions subscribe to it: %s",
            topic,
            ", ".join(without_url),
        )
        return []
