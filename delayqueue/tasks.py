"""The end of tasks."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 0.2


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
