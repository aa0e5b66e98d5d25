"""What a push must survive before it is answered, by the setting `durability`.

- `fsync`: it is on the store's disk. That takes servers that sync before they answer (disk.py).
- `replica`: it is on replicas (replication.py).
- `replica+fsync`: both.

And what the setting `require_noeviction` asks for (eviction.py).
"""

from typing import Protocol, Self

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.store.scripts import ScriptHead
from delayqueue.store.servers.asked import Asked
from delayqueue.store.servers.connection import NotReplicatedError, Wait
from delayqueue.store.servers.disk import (
    NotDurableError,
    asks_for_sync,
    require_file,
    require_sync,
)
from delayqueue.store.servers.eviction import require_noeviction
from delayqueue.store.servers.health import Look
from delayqueue.store.servers.replication import Replicas, asks_for_replicas, replication_warnings
from delayqueue.store.servers.shards import Shards


class Requirement(Protocol):
    """What a server must have before a call is begun."""

    def is_met(self, redis: Redis) -> bool:
        """Whether the server is known to have it; False = ask require()."""

    async def require(self, redis: Redis) -> None:
        """Raises RedisError if the server does not have it."""


class Durability:
    """What calls need so that their changes are as durable as configured when they are answered."""

    def __init__(
        self,
        fsync: Requirement | None = None,
        replicas: Replicas | None = None,
        noeviction: Requirement | None = None,
    ) -> None:
        self._fsync = fsync
        self._noeviction = noeviction
        self.replicas = replicas

    @classmethod
    def of(cls, config: Config) -> Self:
        """The durability that the settings ask for."""
        return cls(
            Asked(require_sync) if asks_for_sync(config) else None,
            Replicas(config) if asks_for_replicas(config) else None,
            Asked(require_noeviction) if config.require_noeviction else None,
        )

    def wait(self, verb: ScriptHead) -> Wait | None:
        """What a call of the verb waits for."""
        return self.replicas.wait(verb) if self.replicas else None

    def requirements(self, verb: ScriptHead) -> list[Requirement]:
        """What a server must have before a call of the verb is begun."""
        needed: list[Requirement] = []
        if "sync" in verb.needs:
            needed += filter(None, (self._fsync, self._noeviction))
        if self.replicas and "replicas" in verb.needs and self.wait(verb):
            needed.append(self.replicas)
        return needed

    def lets_in(self, look: Look) -> bool:
        """Whether the server that was looked at takes new jobs from us."""
        return look.ailment is None and not (self._noeviction and look.evicts)

    def learn(self, error: RedisError, redis: Redis) -> None:
        """Learn from the error of a call."""
        if self.replicas and isinstance(error, NotReplicatedError):
            self.replicas.missed(redis)


async def check_durability(shards: Shards, config: Config) -> None:
    """Raises StartupError if the store cannot give what `durability` asks for."""
    replicated = asks_for_replicas(config)
    if replicated and config.embedded:
        raise StartupError(
            f"durability = {config.durability}: the embedded store has no replicas; "
            "set durability = fsync, or use a store with replicas",
            key="durability",
        )
    for redis in shards.servers().values():
        try:
            if asks_for_sync(config):
                await require_sync(redis)
            if replicated:
                await require_file(redis)
        except NotDurableError as error:
            raise StartupError(
                f"durability = {config.durability}: {error}", key="durability"
            ) from None
        except RedisError:  # one of many, unavailable now: it is checked before its first push
            continue


async def replica_warnings(shards: Shards, config: Config) -> list[str]:
    """Why an acknowledged job could be lost in a failover, if `durability` should prevent that."""
    if not asks_for_replicas(config):
        return []
    return [warning.en for warning in await replication_warnings(shards, config)]
