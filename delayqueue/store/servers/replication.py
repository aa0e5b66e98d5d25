"""`durability = replica`: acknowledged writes are on replicas, so they survive when one of these takes over.

WAIT says that a number of replicas have what this connection wrote. It does not say that one of these is promoted when
the master is lost: Sentinels and Clusters compare how far replicas are, but by what these reported seconds ago, and
take another one if the furthest does not answer. Only if all replicas of a master must have a write does every possible
successor have it: so `redis.min_replicas` should be their number (docs/faults.md).
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.errors import Text
from delayqueue.store.scripts import REPLICATE, ScriptHead
from delayqueue.store.servers.connection import NotReplicatedError, Wait
from delayqueue.store.servers.disk import (
    STORE,
    NotDurableError,
    asks_for_sync,
    require_file,
    require_sync,
)
from delayqueue.store.servers.shards import Shards
from delayqueue.tasks import SingleFlight

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0  # replicas come and go
LAG_S: Final = 2  # replicas report every second; one silent for longer counts as unavailable
REPLICA: Final = "replica"


class TooFewReplicasError(NotReplicatedError):
    """A call was not begun, because its replicas are known to be unavailable."""


class Replicas:
    """Which calls wait for replicas, and whether a job that they have survives a failover."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._wait = Wait(config.redis_min_replicas, config.redis_replica_timeout_ms)
        self._waiting = REPLICATE[: REPLICATE.index(config.redis_replicate) + 1]
        self._short: WeakSet[Redis] = WeakSet()  # masters whose replicas have kept a call waiting
        self._questions = SingleFlight[None]()
        self.warnings: list[Text] = []  # why such a job could be lost right now

    def wait(self, verb: ScriptHead) -> Wait | None:
        """What a call of the verb waits for."""
        return self._wait if verb.waits in self._waiting else None

    def missed(self, redis: Redis) -> None:
        """Too few replicas had this server's write."""
        if redis not in self._short:
            log.warning("too few replicas answer: pushes get 503 until they follow again")
        self._short.add(redis)

    def is_met(self, redis: Redis) -> bool:
        """Whether no call to this server has waited for nothing."""
        return redis not in self._short

    async def require(self, redis: Redis) -> None:
        """Raises TooFewReplicasError if too few are known to follow: then there is no need to begin."""
        if not self.is_met(redis):
            await self._questions.do(redis, partial(self._ask, redis))

    async def _ask(self, redis: Redis) -> None:
        following = len(_following(await redis.info("replication")))
        if following < self._wait.replicas:
            raise TooFewReplicasError(f"{following} of {self._wait.replicas} replicas follow")
        self._short.discard(redis)

    async def watch(self, shards: Shards) -> None:
        """Update `warnings`, and log changes, until cancelled: at the start, every 5 s and after a failover."""
        while True:
            changed = shards.changed
            found = await replication_warnings(shards, self._config)
            for warning in found:
                if warning not in self.warnings:
                    log.warning("%s", warning.en)
            if self.warnings and not found:
                log.info("acknowledged jobs survive a failover again")
            self.warnings = found
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await changed.wait()


def asks_for_replicas(config: Config) -> bool:
    """Whether `durability` asks for replicas, alone or together with the disk."""
    return REPLICA in config.durability.split("+")


async def replication_warnings(shards: Shards, config: Config) -> list[Text]:
    """Why a job that `redis.min_replicas` replicas have could be lost in a failover; empty if it could not."""
    servers = shards.servers()
    warnings: list[Text] = []
    for address, redis in servers.items():
        name = f"{address}: " if len(servers) > 1 else ""
        try:
            found = await _warnings_of(shards, redis, config)
        except RedisError as error:
            found = [
                Text(
                    f"无法知道存储有哪些副本：{error}",
                    f"it is unknown which replicas the store has: {error}",
                )
            ]
        warnings += [Text(name + warning.zh, name + warning.en) for warning in found]
    return warnings


async def _warnings_of(shards: Shards, master: Redis, config: Config) -> list[Text]:
    info: dict[str, Any] = await master.info("replication")
    known = await shards.replicas_of(master)
    following = _following(info)
    number = max(info.get("connected_slaves", 0), known or 0)
    syncs = asks_for_sync(config)
    # each replica may be the next master
    on_disk = await asyncio.gather(
        _forgets(master, STORE, syncs),
        *(_replica_forgets(shards, Address(each["ip"], each["port"]), syncs) for each in following),
    )
    return _numbers(len(following), number, config.redis_min_replicas) + list(filter(None, on_disk))


def _numbers(following: int, number: int, least: int) -> list[Text]:
    """What is wrong with how many replicas follow a master, and how many it has in all."""
    found = {
        Text(
            f"有 {following} 个副本跟随存储，推送要等 {least} 个（redis.min_replicas）：在那之前，推送得到 503",
            f"{following} replicas follow the store, and pushes wait for {least} (redis.min_replicas): "
            "they get 503 until more do",
        ): following < least,
        Text(
            f"存储有 {number} 个副本，推送只等其中 {least} 个：缺少最后一些推送的副本也可能接管；"
            f"请设置 redis.min_replicas = {number}，或者移除不会再回来的副本（SENTINEL RESET、CLUSTER FORGET）",
            f"the store has {number} replicas, and pushes wait for {least} of them: one without the last "
            f"pushes can take over; set redis.min_replicas = {number}, or remove replicas that are gone for good "
            "(SENTINEL RESET, CLUSTER FORGET)",
        ): number > least,
    }
    return [warning for warning, applies in found.items() if applies]


async def _replica_forgets(shards: Shards, address: Address, syncs: bool) -> Text | None:
    name = Text(f"副本 {address} ", f"the replica {address}")
    try:
        async with shards.ask(address) as redis:
            return await _forgets(redis, name, syncs)
    except RedisError as error:
        return Text(
            f"无法询问{name.zh}保存得是否可靠，它接管之后也无法使用：{error}",
            f"{name.en} cannot be asked how durable it is, nor be used once it takes over: {error}",
        )


async def _forgets(redis: Redis, name: Text, syncs: bool) -> Text | None:
    """Why the server with that name could restart with less than it had; None if it could not."""
    try:
        await require_file(redis, name)
        if syncs:
            await require_sync(redis, name)
    except NotDurableError as error:
        return error.text
    return None


def _following(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The replicas that have all data and reported recently, according to a master."""
    return [
        replica
        for name, replica in info.items()
        if name.startswith("slave")
        and isinstance(replica, dict)
        and (replica.get("state") == "online" and replica.get("lag", 0) <= LAG_S)
    ]
