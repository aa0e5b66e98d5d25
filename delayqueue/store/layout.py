"""The layout of the data, stored beside it: a server that would not find the jobs refuses to start.

The number of buckets changes while nobody works (change.py). Meanwhile the layout is the former one, and says what it
is being changed to.
"""

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import methodcaller
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import MovedError, RedisError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.errors import Text, Unavailable
from delayqueue.store.buckets import Layout
from delayqueue.store.health import ailment
from delayqueue.store.keys import BucketKeys
from delayqueue.store.permissions import require_commands
from delayqueue.store.servers import Servers

log = logging.getLogger(__name__)

VERSION: Final = 1
# The version of a layout that is being changed, and of one with several buckets that are those of the braces: an older
# server refuses to start with it.
CHANGING: Final = 2
OF_BRACES: Final = 3
# Writes the fields that are missing (ARGV: how many there are for a new layout only, these first: field, value, ...).
# Returns all.
# A store whose memory is full must not prevent a start, as consumers make room: after a first write that takes no
# memory, it allows the others.
ADD: Final = """
redis.call('HDEL', KEYS[1], '')
local is_new = redis.call('HEXISTS', KEYS[1], 'bucket_size') == 0
for at = is_new and 2 or 2 + 2 * ARGV[1], #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) end
return redis.call('HGETALL', KEYS[1])
"""
# As _call.lua does: a job without an id, which nobody waits for, has ended. Older servers die of an empty message.
PUBLISH: Final = """
return redis.call(redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH', KEYS[1], 'nobody 0 ')
"""


class Resize(NamedTuple):
    """A change of the number of buckets that has not ended: to `size` buckets. `percent` of the data is looked at."""

    size: int
    percent: int = 0

    @property
    def text(self) -> Text:
        """Why calls are refused meanwhile."""
        return Text(
            f"正在改变桶数（{self.percent}%）",
            f"the buckets are being changed, {self.percent} % done",
        )


class Stored(NamedTuple):
    """The layout in force, and the change under way. `is_new`: nothing is stored yet."""

    layout: Layout
    change: Resize | None
    is_new: bool = False


async def claim_layout(servers: Servers, config: Config) -> Stored:
    """Write the layout if there is none, and check it. Raises StartupError and StoreUnwell as check_layout() does."""
    key = _key(config)
    with as_startup_error():
        new = Layout(config.bucket_size, braces=config.bucket_size > 1)
        # the first server decides
        stored = await servers.call(key, partial(_add, key, _wanted(config), written(new)))
        await _try_to_publish(servers, config)
    return _checked(stored, config)


async def check_writable(servers: Servers, config: Config) -> None:
    """Raises StoreUnwell if the store accepts no writes, as a replica does, or refuses a command that servers need.

    StartupError if our user may not write at all.
    """
    tag = _first(config).tag
    with as_startup_error():
        await servers.call(_key(config), partial(_add, _key(config), {}, {}))
        await _try_to_publish(servers, config)
        await servers.call(tag, partial(require_commands, tag=tag))


async def _try_to_publish(servers: Servers, config: Config) -> None:
    """Raises RedisError if our user may not publish: a push of a ready job would be stored, and answered with 503."""
    channel = _first(config).named("ready")
    await servers.call(channel, methodcaller("eval", PUBLISH, 1, channel))


async def check_layout(servers: Servers, config: Config) -> Stored:
    """Compare the layout of existing data with the settings, without writing. Returns the one in force.

    Raises StartupError if the data was made with another layout; the message names the option and the way out. Raises
    StoreUnwell if it cannot be read now. A `bucket_size` that was in force before is accepted (layout_warnings): a
    restart must not depend on new settings.
    """
    with as_startup_error():
        stored = await read_fields(servers, _key(config))
    return _checked(stored, config)


async def look_at_layout(servers: Servers, config: Config, known: Layout) -> Stored | None:
    """The layout in force; None if it cannot be read now.

    If the data was wiped (FLUSHALL), the known layout is claimed again, before a server with other settings can.
    Raises StartupError if the layout does not agree with the settings, as at the start.
    """
    key = _key(config)
    try:
        stored = await servers.call(key, partial(_add, key, _wanted(config), written(known)))
    except RedisError:
        log.debug("cannot check the layout of the data")
        return None
    return _checked(stored, config)


