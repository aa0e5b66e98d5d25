"""Webhook delivery: follows the subscribers as they come and go, with a consumer for each topic that has some."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby

from delayqueue.delivery.failure_log import FailureLog
from delayqueue.delivery.topic_consumer import TopicConsumer
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.subscribers import Subscribed
from delayqueue.errors import Unavailable
from delayqueue.tasks import SingleFlight, TaskGroup

log = logging.getLogger(__name__)

REFRESH_S = 0.5  # how soon a topic's first subscriber is served
GRACE_S = 3.0  # for calls in flight when the server stops


class TopicConsumers:
    """Calls the subscribers of this server's store. `run` is a background loop of the server."""

    def __init__(self, queue: DelayQueue, webhooks: Webhooks) -> None:
        self._queue = queue
        self._jobs = queue.within(EVERYWHERE)
        self._webhooks = webhooks
        self._consumers: dict[str, TopicConsumer] = {}
        self._failures = FailureLog()
        self._tasks = TaskGroup()
        self._stopping = False
        self._revision = ""
        self._refreshes = SingleFlight[None]()

    async def run(self) -> None:
        """Follow the subscribers until cancelled; then jobs in hand are given back. If a task of it dies, all end."""
        async with self._tasks:
            while True:
                with suppress(Unavailable):
                    await self.refresh()
                await self._tasks.failed(REFRESH_S)

    async def refresh(self, revision: str = "") -> None:
        """Read the subscribers, unless those of this revision are known. Raises Unavailable if the store is away."""
        if not revision or revision != self._revision:
            await self._refreshes.do_anew(None, self._refresh)

    async def _refresh(self) -> None:
        self._revision, subscribers = await self._queue.subscribers.changes(self._revision)
        if subscribers is not None and not self._stopping:
            self._follow(subscribers)

    def stop(self) -> None:
        """Reserve nothing more."""
        self._stopping = True
        for consumer in self._consumers.values():
            consumer.stop()

    async def aclose(self) -> None:
        """Wait for calls in flight, but not for long."""
        deliveries = {task for consumer in self._consumers.values() for task in consumer.deliveries}
        if deliveries:
            await asyncio.wait(deliveries, timeout=GRACE_S)

    def _follow(self, subscribers: Iterable[Subscribed]) -> None:
        by_topic = {
            topic: list(group)
            for topic, group in groupby(subscribers, lambda one: one.subscriber.topic)
        }
        for topic in by_topic.keys() - self._consumers.keys():
            self._consumers[topic] = TopicConsumer(
                self._queue,
                self._jobs,
                self._webhooks,
                topic,
                refresh=self.refresh,
                failures=self._failures,
                spawn=self._tasks.create_task,
            )
        for topic, consumer in list(self._consumers.items()):
            consumer.subscribe(self._callable(topic, by_topic.get(topic, [])))
            if topic not in by_topic and not consumer.deliveries:
                del self._consumers[topic]

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
