"""Whether a server drops jobs when its memory is full: `maxmemory` with a policy that evicts keys without an expiry.

One eviction takes a whole key, and a key can hold all jobs of a bucket. With `volatile-*` only keys with an expiry go:
figures of the history, and which worker holds which job.
"""

from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError


class EvictsError(RedisError):
    """A server drops jobs when its memory is full, and `require_noeviction` forbids that."""


def evicts(info: Mapping[str, Any]) -> bool:
    """Whether the server with this INFO drops jobs when its memory is full; True if it does not say."""
    policy = str(info.get("maxmemory_policy"))
    return (
        info.get("maxmemory") != 0 and policy != "noeviction" and not policy.startswith("volatile-")
    )


async def require_noeviction(redis: Redis) -> None:
    """Raises EvictsError if this server drops jobs when its memory is full."""
    info: dict[str, Any] = await redis.info("memory")
    if evicts(info):
        raise EvictsError(f"maxmemory-policy is {info.get('maxmemory_policy')}")
