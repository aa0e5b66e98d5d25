"""One server of the store: the ways to it, and its clock, as far as its answers have told it.

A call can reach the store when its client has long been told that nobody knows: the system sends its bytes again once
a broken link has healed, and a frozen store or a proxy passes on what it took in before. Done then, it would undo what
was acknowledged since. So each call says until when it may be done, in the clock of the server that does it, which
refuses it after that (`begin` in _call.lua).
"""

import logging
import math
import re
from typing import Final

from redis.asyncio import Redis

from delayqueue.config.values import Address
from delayqueue.store.servers.connection import Links, Sendable, Wait
from delayqueue.store.servers.pipeline import ANSWER_S, AT_A_TIME, Pipeline

log = logging.getLogger(__name__)

# Connections that its pipelines hold, with and without WAIT; while exchanges take long, they use more.
HELD: Final = 2 * AT_A_TIME


REFUSAL: Final = re.compile(r"LATE (\d+)")  # the start of the scripts' error, with the store's time
# What is known of a clock is wrong by what an answer took, so a smaller change may be none.
JUMP_MS: Final = ANSWER_S * 1000


def told_by(refusal: Exception) -> int | None:
    """The store's time in ms, if it refused a call because the call's time was over; None for any other error."""
    found = REFUSAL.match(str(refusal))
    return int(found[1]) if found else None


class Clock:
    """How far a server's clock is ahead of the event loop's, at most.

    Each answer tells it: the server read its clock after the call was made, so it cannot be further ahead than that.
    It may be less far ahead, by what the call took. So a call that is on time is never refused, and one that is late is
    refused at the latest that much later.
    """

    def __init__(self) -> None:
        self._ahead_ms: float | None = None
        self.jumps = 0

    def heard(self, now_ms: int, asked_s: float) -> None:
        """The answer to a call that was made at the loop's time `asked_s` has the server's time."""
        before_ms = self._ahead_ms
        self._ahead_ms = now_ms - asked_s * 1000
        if before_ms is not None and abs(self._ahead_ms - before_ms) > JUMP_MS:
            jump_s = (self._ahead_ms - before_ms) / 1000
            self.jumps += 1
            log.warning("the store's clock has jumped by %+.1f s", jump_s)

    def at_ms(self, loop_s: float) -> int:
        """The server's time at a time of the loop, at the latest; long ago if nothing was heard of it."""
        return 0 if self._ahead_ms is None else math.ceil(loop_s * 1000 + self._ahead_ms)


class Server:
    """A server at an address, or at any that `redis` is connected to."""

    def __init__(self, address: Address, redis: Redis, answer_s: float) -> None:
        """A call that takes longer than `answer_s` has failed."""
        self.address: Final = address
        self.redis: Final = redis
        self.clock: Final = Clock()
        self.refused_until_s = 0.0  # monotonic: it refuses functions; 0 = it never has
        self._answer_s = answer_s
        pool = redis.connection_pool
        # A call waits for a connection for less time than it has: its error then says that there was none, and does not
        # blame the server.
        self._links = Links(pool, HELD + pool.max_connections - 1, answer_s / 2)
        self._pipelines: dict[Wait | None, list[Pipeline]] = {}

    def send(self, call: Sendable, wait: Wait | None) -> None:
        """Send a call by the pipeline that is free, else by the first; it is answered once `wait` is over."""
        pipelines = self._pipelines.get(wait)
        if pipelines is None:
            made = [Pipeline(self._links, wait, self._answer_s) for _ in range(AT_A_TIME)]
            pipelines = self._pipelines[wait] = made
        for pipeline in pipelines:
            if pipeline.current is None:
                pipeline.send(call)
                return
        pipelines[0].send(call)

    async def drop_idle(self) -> None:
        """Close the idle connections, as the server is silent: the next call to use one might wait as long."""
        self._links.drop_free()
        await self.redis.connection_pool.disconnect(inuse_connections=False)

    async def aclose(self) -> None:
        """Close all connections."""
        for pipelines in self._pipelines.values():
            for pipeline in pipelines:
                await pipeline.aclose()
        await self._links.aclose()
        await self.redis.aclose()
