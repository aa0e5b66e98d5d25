"""Connects to the store: which servers it has, and a connection pool for each."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import cache, partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from redis.asyncio import (
    BlockingConnectionPool,
    Connection,
    Redis,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.connection import AbstractConnection, ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import AuthenticationError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

from delayqueue.config.config import Config
from delayqueue.config.files import check_readable
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.config.values import Address
from delayqueue.store.connection import CLOSED, AnswerParser, Link, shared_context
from delayqueue.store.durability import asks_for_replicas
from delayqueue.store.health import ailment
from delayqueue.store.server import ANSWER_S
from delayqueue.store.servers import Cluster, Sentinels, Servers

log = logging.getLogger(__name__)

# A store that is silent for longer counts as unavailable. The original waited 180 s, because its /pop blocked in Redis;
# here no call blocks, and clients want to hear about it.
SILENCE_MS: Final = round(ANSWER_S * 1000)
ASK_S: Final = 1.0  # a server that does not answer within this time is skipped
TLS_FILES: Final = "redis.tls_ca, redis.tls_cert and redis.tls_key"


@asynccontextmanager
async def connect(
    config: Config, socket_path: str | None, *, waits: bool = False
) -> AsyncIterator[Servers]:
    """Connections to the store while the block runs: to the embedded one at `socket_path`, else to the configured one.

    Answers are bytes. Commands are never sent twice: a script whose answer was lost may have run. Raises StartupError
    if a setting is wrong, StoreUnwell if the store cannot be reached, unless the caller `waits` for it with
    check_reachable().
    """
    key, where = where_is(config, socket_path)
    try:
        servers = _servers(config, socket_path)
    except ValueError as error:
        raise StartupError(f"{where}: {error} Correct the URL", key=key) from None
    except OSError as error:
        raise StartupError(
            f"{where}: TLS: {error.filename or ''} {error.strerror}; correct {TLS_FILES}", key=key
        ) from None
    async with aclosing(servers):
        if not waits:
            await check_reachable(servers, config, socket_path)
        yield servers


async def check_reachable(servers: Servers, config: Config, socket_path: str | None) -> None:
    """Raises StartupError if the store refuses us by a setting, StoreUnwell if it cannot be reached."""
    key, where = where_is(config, socket_path)
    try:
        await servers.refresh()
        await _probe(servers)
    except TypeError:  # redis-py passes unknown parameters on to a function
        raise StartupError(
            f"{where}: unknown parameter in the query; correct the URL", key=key
        ) from None
    except RedisError as error:
        reason = " ".join(str(error).split()).rstrip(".")
        way_out = _way_out(reason, config)
        message = f"{where}: {reason}; {way_out.text}"
        if way_out.heals and (text := ailment(error)):
            raise StoreUnwell(message, text, key=key) from None
        raise StartupError(message, key=key) from None


def _servers(config: Config, socket_path: str | None) -> Servers:
    """Raises ValueError if redis.url has an impossible value."""
    if config.redis_cluster:
        options = _servers_options(config)
        single = partial(_single, options)
        known = Cluster(config.redis_cluster, single)
        return Servers(known, partial(_pooled, config, options), single, [], _answer_s(config))
    if config.redis_sentinel:
        ask = partial(_single, _sentinel_options(config))
        named = Sentinels(config.redis_sentinel, config.redis_master_name, ask)
        options = _servers_options(config) | {"db": config.redis_db}
        single = partial(_single, options)
        return Servers(named, partial(_pooled, config, options), single, [], _answer_s(config))
    target = _target(config, socket_path)
    replica = partial(_single, _over_tcp(target))
    return Servers.one(_redis(config, target), replica, _answer_s(config))


@cache
def our_driver() -> DriverInfo:
    """What tells servers which client this is. Left alone, redis-py reads its version from a file at each connect."""
    return DriverInfo()


def _pooled(config: Config, options: dict[str, Any], address: Address) -> Redis:
    return _redis(config, options | {"host": address.host, "port": address.port})


def _single(options: dict[str, Any], address: Address) -> Redis:
    """A client for one question, which closes its connection afterwards."""
    target = options | {"host": address.host, "port": address.port}
    return Redis.from_pool(ConnectionPool(**_options(target, ASK_S, ASK_S)))


def _redis(config: Config, target: dict[str, Any]) -> Redis:
    silence_s = _silence_s(config)
    pool = BlockingConnectionPool(
        # the other half is for calls (server.py)
        max_connections=((config.redis_max_active or max(1, config.redis_max_idle)) + 1) // 2,
        # shorter than a question may take, so that its error blames the pool, and not the server
        timeout=silence_s / 2,
        **_options(target, silence_s, config.redis_connect_timeout_ms / 1000),
    )
    return Redis.from_pool(pool)


def _options(target: dict[str, Any], silence_s: float, connect_s: float) -> dict[str, Any]:
    """The options of connections for questions to that target."""
    return target | {
        "connection_class": _asking(target["connection_class"]),
        "parser_class": AnswerParser,
        "decode_responses": False,
        "protocol": 2,  # as fast as 3 (measured), and every server and proxy understands it
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": silence_s,
        "socket_connect_timeout": connect_s,
        "health_check_interval": 0,
        "driver_info": our_driver(),
    }


class _Asking(AbstractConnection):
    """redis-py's connection, for questions: it can be lost with uvloop, too, and left while its server is silent."""

    __slots__ = ()

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        """Raises ConnectionError if the store closed it since the last command, also while it logs in."""
        try:
            await super().send_packed_command(command, check_health)
        # uvloop's, and that of asyncio's writelines before Python 3.14
        except (RuntimeError, AttributeError) as error:
            raise RedisConnectionError(CLOSED) from error

    async def connect(self) -> None:
        """Connect, unless it is connected. Raises RedisError."""
        if isinstance(self, SSLConnection) and not self.is_connected:
            try:
                self.ssl_context.context = shared_context(self.ssl_context)
            except OSError as error:
                raise RedisConnectionError(f"TLS: {error}") from error
        await super().connect()  # type: ignore[no-untyped-call]  # redis-py has no types here

    async def disconnect(self, *_: Any, **why: Any) -> None:
        """Close it without waiting for its end.

        With TLS that takes seconds if the server is silent, and redis-py would then close its successor.
        """
        await super().disconnect(**why | {"nowait": True})


