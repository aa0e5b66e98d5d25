"""Calls the verbs: as functions of a library, which the store keeps built, else as scripts, built again at each call.

Stores have functions from Redis 7.0 on. A library goes to a store's disk and to its replicas like data, so it is there
after a restart and after a failover; a call that finds none loads it. If the store refuses functions (it is older, its
user may not load them, its memory is full), the verbs run as scripts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.asyncio.connection import ConnectionPool
from redis.exceptions import NoPermissionError, NoScriptError, RedisError, ResponseError

from delayqueue.store.scripts import Script, Scripts
from delayqueue.store.servers.clock import Clock, told_by
from delayqueue.store.servers.pipeline import AT_A_TIME, Pipeline, Wait
from delayqueue.store.servers.shards import Shards
from delayqueue.tasks import SingleFlight

log = logging.getLogger(__name__)

# retries if functions or scripts are flushed under load; a call that finds nothing to run has changed nothing
RELOADS: Final = 3
REFUSED_S: Final = 60.0  # before a server that refused functions is asked for them again
NOT_FOUND: Final = "Function not found"
UNKNOWN_COMMAND: Final = "unknown command"
ALREADY_THERE: Final = "already exists"


async def remove_old_functions(shards: Shards, scripts: Scripts) -> None:
    """Remove the libraries of other versions of this program. A server that still uses one loads it again."""
    for redis in shards.servers().values():
        with suppress(RedisError):  # it has no functions, or is unavailable
            for library in await redis.function_list(f"{scripts.family}*"):
                name = library[1].decode()  # after the word library_name
                if name != scripts.library.name:
                    log.info("removing the functions of another version: %s", name)
                    await redis.function_delete(name)


class Terms(NamedTuple):
    """What must hold for a call to be done: `begin` in _prelude.lua refuses it if one of these does not."""

    generation: int  # of the layout: there is no later one
    until_s: float  # the loop's time: after that nobody waits for the call
    sender: (
        str  # names this process; it is told what others announce, not what it has announced itself
    )


class _Refused(Exception):
    """The server does not accept our library; the message says why."""


class _Server:
    """What is known of one server of the store, and the ways to it."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.clock = Clock()
        self.refused_until_s = 0.0  # loop time: it refuses functions; 0 = it never has
        self._pool = pool
        self._pipelines: dict[Wait | None, list[Pipeline]] = {}

    def pipeline(self, wait: Wait | None) -> Pipeline:
        """One that is free, else the first."""
        pipelines = self._pipelines.get(wait)
        if pipelines is None:
            made = [Pipeline(self._pool, wait) for _ in range(AT_A_TIME)]
            pipelines = self._pipelines[wait] = made
        for pipeline in pipelines:
            if not pipeline.is_busy:
                return pipeline
        return pipelines[0]


class Functions:
    """The verbs of one version of this program, on any server."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._names = {verb: scripts.function(verb) for verb in scripts.verbs}
        self._built: dict[str, Script] = {}
        self._loads = SingleFlight[object]()
        self._servers: WeakKeyDictionary[Redis, _Server] = WeakKeyDictionary()

    async def call(
        self,
        verb: str,
        keys: Sequence[str],
        args: Sequence[Any],
        terms: Terms,
        redis: Redis,
        wait: Wait | None,
    ) -> Sequence[Any]:
        """Call a verb on these terms; returns its answer (end_call in _prelude.lua).

        A server whose clock is unknown, or has jumped ahead, refuses a call that is on time, and tells its own. That
        has changed nothing, so the call is made again.

        Raises RedisError if the store does not answer, or refuses.
        """
        loop = asyncio.get_running_loop()
        server = self._servers.get(redis)
        if server is None:
            server = self._servers[redis] = _Server(redis.connection_pool)
        while True:
            asked_s = loop.time()
            until_ms = server.clock.at_ms(terms.until_s)
            told = f"{terms.generation} {until_ms} {terms.sender}{' w' if wait else ''}"
            rest = len(keys), *keys, *args, told
            try:
                answer: Sequence[Any] = await self._call(verb, rest, redis, server, wait, asked_s)
            except ResponseError as error:
                if (found_ms := told_by(error)) is None:
                    raise
                server.clock.heard(found_ms, asked_s)
                if loop.time() > terms.until_s:
                    raise
            else:
                server.clock.heard(answer[0], asked_s)
                return answer

    async def _call(
        self,
        verb: str,
        rest: Sequence[Any],
        redis: Redis,
        server: _Server,
        wait: Wait | None,
        now_s: float,
    ) -> Any:
        send = server.pipeline(wait).call
        if server.refused_until_s <= now_s:
            words = "FCALL", self._names[verb], *rest
            try:
                return await _loading(send, words, partial(self._load_library, redis))
            except (_Refused, ResponseError) as error:
                if not _is_refusal(error):
                    raise
                if not server.refused_until_s:
                    log.warning(
                        "the store refuses functions, so each call costs it more: %s", error
                    )
                server.refused_until_s = now_s + REFUSED_S
        script = self._script(verb)
        words = "EVALSHA", script.sha, *rest
        return await _loading(send, words, partial(self._load_script, redis, script))

    async def _load_library(self, redis: Redis) -> None:
        """Load the library. Raises _Refused."""
        library = self._scripts.library

        async def load() -> None:
            try:
                await redis.function_load(library.source)
            except ResponseError as error:
                if ALREADY_THERE not in str(error):
                    raise _Refused(error) from error

        await self._loads.do((redis, library.name), load)

    async def _load_script(self, redis: Redis, script: Script) -> None:
        await self._loads.do((redis, script.sha), partial(redis.script_load, script.source))

    def _script(self, verb: str) -> Script:
        if verb not in self._built:
            self._built[verb] = self._scripts.script(verb)
        return self._built[verb]


def _is_refusal(error: Exception) -> bool:
    """Whether the server has no functions for us: it is too old, or our user may not call or load them."""
    return isinstance(error, (_Refused, NoPermissionError)) or str(error).startswith(
        UNKNOWN_COMMAND
    )


async def _loading(
    send: Callable[[Sequence[Any]], Awaitable[Any]],
    words: Sequence[Any],
    load: Callable[[], Awaitable[Any]],
) -> Any:
    """Make a call. If the store does not have what it runs, load that, and call again."""
    for _ in range(RELOADS):
        try:
            return await send(words)
        except ResponseError as error:
            if not isinstance(error, NoScriptError) and str(error) != NOT_FOUND:
                raise
        await load()
    return await send(words)
