"""Threads for blocking calls: one that hangs neither delays the others nor keeps the program from ending."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

T = TypeVar("T")

EXIT_S: Final = 2.0  # for what Python does at exit, as sending the last reports to Sentry
# how long a thread waits for the next call; starting one costs more than waking one
IDLE_S: Final = 10.0


class Threads:
    """As many threads as there are calls at once. They are daemons: the program ends without them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle = 0  # waiting threads, except those that a call is on its way to
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    async def run(self, call: Callable[[], T]) -> T:
        """What `call` returns or raises. Raises RuntimeError if a future cannot hold what it raises.

        If this is cancelled, the call goes on unheard: nothing can stop a thread.
        """
        return await self.begin(call)

    def begin(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Call `call` in a thread; the future has what it returns or raises. Cancelling the future does not stop it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def report(settle: Callable[[], None]) -> None:
            def unless_cancelled() -> None:
                if not future.done():
                    settle()

            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(unless_cancelled)

        def work() -> None:
            try:
                result = call()
            except (StopIteration, asyncio.CancelledError) as error:
                failure = RuntimeError(type(error).__name__)
                failure.__cause__ = error
                report(lambda: future.set_exception(failure))
            except BaseException as error:  # SystemExit, too, is for the caller
                caught = error  # the other name ends with this block
                report(lambda: future.set_exception(caught))
            else:
                report(lambda: future.set_result(result))

        self._hand(work)
        return future

    def _hand(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._calls.put(work)
                return
        threading.Thread(target=self._live, args=(work,), name=self._name, daemon=True).start()

    def _live(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            work = self._next()

    def _next(self) -> Callable[[], None] | None:
        """The next call; None if no call comes within IDLE_S."""
        with self._lock:
            self._idle += 1
        try:
            return self._calls.get(timeout=IDLE_S)
        except Empty:
            with self._lock:
                if self._idle:
                    self._idle -= 1
                    return None
        return self._calls.get()


@contextmanager
def not_waited_for() -> Iterator[None]:
    """Let the program end within EXIT_S after the block, the last thing that it does, although threads go on.

    Python joins all threads that are not daemons, those of executors, too. Handlers start them (asyncio.to_thread), and
    one that hangs would keep the program from ending: it would have to be killed, and systemd would not restart it.
    """
    status = 1
    try:
        yield
        status = 0
    finally:
        limit = threading.Timer(EXIT_S, _exit, (status,))
        limit.daemon = True
        limit.start()


def _exit(status: int) -> None:
    # no logging: a thread may hang in it
    os.write(2, b"delay-queue: threads of handlers go on; the program ends without them\n")
    os._exit(status)
