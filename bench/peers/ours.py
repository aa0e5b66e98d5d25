"""This project's client in Python, and its Worker."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.side import QUEUE, Handle, Order, Side, play
from delayqueue import AsyncClient, Worker
from delayqueue.client import Job
from delayqueue.worker import ReservedJob


class Ours:
    """A client, and workers; there is nothing to tune."""

    def __init__(self, url: str, queue: AsyncClient) -> None:
        self._url, self._queue = url, queue

    async def push(self, orders: Sequence[Order]) -> None:
        """One job, or an array."""
        if len(orders) == 1:
            await self._queue.push(QUEUE, orders[0].body, delay=orders[0].delay_s)
            return
        jobs = [Job(topic=QUEUE, body=order.body, delay=order.delay_s) for order in orders]
        for outcome in await self._queue.push_many(jobs):
            if outcome.code:
                raise ValueError(outcome.message)

    @asynccontextmanager
    async def working(self, at_once: int, handle: Handle) -> AsyncIterator[None]:
        """A worker that runs so many jobs at once."""
        worker, stop = Worker(self._url, concurrency=at_once), asyncio.Event()

        @worker.on(QUEUE)
        async def handled(job: ReservedJob) -> None:
            handle(job.body)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.work(stop))
            yield
            stop.set()


@asynccontextmanager
async def opened(port: str) -> AsyncIterator[Side]:
    """Connected to the server at a port."""
    url = f"http://127.0.0.1:{port}"
    async with AsyncClient(url) as queue:
        yield Ours(url, queue)


if __name__ == "__main__":
    play(opened)
