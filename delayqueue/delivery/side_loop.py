"""An event loop in a thread of its own: how long it reads TLS and HTTP is up to the receivers of webhooks."""

import asyncio
import threading
from collections.abc import Coroutine
from select import select
from time import thread_time
from typing import Any, Final, TypeVar

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
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

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


async def _cancel_others() -> None:
    await cancel_all(asyncio.all_tasks() - {asyncio.current_task()})
