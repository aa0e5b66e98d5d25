"""arq: coroutines, jobs in a sorted set of Redis. It has no way to enqueue many jobs at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from arq import Worker, create_pool, func
from arq.connections import ArqRedis, RedisSettings

from bench.peers.side import Handle, Order, Side, play

NAME: Final = "handle"
# As installed, it looks for jobs every 0.5 s, for as many as it may run at once (`Worker`, in arq's reference).
# This is for the least lateness and the highest rate. Nobody wants the results.
TUNED: Final[dict[str, Any]] = {"poll_delay": 0.01, "queue_read_limit": 1000, "keep_result": 0}


class Arq:
    """Its pool of connections, and workers."""

    def __init__(self, pool: ArqRedis, settings: RedisSettings) -> None:
        self._pool, self._settings = pool, settings

    async def push(self, orders: Sequence[Order]) -> None:
        """One call a job."""
        for order in orders:
            await self._pool.enqueue_job(NAME, order.body, _defer_by=order.delay_s)

    @asynccontextmanager
    async def working(self, at_once: int, handle: Handle) -> AsyncIterator[None]:
        """A worker that runs so many jobs at once."""

        async def handled(_: Any, body: str) -> None:
            handle(body)

        worker = Worker(
            [func(handled, name=NAME)],
            redis_settings=self._settings,
            handle_signals=False,
            max_jobs=at_once,
            **TUNED,
        )
        running = asyncio.create_task(worker.async_run())
        yield
        await asyncio.gather(*worker.tasks.values())  # closing it cancels them
        await worker.close()
        await asyncio.wait([running])


@asynccontextmanager
async def opened(port: str) -> AsyncIterator[Side]:
    """Connected to the Redis at a port."""
    settings = RedisSettings(port=int(port))
    pool = await create_pool(settings)
    yield Arq(pool, settings)
    await pool.aclose()


if __name__ == "__main__":
    play(opened)
