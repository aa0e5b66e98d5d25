"""Runs a worker's functions: plain ones in threads, async ones in the loop, each with a time limit."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from delayqueue.threads import Threads
from delayqueue.worker.verdict import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class Executor:
    """Runs the functions of one run of a worker; `freed` is called when the thread of an abandoned one has ended."""

    def __init__(self, freed: Callable[[], None] = lambda: None) -> None:
        self._freed = freed
        self._threads = Threads("delay-queue-worker")
        self._hanging: set[asyncio.Future[Any]] = set()

    @property
    def hanging(self) -> int:
        """How many threads still run an abandoned call."""
        return len(self._hanging)

    async def call(self, function: Callable[[], Any], timeout_s: float | None, name: str) -> Any:
        """What the function returns or raises. Raises TimeLimit if it takes longer; the log then uses `name`."""
        if inspect.iscoroutinefunction(function):
            return await _within(function(), timeout_s)
        context = contextvars.copy_context()  # what middlewares have set, for example a trace
        future = self._threads.begin(lambda: context.run(function))
        result = await self._end_of(future, timeout_s, name)
        # a callable object may be async without looking so
        return await _within(result, timeout_s) if inspect.isawaitable(result) else result

    async def _end_of(self, future: asyncio.Future[Any], timeout_s: float | None, name: str) -> Any:
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            if not future.done():  # its time is over, or its job is somebody else's, or ended
                self._give_up(future, name)
        if timeout_s is not None and not future.done():
            raise _too_long(timeout_s)
        return future.result()

    def _give_up(self, future: asyncio.Future[Any], name: str) -> None:
        log.warning(
            "%s: its thread goes on, because nothing can stop it; until it ends the worker runs one job fewer",
            name,
        )
        self._hanging.add(future)
        future.add_done_callback(partial(self._end, name))

    def _end(self, name: str, future: asyncio.Future[Any]) -> None:
        self._hanging.discard(future)
        if not future.cancelled():
            future.exception()  # nobody waits for it
            log.info("%s: its thread has ended after all", name)
        self._freed()


async def _within(call: Awaitable[Any], timeout_s: float | None) -> Any:
    """What the call returns or raises; it is cancelled at the timeout."""
    if timeout_s is None:
        return await call
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await call
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _too_long(timeout_s) from error.__cause__  # where it was cancelled


def _too_long(timeout_s: float) -> TimeLimit:
    return TimeLimit(f"timeout: {timeout_s:g} s")
