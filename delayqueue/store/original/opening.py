"""The connection to the old Redis."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config import values
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.store.servers.connect import connect


class StoreAway(Exception):
    """The old store, or the new one, does not answer or refuses; the message says which and why."""


@asynccontextmanager
async def open_old(config: Config, url: str) -> AsyncIterator[Redis]:
    """Connections to the old Redis, with the same precautions as to our own.

    Raises StartupError if it cannot be reached, StoreAway if Redis fails inside the block.
    """
    try:
        values.redis_url(url)
    except ValueError as error:
        raise StartupError(f"the old store: {error}") from None
    parts = urlsplit(url)
    if parts.scheme != "unix" and not parts.path.strip("/") and "db=" not in parts.query:
        raise StartupError(
            "the old store: say which database, as in redis://HOST:PORT/1; its config file has it as redis.db"
        )
    async with AsyncExitStack() as stack:
        there = replace(config, redis_url=url, redis_sentinel=(), redis_cluster=())
        try:
            shards = await stack.enter_async_context(connect(there, None))
        except StartupError as error:
            raise StartupError(f"the old store: {error}") from None
        try:
            yield shards.of("")
        except RedisError as error:
            raise StoreAway(str(error)) from error
