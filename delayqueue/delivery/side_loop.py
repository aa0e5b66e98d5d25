"""An event loop in a thread of its own: how long it reads TLS and HTTP is up to the receivers of webhooks."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from select import select
from time import thread_time
from typing import Any, Final, Generic, TypeVar

from delayqueue.tasks import cancel_all

T = TypeVar("T")

BUSY_S: Final = 0.001  # of processor time, after which the server's loop has its turn
TURN_S: Final = 1e-6  # long enough for the system to let another thread run


class SideLoop:
    """A loop in its own thread. It is one of asyncio's own, whose sockets can be metered, unlike those of uvloop."""

    def __init__(self, name: str) -> None:
        """Raises RuntimeError if no thread can be started."""
        self._loop = asyncio.SelectorEventLoop()
        threading.Thread(target=self._live, name=name, daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. If this is cancelled, `work` is cancelled, too, and not waited for."""
        crossing = _Crossing(work)
        self._loop.call_soon_threadsafe(crossing.begin)
        try:
            return await crossing.outcome
        except asyncio.CancelledError:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(crossing.cancel)
            raise

    async def aclose(self) -> None:
        """Cancel what runs in the loop, and end it."""
        await self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _live(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


class Turns:
    """The turns that a busy thread leaves to the others: by itself, CPython lets it keep the interpreter for 5 ms."""

    def __init__(self) -> None:
        self._left_at_s = 0.0  # of the thread's processor time

    def leave(self) -> None:
        """Let another thread have its turn if this one has used the processor for BUSY_S since the last time."""
        if thread_time() - self._left_at_s > BUSY_S:
            select((), (), (), TURN_S)  # like sleep(), which fails under libfaketime
            self._left_at_s = thread_time()


class _Crossing(Generic[T]):
    """A coroutine that runs in the side loop, and its outcome in the loop that asked for it.

    asyncio.run_coroutine_threadsafe and wrap_future do it with two more futures and a lock: twice the processor time.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._home = asyncio.get_running_loop()
        self._task: asyncio.Task[T] | None = None
        self.outcome: asyncio.Future[T] = self._home.create_future()

    def begin(self) -> None:
        """Start the coroutine; in the side loop."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Cancel the coroutine, unless it has ended; in the side loop."""
        if self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[T]) -> None:
        with suppress(RuntimeError):  # the other loop is closed: nobody waits
            self._home.call_soon_threadsafe(self._settle, task)

    def _settle(self, task: asyncio.Task[T]) -> None:
        error = None if task.cancelled() else task.exception()
        if self.outcome.done():  # cancelled
            return
        if task.cancelled():
            self.outcome.cancel()
        elif error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())


async def _cancel_others() -> None:
    await cancel_all(asyncio.all_tasks() - {asyncio.current_task()})
