"""arq: coroutines, jobs in a sorted set of Redis."""

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any, Final

import arq
from arq.connections import RedisSettings

from bench.worker.side import QUEUE, Work, play

NAME: Final = "handle"
AT_ONCE: Final = 100


def enqueue(url: str, bodies: Iterable[str]) -> None:
    """One call a job; there is none for many."""

    async def enqueue_each() -> None:
        pool = await arq.create_pool(RedisSettings.from_dsn(url), default_queue_name=QUEUE)
        for body in bodies:
            await pool.enqueue_job(NAME, body)
        await pool.aclose()

    asyncio.run(enqueue_each())


def at_once(url: str, bodies: Iterable[str]) -> None:
    """A hundred tasks, each of which enqueues a job."""

    async def enqueue_at_once() -> None:
        pool = await arq.create_pool(RedisSettings.from_dsn(url), default_queue_name=QUEUE)
        rest = iter(bodies)
        while some := list(itertools.islice(rest, AT_ONCE)):
            await asyncio.gather(*(pool.enqueue_job(NAME, body) for body in some))
        await pool.aclose()

    asyncio.run(enqueue_at_once())


def work(task: Work) -> None:
    """Tuned: looks for jobs every 10 ms, for more at a time, and keeps no results, as the others."""

    async def handle(_: Any, body: str) -> None:
        task.handle(body)

    asyncio.set_event_loop(asyncio.new_event_loop())  # it takes the current one
    options = {"poll_delay": 0.01, "queue_read_limit": 1000, "keep_result": 0}
    arq.Worker(
        [arq.func(handle, name=NAME)],
        queue_name=QUEUE,
        redis_settings=RedisSettings.from_dsn(task.url),
        max_jobs=task.concurrency,
        **(options if task.tuned else {}),
    ).run()


if __name__ == "__main__":
    play(work, enqueue=enqueue, at_once=at_once)
