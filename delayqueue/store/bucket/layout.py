"""The layout of the data, stored beside it: a server that would not find the jobs refuses to start.

It changes with the number of buckets (following.py).
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.errors import Unavailable
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.keys import BucketKeys
from delayqueue.store.servers.ailments import ailment
from delayqueue.store.servers.shards import Shards

log = logging.getLogger(__name__)

VERSION: Final = 1
STARTING, ON = "starting", "on"  # the values of `moving` before and after the fences are up
LOOK_S: Final = 1.0  # between two checks whether the layout is still there
# Writes the fields that are missing (ARGV: field, value, ...). A store whose memory is full must not prevent a start,
# as consumers make room: after a first write that takes no memory, it allows the others.
ADD: Final = """
redis.call('HDEL', KEYS[1], '')
for at = 1, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) end
"""
# Writes a layout (ARGV: field, value, ...) if there is none; returns the one in force.
CLAIM: Final = """
if redis.call('HEXISTS', KEYS[1], 'bucket_size') == 0 then redis.call('HSET', KEYS[1], unpack(ARGV)) end
return redis.call('HGETALL', KEYS[1])
"""


async def claim_layout(shards: Shards, config: Config) -> Layout:
    """Write the layout if there is none, and check it. Raises StartupError and StoreUnwell as check_layout() does."""
    key = _key(config)
    with _one_line():
        await shards.call(key, partial(_add, key, _wanted(config)))  # the first server decides
    return await check_layout(shards, config)


async def check_writable(shards: Shards, config: Config) -> None:
    """Raises StoreUnwell if the store accepts no writes, as a replica does. Changes nothing."""
    with _one_line():
        await shards.call(_key(config), partial(_add, _key(config), {}))


async def check_layout(shards: Shards, config: Config) -> Layout:
    """Compare the layout of existing data with the settings, without writing. Returns the one in force.

    Raises StartupError if the data was made with another layout; the message names the option and the way out.
    Raises StoreUnwell if it cannot be read now. A
    `bucket_size` that was in force before is accepted (layout_warnings): a restart must not depend on new settings.
    """
    key = _key(config)
    with _one_line():
        stored = await shards.call(key, partial(_read, key))
    return _checked(stored, config)


async def keep_layout(
    shards: Shards, config: Config, buckets: Buckets, follow: Callable[[], Awaitable[None]]
) -> None:
    """Check that the layout is the one that this process uses, until cancelled.

    If the data was wiped under it (FLUSHALL), it claims the layout again, before a server with other settings can. A
    newer layout is followed. Raises StartupError if it does not agree with the settings, as at the start.
    """
    while True:
        await asyncio.sleep(LOOK_S)
        known = buckets.layout
        if known.moving:
            continue
        try:
            stored = await shards.call(_key(config), partial(_claim_again, config, known))
            layout = _checked(stored, config)
            if layout.generation <= known.generation and layout != known:
                await follow()
        except (RedisError, Unavailable):
            log.debug("cannot check the layout of the data")


async def _claim_again(config: Config, layout: Layout, redis: Redis) -> dict[str, str]:
    fields = _wanted(config) | {"bucket_size": str(layout.size)}
    if layout.generation:
        fields["generation"] = str(layout.generation)
        fields["former_bucket_sizes"] = ",".join(map(str, layout.former_sizes))
    flat: Any = await redis.eval(CLAIM, 1, _key(config), *_pairs(fields))
    return decoded(dict(zip(flat[::2], flat[1::2], strict=True)))


def _checked(stored: dict[str, str], config: Config) -> Layout:
    """The stored layout; raises StartupError if it does not match the settings."""
    layout = parse(stored, config.bucket_size)
    if config.bucket_size in layout.former_sizes:
        stored.pop("bucket_size", None)
    for field, value in _wanted(config).items():
        if stored.get(field, value) != value:
            more = ", or change it with `delay-queue rebalance`" if field == "bucket_size" else ""
            raise StartupError(
                f"{field} = {value}, but the data in this store was made with {field} = {stored[field]}: "
                f"set {field} = {stored[field]}{more}, or choose another store, redis.db or bucket_name",
                key=field,
            )
    return layout


def layout_warnings(layout: Layout, config: Config) -> list[str]:
    """What somebody should change or complete."""
    warnings = []
    if config.bucket_size != layout.size:
        warnings.append(
            f"bucket_size = {config.bucket_size}, but there are {layout.size} buckets now: "
            f"set bucket_size = {layout.size}"
        )
    if layout.moving:
        warnings.append(
            f"jobs are being moved to {layout.size} buckets: if nothing is moving them, "
            f"run `delay-queue rebalance --buckets {layout.size}`"
        )
    return warnings


async def data_id(shards: Shards, config: Config) -> str:
    """A name for this data that no other data has, made the first time that it is asked for."""
    key = _key(config)
    with _one_line():
        await shards.call(key, partial(_add, key, {"id": secrets.token_hex(8)}))
        name: Any = await shards.call(key, lambda redis: redis.hget(key, "id"))
    return str(name.decode())


async def _add(key: str, fields: Mapping[str, str], redis: Redis) -> None:
    await redis.eval(ADD, 1, key, *_pairs(fields))


def _pairs(fields: Mapping[str, str]) -> list[str]:
    return [part for field in fields.items() for part in field]


async def _read(key: str, redis: Redis) -> dict[str, str]:
    return decoded(await redis.hgetall(key))


def decoded(raw: dict[Any, Any]) -> dict[str, str]:
    """The fields of a layout as HGETALL returns them."""
    return {name.decode(): value.decode() for name, value in raw.items()}


def parse(stored: Mapping[str, str], default_size: int) -> Layout:
    """The layout with these fields; `default_size`: the number of buckets if nothing is stored."""
    moving = stored.get("moving", "")
    return Layout(
        int(stored.get("bucket_size", default_size)),
        int(stored.get("generation", 0)),
        tuple(map(int, filter(None, stored.get("former_bucket_sizes", "").split(",")))),
        moving=bool(moving),
        fenced=moving != STARTING,
    )


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
        reason = str(error).partition(" script: ")[0]  # its hash and line say nothing here
        if (text := ailment(error)) is None:
            raise StartupError(
                f"the store refuses the layout of its data: {reason}; "
                "allow its user all commands on all keys that begin like bucket_name",
                key="bucket_name",
            ) from None
        raise StoreUnwell(f"{Unavailable.because(text)} ({reason})", text) from None