def _checked(stored: dict[str, str], config: Config) -> Stored:
    """The stored layout; raises StartupError if it does not match the settings."""
    layout, change, _ = found = parse(stored, config.bucket_size)
    if config.bucket_size in layout.former_sizes or (change and config.bucket_size == change.size):
        stored.pop("bucket_size", None)
    if change or stored.get("version") == str(OF_BRACES):
        stored.pop("version", None)
    for field, value in _wanted(config).items():
        if stored.get(field, value) != value:
            more = ", or change it with `delay-queue rebalance`" if field == "bucket_size" else ""
            raise StartupError(
                f"{field} = {value}, but the data in this store was made with {field} = {stored[field]}: "
                f"set {field} = {stored[field]}{more}, or choose another store, redis.db or bucket_name",
                key=field,
            )
    return found


def layout_warnings(stored: Stored, config: Config) -> list[str]:
    """What somebody should change or complete."""
    layout, change, _ = stored
    if change:
        return [
            (
                f"{change.text.en}: the servers wait until there are {change.size}; "
                f"if nothing changes them, run `delay-queue rebalance --buckets {change.size}`"
            )
        ]
    if config.bucket_size != layout.size:
        return [
            (
                f"bucket_size = {config.bucket_size}, but there are {layout.size} buckets now: "
                f"set bucket_size = {layout.size}"
            )
        ]
    return []


async def data_id(servers: Servers, config: Config) -> str:
    """A name for this data that no other data has, made the first time that it is asked for."""
    key = _key(config)
    with as_startup_error():
        name = {"id": secrets.token_hex(8)}
        return (await servers.call(key, partial(_add, key, name, {})))["id"]


async def _add(
    key: str, fields: Mapping[str, str], new: Mapping[str, str], redis: Redis
) -> dict[str, str]:
    """Add what is missing of the fields, and what is `new` for a layout that is. Returns all fields."""
    pairs = chain.from_iterable(chain(new.items(), fields.items()))
    flat: Any = await redis.eval(ADD, 1, key, str(len(new)), *pairs)
    return decoded(dict(zip(flat[::2], flat[1::2], strict=True)))


def written(layout: Layout) -> dict[str, str]:
    """The fields that say which bucket an id belongs to."""
    return {
        "version": str(OF_BRACES if layout.braces else VERSION),
        "bucket_size": str(layout.size),
        "generation": str(layout.generation),
        "former_bucket_sizes": ",".join(map(str, layout.former_sizes)),
        "braces": "1" if layout.braces else "",
    }


async def read_fields(servers: Servers, key: str) -> dict[str, str]:
    """The fields of the layout. Raises RedisError."""
    return decoded(await servers.call(key, methodcaller("hgetall", key)))


def decoded(raw: dict[Any, Any]) -> dict[str, str]:
    """The fields of a layout as HGETALL returns them."""
    return {name.decode(): value.decode() for name, value in raw.items()}


def parse(stored: Mapping[str, str], default_size: int) -> Stored:
    """The layout with these fields; `default_size`: the number of buckets if nothing is stored."""
    layout = Layout(
        int(stored.get("bucket_size", default_size)),
        int(stored.get("generation", 0)),
        tuple(map(int, filter(None, stored.get("former_bucket_sizes", "").split(",")))),
        braces=bool(stored.get("braces")),
    )
    if size := stored.get("changing"):
        return Stored(layout, Resize(int(size), int(stored.get("percent", 0))))
    # an older version changes the number of buckets while its servers work, and says so in `moving`
    return Stored(layout, Resize(layout.size) if stored.get("moving") else None, not stored)


def _first(config: Config) -> BucketKeys:
    return BucketKeys.of(1, config.bucket_name, config.queue_name)


def _key(config: Config) -> str:
    return _first(config).named("layout")


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
def as_startup_error() -> Iterator[None]:
    """Raises StoreUnwell or StartupError, of one line, where the block raises RedisError."""
    try:
        yield
    except RedisError as error:
        reason = str(error).partition(" script: ")[0]  # its hash and line say nothing here
        if (text := ailment(error)) is None:
            raise StartupError(
                f"the store refuses the layout of its data: {reason}; "
                "allow its user all commands on all keys and channels that begin like bucket_name",
                key="bucket_name",
            ) from None
        said = str(Unavailable.because(text))
        if reason != text.en:
            said += f" ({reason})"
        if isinstance(error, MovedError):  # a setting is wrong
            raise StartupError(said, key="redis.host") from None
        raise StoreUnwell(said, text) from None
