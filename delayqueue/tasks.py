"""Tasks among others: their end, and their turns."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import monotonic
from typing import Any, TypeVar

AGAIN_S = 0.2
TURN_S = 0.01  # a busy task lets others go on after so long

Item = TypeVar("Item")


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel until all have ended: a cancellation can get lost while redis-py connects (seen when a port is taken).

    Who cancels this waits, too: a task left behind here could lose its next cancellation as well.
    """
    left = set(tasks)
    cancelled = False
    while left:
        for task in left:
            task.cancel()
        try:
            await asyncio.wait(left, timeout=AGAIN_S)
        except asyncio.CancelledError:
            cancelled = True
        left = {task for task in left if not task.done()}
    if cancelled:
        raise asyncio.CancelledError


def is_told_to_end(error: BaseException) -> bool:
    """Whether the error is a cancellation of the task that runs; code that it calls can raise one of its own making."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def by_turns(items: Iterable[Item]) -> AsyncIterator[Item]:
    """The items; whatever else the loop has to do has its turn in between, each TURN_S."""
    until_s = monotonic() + TURN_S
    for item in items:
        yield item
        if monotonic() >= until_s:
            await asyncio.sleep(0)
            until_s = monotonic() + TURN_S
