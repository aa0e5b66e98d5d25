"""Whether a server drops jobs when its memory is full: `maxmemory` with a policy that evicts keys without an expiry.

One eviction takes a whole key, and a key can hold all jobs of a bucket. With `volatile-*` only keys with an expiry go:
figures of the history, and which worker holds which job.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.tasks import SingleFlight

TRUST_S: Final = 5.0  # a running server's config can be changed


class EvictsError(RedisError):
    """A server drops jobs when its memory is full, and `require_noeviction` forbids that."""


def evicts(info: Mapping[str, Any]) -> bool:
    """Whether the server with this INFO drops jobs when its memory is full; True if it does not say."""
    policy = str(info.get("maxmemory_policy"))
    return (
        info.get("maxmemory") != 0 and policy != "noeviction" and not policy.startswith("volatile-")
    )


class NoEviction:
    """Refuses additions on a server that drops jobs when its memory is full."""

    def __init__(self) -> None:
        self._trusted_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()
        self._questions = SingleFlight[None]()

    def is_met(self, redis: Redis) -> bool:
        """Whether this server was asked recently, and keeps its jobs."""
        return self._trusted_until.get(redis, 0.0) >= asyncio.get_running_loop().time()

    async def require(self, redis: Redis) -> None:
        """Raises EvictsError if this server drops jobs."""
        if not self.is_met(redis):
            await self._questions.do(redis, partial(self._ask, redis))

    async def _ask(self, redis: Redis) -> None:
        until = asyncio.get_running_loop().time() + TRUST_S
        info: dict[str, Any] = await redis.info("memory")
        if evicts(info):
            raise EvictsError(f"maxmemory-policy is {info.get('maxmemory_policy')}")
        self._trusted_until[redis] = until
