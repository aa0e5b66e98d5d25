"""A worker as a program: its signals, and an end that no handler can delay."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

log = logging.getLogger(__name__)

LEFT_S: Final = 1.0  # for leftover tasks of handlers
HANGING_S: Final = 5.0  # beyond the grace, for the lifespan to end; a handler may block its loop
HANGS: Final = 1  # exit status


def run(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], grace_s: float) -> None:
    """Run `work(stop)` in its own loop; SIGTERM and SIGINT set `stop`, a second SIGINT ends the program at once.

    `work` ends at most `grace_s` after `stop`; the program ends soon after that, whatever handlers do.
    """
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    asyncio.set_event_loop(loop)
    try:
        with _stopped_by_signals(loop, stop, grace_s):
            try:
                _run_to_its_end(loop, loop.create_task(work(stop), name="worker"))
            finally:
                _drop(loop)
                loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _run_to_its_end(loop: asyncio.AbstractEventLoop, work: asyncio.Task[None]) -> None:
    while not work.done():
        try:
            loop.run_until_complete(work)
        except (SystemExit, KeyboardInterrupt) as error:
            if work.done():
                raise
            log.error("a task that a handler left behind raised %s", type(error).__name__)  # noqa: TRY400  # of no use


def _drop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left in the loop, with a time limit, unlike asyncio.run()."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        _, hanging = loop.run_until_complete(asyncio.wait(left, timeout=LEFT_S))
        for task in hanging:
            log.warning("%s goes on although it was cancelled: not waiting for it", task.get_name())


@contextmanager
def _stopped_by_signals(
    loop: asyncio.AbstractEventLoop, stop: asyncio.Event, grace_s: float
) -> Iterator[None]:
    """Let signals set `stop`. Unlike the loop's add_signal_handler(), this works while a handler blocks the loop."""
    killer = threading.Timer(grace_s + HANGING_S, _exit_at_once)
    killer.daemon = True
    is_ending = False

    def on_signal(signum: int, _: object) -> None:
        nonlocal is_ending
        if not is_ending:
            is_ending = True
            killer.start()
            loop.call_soon_threadsafe(stop.set)
        elif signum == signal.SIGINT:
            signal.signal(signum, signal.SIG_DFL)
            signal.raise_signal(signum)

    async def limit_its_time() -> None:
        await stop.wait()
        # also if the worker ends by itself, its lifespan must end in time
        on_signal(signal.SIGTERM, None)

    loop.create_task(limit_its_time(), name="stop")
    before = {
        signum: signal.signal(signum, on_signal) for signum in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        killer.cancel()


def _exit_at_once() -> None:
    # no logging: a handler may hang in it
    why = b"a handler blocks the loop, or the lifespan takes too long to end"
    os.write(2, b"delay-queue: %s: the worker ends without it\n" % why)
    os._exit(HANGS)
