"""`durability = replica`: what is answered is on replicas, so that it is still there when one of them takes over.

WAIT says that so many replicas have what this connection wrote. It does not say that one of these is chosen when the
master is lost: Sentinels and Clusters look at how far replicas are, but by what these said seconds ago, and take any
other where the furthest does not answer them. Only where all replicas of a master must have it, every one that can be
chosen does: so `redis.min_replicas` is to be their number (docs/reliability.md).
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.config import Config
from delayqueue.store.servers.packing import NotReplicatedError, Wait
from delayqueue.store.servers.shards import Shards

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0  # replicas come and go
LAG_S: Final = 2  # one that has said nothing for longer is away; they speak every second
NO_FILE: Final = (
    "the store has no append-only file: a master that starts again is empty, and empties its replicas; "
    "set `appendonly yes` in its config"
)
PUSHES: Final = frozenset(("push", "register", "import", "settle", "export"))
CHANGES: Final = PUSHES | frozenset(
    (
        "bury",
        "cancel",
        "delete",
        "finish",
        "kick",
        "kick_tag",
        "limit",
        "pause",
        "postpone",
        "purge",
        "record",
        "release",
        "reschedule",
        "reschedule_tag",
        "take",
        "touch",
        "unregister",
    )
)
# by the values of redis.replicate
VERBS: Final = {"pushes": PUSHES, "changes": CHANGES, "all": CHANGES | {"pop"}}


class TooFewReplicasError(NotReplicatedError):
    """A call was not begun, as its replicas are known to be away."""


class Replicas:
    """Which calls wait for replicas, and whether a job that they have survives a failover."""

    def __init__(self, config: Config) -> None:
        self._wait = Wait(config.redis_min_replicas, config.redis_replica_timeout_ms)
        self._verbs = VERBS[config.redis_replicate]
        self._short: WeakSet[Redis] = WeakSet()  # masters whose replicas have kept a call waiting
        self.doubts: list[str] = []  # why such a job could be lost right now

    def wait(self, verb: str) -> Wait | None:
        """What a call of the verb waits for."""
        return self._wait if verb in self._verbs else None

    def missed(self, redis: Redis) -> None:
        """Too few replicas had what this server did."""
        if redis not in self._short:
            log.warning("too few replicas answer: pushes get 503 until they follow again")
        self._short.add(redis)

    async def require(self, redis: Redis) -> None:
        """Raises TooFewReplicasError if too few are known to follow: then nothing need be begun."""
        if redis not in self._short:
            return
        following = _following(await redis.info("replication"))
        if following < self._wait.replicas:
            raise TooFewReplicasError(f"{following} of {self._wait.replicas} replicas follow")
        self._short.discard(redis)

    async def watch(self, shards: Shards) -> None:
        """Keep `doubts`, and log when they change, until cancelled: at the start, every 5 s and after a failover."""
        while True:
            changed = shards.changed
            found = await replication_doubts(shards, self._wait.replicas)
            for doubt in found:
                if doubt not in self.doubts:
                    log.warning("%s", doubt)
            if self.doubts and not found:
                log.info("acknowledged jobs survive a failover again")
            self.doubts = found
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await changed.wait()


async def replication_doubts(shards: Shards, least: int) -> list[str]:
    """Why a job that `least` replicas have could be lost in a failover; none where it cannot."""
    servers = shards.servers()
    doubts: list[str] = []
    for address, redis in servers.items():
        name = f"{address}: " if len(servers) > 1 else ""
        try:
            info: dict[str, Any] = await redis.info()
            known = await shards.replicas_of(redis)
        except RedisError as error:
            doubts.append(f"{name}nobody knows what replicas the store has: {error}")
            continue
        doubts += [name + doubt for doubt in _doubts(info, known, least)]
    return doubts


def _doubts(info: Mapping[str, Any], known: int | None, least: int) -> list[str]:
    following = _following(info)
    number = max(info.get("connected_slaves", 0), known or 0)
    found = {
        f"{following} replicas follow the store, and pushes wait for {least} (redis.min_replicas): "
        "they get 503 until more do": following < least,
        f"the store has {number} replicas, and pushes wait for {least} of them: one that has not got the last "
        f"pushes can take over; set redis.min_replicas = {number}, or remove those that are gone for good "
        "(SENTINEL RESET, CLUSTER FORGET)": number > least,
        NO_FILE: info.get("aof_enabled") == 0,
    }
    return [doubt for doubt, applies in found.items() if applies]


def _following(info: Mapping[str, Any]) -> int:
    """How many replicas have all data and have spoken lately, as a master says."""
    replicas = [
        replica
        for name, replica in info.items()
        if name.startswith("slave") and isinstance(replica, dict)
    ]
    return sum(
        replica.get("state") == "online" and replica.get("lag", 0) <= LAG_S for replica in replicas
    )
