"""The loops that a server needs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager

from delayqueue.config.startup import StartupError
from delayqueue.tasks import TaskGroup, is_cancelled

log = logging.getLogger(__name__)

Loop = Callable[[], Coroutine[None, None, None]]


class LoopDied(Exception):
    """A loop that the server needs has ended; the log says why."""


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
