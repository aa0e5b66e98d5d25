"""How the data is laid out, written beside it: a server that would not find the jobs refuses to start."""

from typing import Any

from redis.asyncio import Redis

from delayqueue.config import Config, StartupError
from delayqueue.store.keys import BucketKeys

VERSION = 1


async def check_layout(redis: Redis, config: Config) -> None:
    """Write the layout where there is none, compare it where there is one.

    StartupError where existing data was made with another layout; it names the option and the way out.
    """
    key = BucketKeys.of(1, config.bucket_name, config.queue_name).layout
    wanted = {
        "version": str(VERSION),
        "bucket_size": str(config.bucket_size),
        "queue_name": config.queue_name,
    }
    for field, value in wanted.items():
        await redis.hsetnx(key, field, value)  # the first server of all decides
    raw: dict[Any, Any] = await redis.hgetall(key)
    stored = {name.decode(): value.decode() for name, value in raw.items()}
    for field, value in wanted.items():
        if stored[field] != value:
            raise StartupError(
                f"{field} = {value}, but the data in this store was made with {field} = {stored[field]}: "
                f"set {field} = {stored[field]}, or choose another store, redis.db or bucket_name"
            )
