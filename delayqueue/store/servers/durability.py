"""What a push must have survived before it is answered, by the setting `durability`.

`fsync`: it is on the store's disk. That takes servers with `appendfsync always`: they sync before they answer. WAITAOF
would be the other way, and is none: while appendfsync is everysec, Valkey and Redis before 8.0 answer it before they
have synced (779 answers, 5 syncs, seen with strace on Valkey 9.1.2; redis/redis#13793), and Redis 8 answers it once a
second.

`replica`: it is on replicas (replication.py). `replica+fsync`: both.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.store.servers.packing import NotReplicatedError, Wait
from delayqueue.store.servers.replication import NO_FILE, Replicas, replication_doubts
from delayqueue.store.servers.shards import Shards

FSYNC: Final = "fsync"
REPLICA: Final = "replica"
ADDING: Final = frozenset(("push", "register", "import"))
BEGINNING: Final = ADDING | {"pop"}  # better not begun than begun in vain; what ends a job is
TRUST_S: Final = 5.0  # somebody can change a running server's config
NEEDED: Final = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


class NotDurableError(RedisError):
    """A server answers before it has synced; the message says why and names the way out."""


class Fsync:
    """Lets nothing be added on a server that answers before it has synced: a new master, say, or a changed config."""

    def __init__(self) -> None:
        self._trusted_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()

    async def require(self, redis: Redis) -> None:
        """Raises NotDurableError if this server answers first."""
        now = asyncio.get_running_loop().time()
        if self._trusted_until.get(redis, 0.0) < now:
            await _require(redis)
            self._trusted_until[redis] = now + TRUST_S


class Durability:
    """Lets a call be answered once what it did is kept as well as is asked for."""

    def __init__(self, fsync: Fsync | None, replicas: Replicas | None) -> None:
        self._fsync = fsync
        self.replicas = replicas

    @classmethod
    def of(cls, config: Config) -> Self:
        """As the settings ask for."""
        asked = _asked(config)
        return cls(
            Fsync() if FSYNC in asked else None, Replicas(config) if REPLICA in asked else None
        )

    async def keep(
        self, redis: Redis, verb: str, call: Callable[[Wait | None], Awaitable[Any]]
    ) -> Any:
        """What the call of a verb says. Raises NotDurableError if nothing was begun, NotReplicatedError."""
        if self._fsync and verb in ADDING:
            await self._fsync.require(redis)
        if not self.replicas:
            return await call(None)
        wait = self.replicas.wait(verb)
        if wait and verb in BEGINNING:
            await self.replicas.require(redis)
        try:
            return await call(wait)
        except NotReplicatedError:
            self.replicas.missed(redis)
            raise


async def check_durability(shards: Shards, config: Config) -> None:
    """Raises StartupError if the store cannot keep what `durability` asks for."""
    asked = _asked(config)
    if REPLICA in asked and config.embedded:
        raise StartupError(
            f"durability = {config.durability}: the embedded store has no replicas; "
            "set durability = fsync, or take a store that has some",
            key="durability",
        )
    for redis in shards.servers().values():
        try:
            if FSYNC in asked:
                await _require(redis)
            if REPLICA in asked:
                await _require_file(redis)
        except NotDurableError as error:
            raise StartupError(
                f"durability = {config.durability}: {error}", key="durability"
            ) from None
        except RedisError:  # one of many that is away: it is looked at before its first push
            continue


async def replica_warnings(shards: Shards, config: Config) -> list[str]:
    """Why an acknowledged job could be lost in a failover, where `durability` asks that none is."""
    if REPLICA not in _asked(config):
        return []
    return await replication_doubts(shards, config.redis_min_replicas)


def _asked(config: Config) -> list[str]:
    return config.durability.split("+")


async def _require_file(redis: Redis) -> None:
    if (await redis.info("persistence")).get("aof_enabled") == 0:
        raise NotDurableError(NO_FILE)


async def _require(redis: Redis) -> None:
    try:
        # a pattern, as Redis before 7.0 takes one only
        found = await redis.config_get("*append*")
    except ResponseError:
        raise NotDurableError(
            "the store refuses CONFIG GET, so nobody knows whether it syncs before it answers; permit it, "
            "or set durability = store"
        ) from None
    wrong = [f"{key} {value}" for key, value in NEEDED.items() if found.get(key) != value]
    if wrong:
        raise NotDurableError(
            f"the store answers before a job is on its disk; set `{', '.join(wrong)}` in its config"
        )
