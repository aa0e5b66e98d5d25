"""The way to the store: a pool of connections, and what can be wrong with the store at the start."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Connection, Redis, UnixDomainSocketConnection
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from delayqueue.config import Config, StartupError
from delayqueue.store.packing import fast

# A store that is silent for longer counts as away. The original waited 180 s, as its /pop blocked
# in Redis; here no call blocks, and clients want to hear of it.
SILENCE_MS: Final = 5000
OLDEST: Final = (6, 2)


@asynccontextmanager
async def connect(config: Config, socket_path: str | None) -> AsyncIterator[Redis]:
    """Connections to the store while the block runs: to the embedded one at `socket_path`, else the configured.

    Answers are bytes. Commands are never sent twice: a script whose answer was lost may have run.
    Raises StartupError where the store cannot be reached or refuses us.
    """
    where = "embedded store" if socket_path else _where(config)
    try:
        redis = Redis.from_pool(_pool(config, socket_path))
    except ValueError as error:
        raise StartupError(f"{where}: {error} Correct the URL", key="redis.url") from None
    async with redis:
        await _probe(redis, where, config)
        yield redis


async def durability_warnings(redis: Redis) -> list[str]:
    """A line for each reason why this store may lose jobs or fail us; none where all is well.

    INFO tells all of it; CONFIG GET, the other source, is not there in hosted Redis.
    """
    try:
        info: dict[str, Any] = await redis.info()
    except RedisError:
        return [
            (
                "the store refuses INFO, so nobody knows whether it can lose jobs: "
                "see that it is Redis 6.2 or newer with appendonly yes and maxmemory-policy noeviction"
            )
        ]
    return weaknesses(info)


def weaknesses(info: Mapping[str, Any]) -> list[str]:
    """A line for each reason, in the store's answer to INFO, why it may lose jobs or fail us."""
    version = str(info.get("redis_version"))
    policy = info.get("maxmemory_policy")
    warnings = {
        f"the store has version {version}: use Redis 6.2 or newer, or Valkey": (
            _numbers(version) < OLDEST
        ),
        "the store can lose jobs when it stops: set `appendonly yes` in its config": (
            info.get("aof_enabled") != 1
        ),
        f"the store drops jobs when its memory is full, as maxmemory-policy is {policy}: "
        "set `maxmemory-policy noeviction` in its config": (
            info.get("maxmemory") != 0 and policy != "noeviction"
        ),
    }
    return [warning for warning, applies in warnings.items() if applies]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _pool(config: Config, socket_path: str | None) -> BlockingConnectionPool:
    """Raises ValueError where redis.url has a value that cannot be."""
    silence_s = _silence_s(config)
    options: dict[str, Any] = {
        "decode_responses": False,
        "protocol": 2,  # as fast as 3 (measured), and understood by every server and proxy
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": silence_s,
        "socket_connect_timeout": config.redis_connect_timeout_ms / 1000,
        "health_check_interval": 0,
    }
    options = _target(config, socket_path) | options
    options["connection_class"] = fast(options["connection_class"])
    return BlockingConnectionPool(
        # one more, as listening for other processes' messages holds one for good
        max_connections=max(1, config.redis_max_active or config.redis_max_idle) + 1,
        # not as long as a call may take: who got a connection in the last moment would be cancelled while he sends,
        # and asyncio.wait_for, which redis-py sends with, can swallow that (Python 3.11)
        timeout=silence_s / 2,
        **options,
    )


def _target(config: Config, socket_path: str | None) -> dict[str, Any]:
    """Where the store is and who we are to it."""
    if socket_path:
        return {"connection_class": UnixDomainSocketConnection, "path": socket_path}
    if config.redis_url:
        return {"connection_class": Connection, **parse_url(config.redis_url)}
    host, port = config.redis_host or ("", 0)
    return {
        "connection_class": Connection,
        "host": host,
        "port": port,
        "db": config.redis_db,
        "password": config.redis_password or None,
    }


def _silence_s(config: Config) -> float:
    """How long to wait for the store; redis-py has one limit for sending and for the answer."""
    limits = [config.redis_read_timeout_ms, config.redis_write_timeout_ms]
    return max(min(limit_ms or SILENCE_MS, SILENCE_MS) for limit_ms in limits) / 1000


def _where(config: Config) -> str:
    if not config.redis_url:
        return f"redis.host = {config.redis_host}"
    url = urlsplit(config.redis_url)
    # without the user and the password
    return f"redis.url = {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


async def _probe(redis: Redis, where: str, config: Config) -> None:
    """Raises StartupError where the store does not answer or refuses us."""
    try:
        await redis.ping()
    except TypeError:  # redis-py passes what it does not know on to a function
        raise StartupError(
            f"{where}: unknown parameter in the query; correct the URL", key="redis.url"
        ) from None
    except RedisError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        key = "redis.url" if config.redis_url else "redis.host"
        raise StartupError(f"{where}: {reason}; {_way_out(reason, config)}", key=key) from None


def _way_out(reason: str, config: Config) -> str:
    password, db = ("redis.url",) * 2 if config.redis_url else ("redis.password", "redis.db")
    ways = {
        "Authentication required|password|WRONGPASS|AUTH": f"correct {password}",
        "DB index": f"lower the number in {db}, or raise `databases` in the store's config",
        "loading": "start again when it has loaded its data",
        "permission|protected mode|NOPERM|DENIED": "permit it in the store's config",
    }
    for signs, way in ways.items():
        if re.search(signs, reason, re.IGNORECASE):
            return way
    return "start Redis or Valkey there, or correct the address"
