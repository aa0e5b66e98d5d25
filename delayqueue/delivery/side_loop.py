"""An event loop for what other people decide: what blocks, stops or breaks it does not affect the server's loop."""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

T = TypeVar("T")


class SideLoop:
    """A loop in its own thread, which starts with the first coroutine and ends with the program."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        # never freed: that would close files a second time, by numbers that belong to others by now
        self._broken: list[asyncio.AbstractEventLoop] = []

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. If this is cancelled, `work` is cancelled, too, and not waited for.

        If the loop breaks, `work` never ends, so callers set a time limit. Raises RuntimeError if no thread can be
        started.
        """
        if self._loop is None:
            self._loop = self._begun()
        loop = self._loop  # if it breaks meanwhile, another one takes its place
        crossing = _Crossing(work)
        loop.call_soon_threadsafe(crossing.begin)
        try:
            return await crossing.outcome
        except asyncio.CancelledError:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(crossing.cancel)
            raise

    @property
    def current(self) -> str:
        """The name of the task that runs there now, or blocks it; "" if there is none."""
        task = None if self._loop is None else asyncio.current_task(self._loop)
        return "" if task is None else task.get_name()

    async def aclose(self) -> None:
        """Cancel what runs in the loop and end it, if that obeys; other people's code may not, so its loop is left."""
        if self._loop is not None:
            await self.run(_cancel_others())
            self._is_closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _begun(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.SelectorEventLoop()
        threading.Thread(target=self._live, args=(loop,), name=self._name, daemon=True).start()
        return loop

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop; restart it if somebody stops it, or if a leftover task wants to end the program."""
        while True:
            try:
                loop.run_forever()
                if self._is_closed:
                    loop.close()
                    return
                log.warning("the %s was stopped; it is running again", self._name)
            except (SystemExit, KeyboardInterrupt) as error:
                log.error("a task in the %s raised %s", self._name, type(error).__name__)  # noqa: TRY400  # of no use
            except BaseException:
                log.exception("the %s broke; calls from now on get a new one", self._name)
                self._broken.append(loop)
                self._loop = None
                return


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
