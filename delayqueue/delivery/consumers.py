"""Webhook delivery: follows the subscribers as they come and go, with a consumer for each topic that has some."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from itertools import groupby
from typing import Any

from delayqueue.delivery.caller import SubscriberCaller
from delayqueue.delivery.consumer import TopicConsumer
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.subscribers import Subscribed
from delayqueue.errors import Unavailable
from delayqueue.store.batcher import Batcher
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

REFRESH_S = 0.5  # how soon a topic's first subscriber is served
GRACE_S = 3.0  # for calls in flight when the server stops


class TopicConsumers:
    """Calls the subscribers of this server's store. `run` is a background loop of the server."""

    def __init__(self, queue: DelayQueue, caller: SubscriberCaller) -> None:
        self._queue = queue
        self._caller = caller
        self._consumers: dict[str, TopicConsumer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._death: asyncio.Future[None] | None = None  # of a task; None while run() does not
        self._stopping = False
        self._revision = ""
        self._refreshes = Batcher(self._refresh, "subscribers")

    async def run(self) -> None:
        """Follow the subscribers until cancelled; then jobs in hand are given back. If a task of it dies, all end.

        No TaskGroup: it cancels its tasks once, and that can get lost (tasks.py).
        """
        self._death = asyncio.get_running_loop().create_future()
        try:
            while not self._death.done():
                with suppress(Unavailable):
                    await self.refresh()
                await asyncio.wait([self._death], timeout=REFRESH_S)
            self._death.result()
        finally:
            self._death = None
            await cancel_all(self._tasks)

    async def refresh(self) -> None:
        """Read the present subscribers. Raises Unavailable if the store does not answer."""
        await self._refreshes.submit((None,))

    async def _refresh(self, asked: list[None]) -> list[None]:
        self._revision, subscribers = await self._queue.subscribers.changes(self._revision)
        if subscribers is not None and not self._stopping:
            self._follow(subscribers)
        return asked

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
                self._queue, self._caller, topic, refresh=self.refresh, spawn=self._spawn
            )
        for topic, consumer in list(self._consumers.items()):
            consumer.subscribe(self._callable(topic, by_topic.get(topic, [])))
            if topic not in by_topic and not consumer.deliveries:
                del self._consumers[topic]

    def _callable(self, topic: str, subscribed: list[Subscribed]) -> list[Subscriber]:
        """The subscribers; none if one is paused or cannot be called by this process, because no job may skip it."""
        if any(one.paused_ms is not None for one in subscribed):
            return []
        subscribers = [one.subscriber for one in subscribed]
        foreign = [one.name for one in subscribers if not self._caller.can_call(one)]
        if not foreign:
            return subscribers
        log.warning(
            "topic %r is left to other servers: the config file of this one does not name the handler of %s",
            topic,
            ", ".join(foreign),
        )
        return []

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        if self._death is None:
            work.close()
            raise RuntimeError("is not running")
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and self._death is not None and not self._death.done():
            self._death.set_exception(error)
