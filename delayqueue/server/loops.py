"""The loops that a server needs."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from delayqueue.config.startup import StartupError
from delayqueue.tasks import TaskGroup, is_cancelled

log = logging.getLogger(__name__)

Loop = Callable[[], Coroutine[None, None, None]]


class LoopDied(Exception):
    """A loop that the server needs has ended; the log says why."""


def log_unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that nobody has heard of, unless it is one of a connection that was given up while it was made.

    With uvloop, the names that a server looks up outlive that, and so does TLS.
    """
    error, said = context.get("exception"), context.get("message", "")
    if isinstance(error, socket.gaierror) or (
        isinstance(error, RuntimeError) and said.startswith("Fatal error on SSL protocol")
    ):
        log.debug("%s: %s", said, error)
    else:
        loop.default_exception_handler(context)


@asynccontextmanager
async def running(loops: Mapping[str, Loop], stop: asyncio.Event) -> AsyncIterator[None]:
    """Run the loops; one that dies sets `stop`, loudly. Then the end of the block raises LoopDied.

    Or StartupError, if a loop has found out only now that the settings are wrong.
    """
    async with TaskGroup() as group:
        for name, run in loops.items():
            group.create_task(_run(name, run, stop), name)
        yield


async def _run(name: str, run: Loop, stop: asyncio.Event) -> None:
    """Run a loop until it is cancelled. If it ends by itself, sets `stop`, and raises LoopDied or its StartupError."""
    death: BaseException | None = None
    try:
        await run()
    except StartupError:
        stop.set()
        raise
    except (Exception, asyncio.CancelledError) as error:
        death = error
    if is_cancelled() and not isinstance(death, Exception):
        return
    log.critical("%s died", name, exc_info=death)
    stop.set()
    raise LoopDied(name) from death
