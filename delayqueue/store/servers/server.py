"""One server of the store: the ways to it, and what is known of it."""

from typing import Final

from redis.asyncio import Redis

from delayqueue.config.values import Address
from delayqueue.store.servers.clock import Clock
from delayqueue.store.servers.connection import Links
from delayqueue.store.servers.pipeline import AT_A_TIME, Pipeline, Wait

# Connections that its pipelines hold, with and without WAIT; while exchanges take long, they use more.
HELD: Final = 2 * AT_A_TIME


class Server:
    """A server at an address, or at any that `redis` is connected to."""

    def __init__(self, address: Address, redis: Redis, answer_s: float) -> None:
        """A call that takes longer than `answer_s` has failed."""
        self.address: Final = address
        self.redis: Final = redis
        self.clock: Final = Clock()
        self.refused_until_s = 0.0  # monotonic: it refuses functions; 0 = it never has
        self._answer_s = answer_s
        pool = redis.connection_pool
        # A call waits for a connection for less time than it has: its error then says that there was none, and does not
        # blame the server.
        self._links = Links(pool, HELD + pool.max_connections - 1, answer_s / 2)
        self._pipelines: dict[Wait | None, list[Pipeline]] = {}

    def pipeline(self, wait: Wait | None) -> Pipeline:
        """One that is free, else the first."""
        pipelines = self._pipelines.get(wait)
        if pipelines is None:
            made = [Pipeline(self._links, wait, self._answer_s) for _ in range(AT_A_TIME)]
            pipelines = self._pipelines[wait] = made
        for pipeline in pipelines:
            if pipeline.current is None:
                return pipeline
        return pipelines[0]

    async def drop_idle(self) -> None:
        """Close the idle connections, as the server is silent: the next call to use one might wait as long."""
        self._links.drop_free()
        await self.redis.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self) -> None:
        """Close all connections."""
        for pipelines in self._pipelines.values():
            for pipeline in pipelines:
                await pipeline.aclose()
        await self._links.aclose()
        await self.redis.aclose()
