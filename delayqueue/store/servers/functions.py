"""What a verb is called by: a function of a library, which the store keeps built, else a script, built at each call.

Stores have functions from Redis 7.0 on. A library goes to a store's disk and to its replicas like data, so it is there
after a restart and after a failover; a call that finds none loads it. If the store refuses functions (it is older, its
user may not load them, its memory is full), the verbs run as scripts.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Final

from redis.exceptions import (
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from delayqueue.store.scripts import Script, ScriptHead, Scripts
from delayqueue.store.servers.server import Server
from delayqueue.store.servers.shards import Shards
from delayqueue.tasks import SingleFlight

log = logging.getLogger(__name__)

REFUSED_S: Final = 60.0  # before a server that refused functions is asked for them again
FCALL, EVALSHA = "FCALL", "EVALSHA"
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


class Functions:
    """The verbs of one version of this program, on any server."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._built: dict[str, Script] = {}
        self._loads = SingleFlight[object]()

    @property
    def heads(self) -> Mapping[str, ScriptHead]:
        """What the verbs' heads say, by name."""
        return self._scripts.verbs

    def function(self, verb: str) -> tuple[str, str]:
        """The words with which a call of the verb's function begins."""
        return FCALL, self._scripts.function(verb)

    def script(self, verb: str) -> tuple[str, str]:
        """The words with which a call of the verb's script begins, for a server that refuses functions."""
        return EVALSHA, self._script(verb).sha

    async def supply(
        self, error: Exception, verb: str, words: tuple[str, str], server: Server
    ) -> bool:
        """Load what a call that began with these words did not find; returns False if it failed for another reason.

        Where functions are refused, the next call is one of a script. Raises RedisError if the store does not answer.
        """
        if isinstance(error, NoScriptError):
            script = self._script(verb)
            load = partial(server.redis.script_load, script.source)
            await self._loads.do((server, script.sha), load)
        elif str(error) == NOT_FOUND:
            await self._load_library(server)
        elif words[0] == FCALL and _is_refusal(error):
            _refused(server, error)
        else:
            return False
        return True

    async def _load_library(self, server: Server) -> None:
        library = self._scripts.library
        load = partial(server.redis.function_load, library.source)
        try:
            await self._loads.do((server, library.name), load)
        except ResponseError as error:
            if ALREADY_THERE not in str(error):
                _refused(server, error)

    def _script(self, verb: str) -> Script:
        if verb not in self._built:
            self._built[verb] = self._scripts.script(verb)
        return self._built[verb]


def _is_refusal(error: Exception) -> bool:
    """Whether the server has no functions for us: it is too old, or our user may not call them."""
    return isinstance(error, NoPermissionError) or str(error).startswith(UNKNOWN_COMMAND)


def _refused(server: Server, error: Exception) -> None:
    if not server.refused_until_s and not isinstance(error, ReadOnlyError):  # which is said anyway
        log.warning("the store refuses functions, so each call costs it more: %s", error)
    server.refused_until_s = monotonic() + REFUSED_S
