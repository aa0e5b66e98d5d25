"""How the data is laid out, written beside it: a server that would not find the jobs refuses to start."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config import Config, StartupError
from delayqueue.store.keys import BucketKeys
from delayqueue.store.shards import Shards

VERSION = 1


async def claim_layout(shards: Shards, config: Config) -> None:
    """Write the layout where there is none, and check it. StartupError as check_layout."""
    key = _key(config)
    with _one_line():
        for field, value in _wanted(config).items():
            # the first server of all decides
            await shards.call(key, partial(_set_new, key, field, value))
    await check_layout(shards, config)


async def check_layout(shards: Shards, config: Config) -> None:
    """Compare the layout of existing data with the settings; nothing is written.

    StartupError where the data was made with another layout; it names the option and the way out.
    """
    key = _key(config)
    with _one_line():
        raw: dict[Any, Any] = await shards.call(key, lambda redis: redis.hgetall(key))
    stored = {name.decode(): value.decode() for name, value in raw.items()}
    for field, value in _wanted(config).items():
        if stored.get(field, value) != value:
            raise StartupError(
                f"{field} = {value}, but the data in this store was made with {field} = {stored[field]}: "
                f"set {field} = {stored[field]}, or choose another store, redis.db or bucket_name",
                key=field,
            )


async def data_id(shards: Shards, config: Config) -> str:
    """A name of this data that no other data has; made when it is asked for the first time."""
    key = _key(config)
    with _one_line():
        await shards.call(key, partial(_set_new, key, "id", secrets.token_hex(8)))
        name: Any = await shards.call(key, lambda redis: redis.hget(key, "id"))
    return str(name.decode())


async def _set_new(key: str, field: str, value: str, redis: Redis) -> None:
    await redis.hsetnx(key, field, value)


def _key(config: Config) -> str:
    return BucketKeys.of(1, config.bucket_name, config.queue_name).layout


def _wanted(config: Config) -> dict[str, str]:
    wanted = {
        "version": str(VERSION),
        "bucket_size": str(config.bucket_size),
        "queue_name": config.queue_name,
        "scheduler": config.scheduler,
    }
    if config.scheduler == "wheel":
        wanted["wheel_slots"] = str(config.wheel_slots)
    return wanted


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except RedisError as error:
        raise StartupError(
            f"the store refuses to say how its data is laid out: {error}; "
            "permit its user all commands on all keys that begin as bucket_name says",
            key="bucket_name",
        ) from None
