"""What happens to a call of a verb that does not go straight: it is attempted again, or fails.

An attempt that was surely not done is repeated, within the time that the call has:

- the bucket is on another server by now (MOVED): there;
- the server does not have the library or the script: once that is loaded;
- the server refuses functions: as a script;
- the call came too LATE by the server's clock, which was unknown or has jumped: with the time that the server told.

After everything else the caller gets Unavailable. STALELAYOUT says that the number of buckets is being changed, or was:
this process makes no more calls until it knows the layout in force. A silence, a broken connection, a refused WAIT or
too few replicas leave open whether it was done. The rest are refusals that a repetition would meet, too.

A call whose server is not known, or has been silent, or may not be as durable as configured, begins here as well: what
is missing is found out before its first attempt.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

from redis.exceptions import ClusterDownError, MovedError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text, Unavailable
from delayqueue.store.bucket.outages import Outages
from delayqueue.store.bucket.verb_call import VerbCall
from delayqueue.store.servers.clock import told_by
from delayqueue.store.servers.durability import Durability
from delayqueue.store.servers.functions import Functions
from delayqueue.store.servers.pipeline import NO_ANSWER
from delayqueue.store.servers.server import Server
from delayqueue.store.servers.shards import GOES_ROUND, Shards
from delayqueue.tasks import Tasks

MOST_REPEATS: Final = 8  # servers can send a call in a circle, and functions be flushed under load
STALE: Final = "STALELAYOUT"  # the start of the scripts' error (_call.lua)
OUTDATED: Final = Text("桶数正在改变，或已改变", "the buckets are being changed, or were")


class Recovery:
    """Ends calls that did not go straight."""

    def __init__(
        self,
        shards: Shards,
        functions: Functions,
        durability: Durability,
        outages: Outages,
        be_outdated: Callable[[], None],
    ) -> None:
        """`be_outdated` is called when the store refuses the layout that this process knows."""
        self._shards = shards
        self._functions = functions
        self._durability = durability
        self._outages = outages
        self._be_outdated = be_outdated
        self._tasks = Tasks("call of the store")

    def start(self, call: VerbCall, error: Exception | None = None) -> None:
        """See to a call. `error` is that of its last attempt; None = there was none yet."""
        self._tasks.start(self._recover(call, error))

    async def _recover(self, call: VerbCall, error: Exception | None) -> None:
        try:
            server = await self._ready(call, error)
        except Exception as failure:
            if not call.done():
                call.set_exception(failure)
            return
        if not call.done():  # else it was cancelled meanwhile
            call.attempt(server)

    async def _ready(self, call: VerbCall, error: Exception | None) -> Server:
        """The server for the next attempt, ready for it. Raises Unavailable if no attempt is left."""
        if error is not None and str(error).startswith(STALE):
            self._be_outdated()
            raise Unavailable(OUTDATED) from error
        try:
            return await self._next_server(call, error)
        except RedisError as failure:
            if not call.done():
                verb = call.terms.verb
                self._outages.failed(
                    call.bucket, verb.name, failure, call.made_s, writes=verb.writes
                )
            raise Unavailable from failure

    async def _next_server(self, call: VerbCall, error: Exception | None) -> Server:
        try:
            async with asyncio.timeout(call.until_s - monotonic()):
                while True:
                    try:
                        return await self._prepare(call, error)
                    except RedisError as failure:
                        if call.server is None:
                            raise
                        self._durability.learn(failure, call.server.redis)
                        await self._shards.learn(failure, call.server)
                        error = None  # and the call goes to where it is sent
        except TimeoutError:
            silence = RedisTimeoutError(NO_ANSWER)
            if call.server is not None:
                await self._shards.learn(silence, call.server)
            raise silence from None

    async def _prepare(self, call: VerbCall, error: Exception | None) -> Server:
        """Find the server for the next attempt, and give it what the call needs.

        Raises RedisError: that of `call.server`; None = it is not known which one to ask.
        """
        if error is not None and call.server is not None:
            await self._mend(call, error, call.server)
        call.server = None
        call.server = server = await self._shards.reach(call.tag)
        for requirement in call.terms.requirements:
            await requirement.require(server.redis)
        return server

    async def _mend(self, call: VerbCall, error: Exception, server: Server) -> None:
        """See to it that the next attempt does not fail as the last one did. Raises the error if it would."""
        call.repeats += 1
        if call.repeats > MOST_REPEATS:
            raise ClusterDownError(GOES_ROUND) if isinstance(error, MovedError) else error
        if (found_ms := told_by(error)) is not None:
            server.clock.heard(found_ms, call.asked_s)
            if monotonic() > call.until_s:
                raise error
        elif not await self._functions.supply(error, call.terms.verb.name, call.words, server):
            raise error
