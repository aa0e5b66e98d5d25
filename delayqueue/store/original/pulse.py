"""Whether an old server runs on this Redis."""

import asyncio
import secrets
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.store.original.names import Names

# Its timer ticks every second, and processes the probe first; a burst of due jobs or a slow Redis may delay it.
DEAD_S: Final = 10.0


class Pulse:
    """Puts an entry without a record, long due, into a bucket: the timer of a running server removes it."""

    def __init__(self, redis: Redis, names: Names) -> None:
        self.probe = f"dq_import:probe:{secrets.token_hex(8)}".encode()
        self._redis = redis
        self._buckets = names.buckets()
        self._bucket = ""
        self._laid_at: float | None = None  # loop time

    async def feel(self) -> bool:
        """Whether a server may be running; always true within DEAD_S of the first call."""
        now = asyncio.get_running_loop().time()
        if self._laid_at is None:
            self._bucket = await self._usable()
        elif await self._redis.zscore(self._bucket, self.probe) is not None:
            return now - self._laid_at < DEAD_S
        await self._redis.zadd(self._bucket, {self.probe: 0})
        self._laid_at = now
        return True

    async def end(self) -> None:
        """Remove the probe."""
        if self._laid_at is not None:
            await self._redis.zrem(self._bucket, self.probe)

    async def _usable(self) -> str:
        """The first usable bucket: a job's id can be the name of a bucket, so that its record takes the key."""
        for bucket in self._buckets:
            if await self._redis.type(bucket) in {b"zset", b"none"}:
                return bucket
        raise RedisError("no key is left for a bucket")
