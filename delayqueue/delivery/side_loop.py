"""An event loop for code of other people: what blocks, stops or breaks it leaves the server's loop alone."""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class SideLoop:
    """A loop in a thread of its own, which begins with the first coroutine and ends with the program."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        # never freed: that would close files once more, by numbers that are others' by now
        self._broken: list[asyncio.AbstractEventLoop] = []

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. Cancelled, `work` is cancelled too, and not waited for.

        If the loop breaks, `work` never ends, so callers set a time limit. Raises RuntimeError if no thread can be
        started.
        """
        if self._loop is None:
            self._loop = self._begun()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _begun(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=self._live, args=(loop,), name=self._name, daemon=True).start()
        return loop

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop, again if somebody stops it, or if a task that was left behind wants to end the program."""
        while True:
            try:
                loop.run_forever()
                log.warning("the %s was stopped and goes on", self._name)
            except (SystemExit, KeyboardInterrupt) as error:
                log.error("a task in the %s raised %s", self._name, type(error).__name__)  # noqa: TRY400  # of no use
            except BaseException:
                log.exception("the %s broke; calls from now on get a new one", self._name)
                self._broken.append(loop)
                self._loop = None
                return
