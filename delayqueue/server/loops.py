"""The loops that a server needs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager

from delayqueue.config.startup import StartupError
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

Loop = Callable[[], Coroutine[None, None, None]]


class LoopDied(Exception):
    """A loop that the server needs has ended; the log says why."""


@asynccontextmanager
async def running(loops: Mapping[str, Loop], stop: asyncio.Event) -> AsyncIterator[None]:
    """Run the loops; one that dies stops the server, loudly. At the end raises LoopDied if one did.

    Or the StartupError of one that has found out only now that the settings are wrong.
    """
    told_to_end: set[asyncio.Task[None]] = set()
    died: list[str] = []
    refused: list[StartupError] = []

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None and task in told_to_end:
            return
        if isinstance(error, StartupError):
            refused.append(error)
        else:
            log.critical("%s died", task.get_name(), exc_info=error)
            died.append(task.get_name())
        stop.set()

    tasks = [asyncio.create_task(run(), name=name) for name, run in loops.items()]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    finally:
        told_to_end.update(task for task in tasks if not task.done())
        await cancel_all(tasks)
    if refused:
        raise refused[0]
    if died:
        raise LoopDied(", ".join(died))
