"""What a server is asked before a call: the answer counts for some seconds, because its config can be changed."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from redis.asyncio import Redis

from delayqueue.tasks import SingleFlight

TRUST_S: Final = 5.0


class Asked:
    """A requirement about which `question` asks a server; it raises RedisError if the server does not meet it.

    After a failover, say, or a changed config.
    """

    def __init__(self, question: Callable[[Redis], Awaitable[None]]) -> None:
        self._question = question
        self._trusted_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()
        self._questions = SingleFlight[None]()

    def is_met(self, redis: Redis) -> bool:
        """Whether this server was asked recently, and meets it."""
        return self._trusted_until.get(redis, 0.0) >= asyncio.get_running_loop().time()

    async def require(self, redis: Redis) -> None:
        """Raises RedisError if this server does not meet it."""
        if not self.is_met(redis):
            await self._questions.do(redis, partial(self._ask, redis))

    async def _ask(self, redis: Redis) -> None:
        until = asyncio.get_running_loop().time() + TRUST_S
        await self._question(redis)
        self._trusted_until[redis] = until
