"""arq: coroutines, jobs in a sorted set of Redis."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import arq
from arq.connections import RedisSettings

from bench.worker.side import QUEUE, Work, play

NAME: Final = "handle"


def enqueue(url: str, bodies: Iterable[str]) -> None:
    """One call a job; there is none for many."""

    async def enqueue_each() -> None:
        pool = await arq.create_pool(RedisSettings.from_dsn(url), default_queue_name=QUEUE)
        for body in bodies:
            await pool.enqueue_job(NAME, body)
        await pool.aclose()

    asyncio.run(enqueue_each())


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
    play(work, enqueue=enqueue)
