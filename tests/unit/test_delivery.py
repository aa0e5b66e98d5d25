"""The tasks of the consumers end with them, and one that dies ends all."""

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Self

import pytest

from delayqueue.delivery.failure_log import FailureLog
from delayqueue.delivery.subscribed_topics import SubscribedTopic, SubscribedTopics
from delayqueue.domain.access import Scope
from delayqueue.domain.job import Reserved
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.subscribers import Subscribed
from delayqueue.tasks import cancel_all
from tests.waiting import until

ONE = Subscriber(name="s", topic="t", url="http://127.0.0.1/")


class Queue:
    """A queue with one subscriber; what comes for its consumer is as a test says."""

    def within(self, _: Scope) -> Self:
        return self

    def __init__(self) -> None:
        self.subscribers = self.polls = self
        self.waits = 0

    async def changes(self, _: str) -> tuple[str, list[Subscribed]]:
        return "1", [Subscribed(ONE, None)]

    def consume(self, *_: Any) -> Self:
        return self

    @property
    def future(self) -> Coroutine[Any, Any, None]:
        self.waits += 1
        return self.wait()

    async def wait(self) -> None:
        raise NotImplementedError

    def take(self) -> list[Reserved]:
        return []

    def leave(self, _: Self) -> None:
        pass

    def requeue(self, jobs: list[Reserved]) -> None:
        assert not jobs


def consumers_of(queue: Queue) -> SubscribedTopics:
    webhooks: Any = None  # nothing is called
    as_queue: Any = queue
    return SubscribedTopics(as_queue, webhooks)


async def test_a_cancellation_that_gets_lost_is_repeated() -> None:
    class Deaf(Queue):
        heard = 0

        async def wait(self) -> None:
            while not self.heard:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)
                self.heard += 1
            await asyncio.sleep(3600)

    queue = Deaf()
    running = asyncio.create_task(consumers_of(queue).run())
    await until(lambda: queue.waits == 1)
    running.cancel()
    await asyncio.wait([running], timeout=10)
    is_over = running.done()
    await cancel_all(asyncio.all_tasks() - {asyncio.current_task()})
    assert is_over


async def test_a_task_that_dies_ends_all_with_its_error() -> None:
    class Broken(Queue):
        async def wait(self) -> None:
            raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        await asyncio.wait_for(consumers_of(Broken()).run(), 10)


async def test_a_batch_is_not_kept_while_the_next_one_is_waited_for() -> None:
    """It can be 80 MB, and the next one may be long in coming."""

    class Batch(list[Reserved]):
        pass

    class Once(Queue):
        batch: weakref.ref[Batch]

        async def wait(self) -> None:
            if self.waits > 1:
                await asyncio.sleep(3600)

        def take(self) -> list[Reserved]:
            batch = Batch([Reserved("t", "j", b"", 1, "n", 0, 60_000, None)])
            self.batch = weakref.ref(batch)
            return batch

    queue: Any = Once()
    webhooks: Any = SimpleNamespace(call=None)
    consumer = SubscribedTopic(
        queue,
        queue,
        webhooks,
        "t",
        refresh=lambda _: asyncio.sleep(3600),
        failures=FailureLog(),
        spawn=lambda work, name: asyncio.create_task(work, name=name),
    )
    consumer.subscribe([ONE])
    try:
        await until(lambda: queue.waits == 2)
        gc.collect()
        assert queue.batch() is None
    finally:
        await cancel_all(asyncio.all_tasks() - {asyncio.current_task()})
