"""`durability = fsync`: a push is answered only once the job is on the store's disk.

That takes servers with `appendfsync always`: they sync before they answer. WAITAOF would be the other way, and is none:
while appendfsync is everysec, Valkey and Redis before 8.0 answer it before they have synced (779 answers, 5 syncs, seen
with strace on Valkey 9.1.2; redis/redis#13793), and Redis 8 answers it once a second.
"""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from delayqueue.config import Config, StartupError
from delayqueue.store.shards import Shards

FSYNC: Final = "fsync"
TRUST_S: Final = 5.0  # somebody can change a running server's config
NEEDED: Final = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


class NotDurableError(RedisError):
    """A server answers before it has synced; the message says why and names the way out."""


class Fsync:
    """Lets nothing be added on a server that answers before it has synced: a new master, say, or a changed config."""

    def __init__(self) -> None:
        self._trusted_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()

    async def require(self, redis: Redis) -> None:
        """NotDurableError where this server answers first."""
        now = asyncio.get_running_loop().time()
        if self._trusted_until.get(redis, 0.0) < now:
            await _require(redis)
            self._trusted_until[redis] = now + TRUST_S


async def check_durability(shards: Shards, config: Config) -> None:
    """StartupError where `durability = fsync` is asked for and a server answers before it has synced."""
    if config.durability != FSYNC:
        return
    for redis in shards.servers().values():
        try:
            await _require(redis)
        except NotDurableError as error:
            raise StartupError(f"durability = {FSYNC}: {error}", key="durability") from None
        except RedisError:  # one of many that is away: it is looked at before its first push
            continue


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
