"""This project's client and Worker."""

import asyncio
import itertools
from collections.abc import Iterable
from typing import Final

from bench.worker.side import QUEUE, Work, play
from delayqueue import AsyncClient, Client, Worker
from delayqueue.client import Job
from delayqueue.worker import ReservedJob

BATCH: Final = 100


def push(url: str, bodies: Iterable[str]) -> None:
    """One job a request, without asyncio."""
    with Client(url) as queue:
        for body in bodies:
            queue.push(QUEUE, body)


def enqueue(url: str, bodies: Iterable[str]) -> None:
    """One job a request."""

    async def push_each() -> None:
        async with AsyncClient(url) as queue:
            for body in bodies:
                await queue.push(QUEUE, body)

    asyncio.run(push_each())


def at_once(url: str, bodies: Iterable[str]) -> None:
    """A hundred tasks, each of which pushes a job."""

    async def push_at_once() -> None:
        rest = iter(bodies)
        async with AsyncClient(url) as queue:
            while some := list(itertools.islice(rest, BATCH)):
                await asyncio.gather(*(queue.push(QUEUE, body) for body in some))

    asyncio.run(push_at_once())


def batches(url: str, bodies: Iterable[str]) -> None:
    """A hundred jobs a request."""

    async def push_many() -> None:
        rest = iter(bodies)
        async with AsyncClient(url) as queue:
            while batch := [Job(topic=QUEUE, body=each) for each in itertools.islice(rest, BATCH)]:
                await queue.push_many(batch)

    asyncio.run(push_many())


def work(task: Work) -> None:
    """There is nothing to tune."""
    worker = Worker(task.url, concurrency=task.concurrency)

    @worker.on(QUEUE)
    async def handle(job: ReservedJob) -> None:
        task.handle(job.body)

    worker.run()


if __name__ == "__main__":
    play(work, push=push, enqueue=enqueue, at_once=at_once, batches=batches)