@cache
def _asking(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    return type(kind.__name__, (_Asking, kind), {})


def _target(config: Config, socket_path: str | None) -> dict[str, Any]:
    """The address of the single server, and the credentials."""
    if socket_path:
        return {"connection_class": UnixDomainSocketConnection, "path": socket_path}
    if config.redis_url:
        parsed: dict[str, Any] = {"connection_class": Connection, **parse_url(config.redis_url)}
        return parsed | (_tls(config) if parsed["connection_class"] is SSLConnection else {})
    host, port = config.redis_host or ("", 0)
    return _servers_options(config) | {"host": host, "port": port, "db": config.redis_db}


def _over_tcp(target: dict[str, Any]) -> dict[str, Any]:
    """The options of a connection over TCP, if `target` is a local socket: to its replica on another machine, say."""
    if "path" not in target:
        return target
    rest = {name: value for name, value in target.items() if name != "path"}
    return rest | {"connection_class": Connection}


def _servers_options(config: Config) -> dict[str, Any]:
    return {
        "username": config.redis_user or None,
        "password": config.redis_password or None,
        **(_tls(config) if config.redis_tls else {"connection_class": Connection}),
    }


def _sentinel_options(config: Config) -> dict[str, Any]:
    return _servers_options(config) | {
        "username": config.redis_sentinel_user or None,
        "password": config.redis_sentinel_password or None,
    }


def _tls(config: Config) -> dict[str, Any]:
    files = {
        "ssl_ca_certs": config.redis_tls_ca,
        "ssl_certfile": config.redis_tls_cert,
        "ssl_keyfile": config.redis_tls_key,
    }
    given = {name: str(path) for name, path in files.items() if path}
    for path in filter(None, files.values()):
        check_readable(path)
    return {"connection_class": SSLConnection, **given}


def _silence_s(config: Config) -> float:
    """How long to wait for the store; redis-py has one limit for sending and for the answer."""
    limits = [config.redis_read_timeout_ms, config.redis_write_timeout_ms]
    return max(min(limit_ms or SILENCE_MS, SILENCE_MS) for limit_ms in limits) / 1000


def _answer_s(config: Config) -> float:
    """How long a call, which may wait for replicas, too, can take before its server counts as silent."""
    wait_s = config.redis_replica_timeout_ms / 1000 if asks_for_replicas(config) else 0.0
    return min(_silence_s(config) + wait_s, ANSWER_S)


def where_is(config: Config, socket_path: str | None) -> tuple[str, str]:
    """The option that gives the store's address, and its value without user and password."""
    if socket_path:
        return "", "embedded store"
    if config.redis_cluster:
        return "redis.cluster", f"redis.cluster = {_listed(config.redis_cluster)}"
    if config.redis_sentinel:
        return "redis.sentinel", f"redis.sentinel = {_listed(config.redis_sentinel)}"
    if config.redis_url:
        url = urlsplit(config.redis_url)
        host = url.netloc.rpartition("@")[2]
        return "redis.url", f"redis.url = {url.scheme}://{host}{url.path}"
    return "redis.host", f"redis.host = {config.redis_host}"


def _listed(addresses: tuple[Address, ...]) -> str:
    return ", ".join(map(str, addresses))


async def _probe(servers: Servers) -> None:
    """Check that the store answers; of many servers one is enough, unless one refuses us."""
    clients = servers.clients()
    answers = await asyncio.gather(*map(_answer, clients.values()), return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    for error in errors:
        is_away = isinstance(error, RedisError) and not isinstance(error, AuthenticationError)
        if len(errors) == len(clients) or not is_away:
            raise error
        log.warning("a server of the store is unavailable: %s", error)


async def _answer(redis: Redis) -> None:
    """Raises RedisError if the server does not answer."""
    try:
        # not PING: a server that cannot write to its disk refuses that, and answers what only reads
        await redis.echo("")
    except RedisConnectionError:
        link = Link()
        try:
            # a plain socket reads why the server refuses it; redis-py often does not
            await link.connect(redis.connection_pool)
        finally:
            link.close()
        raise


class _WayOut(NamedTuple):
    text: str
    heals: bool = False  # without a change of settings


def _way_out(reason: str, config: Config) -> _WayOut:
    password, db = ("redis.url",) * 2 if config.redis_url else ("redis.password", "redis.db")
    if config.redis_sentinel:
        password += " or redis.sentinel_password"
    quotes = ", in quotes if it contains ; or #" if config.redis_password else ""
    ways = {
        "No such master": _WayOut("correct redis.master_name"),
        "cluster support disabled": _WayOut(
            "name that server in redis.host, or start it with cluster-enabled yes"
        ),
        "in cluster mode": _WayOut("name the servers of that Cluster in redis.cluster"),
        "Authentication required|password|WRONGPASS|AUTH": _WayOut(f"correct {password}{quotes}"),
        "DB index": _WayOut(
            f"lower the number in {db}, or raise `databases` in the store's config"
        ),
        "Timeout reading": _WayOut(
            "it accepts connections and answers nothing: look at its log and its load", heals=True
        ),
        "max number of clients": _WayOut(
            "raise `maxclients` in the store's config, or end other clients", heals=True
        ),
        "loading": _WayOut("it is ready when it has loaded its data", heals=True),
        "BUSY": _WayOut("it goes on when that script has ended, or after SCRIPT KILL", heals=True),
        "permission|protected mode|NOPERM|DENIED": _WayOut("permit it in the store's config"),
        "CERTIFICATE|SSL": _WayOut(f"correct {TLS_FILES}"),
    }
    for signs, way in ways.items():
        if re.search(signs, reason, re.IGNORECASE):
            return way
    start = "start Redis or Valkey there"
    if where_is(config, None)[0] != "redis.host":
        return _WayOut(f"{start}, or correct the address", heals=True)
    way_out = f"{start}, correct the address, or use the embedded store: redis.host = embedded"
    return _WayOut(way_out, heals=True)
