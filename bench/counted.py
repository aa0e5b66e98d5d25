"""Runs our server, and records each call of a function of the package: python bench/counted.py SOCKET.

Whoever connects to SOCKET (multiprocessing.connection) and sends whether the timers of its event loop may fire gets
the calls since the last time, after one more turn of the loop. All that the server does of itself begins with a timer:
while none fires, it only answers.
"""

import asyncio
import sys
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from multiprocessing.connection import Listener
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Final, NamedTuple, TypeVarTuple, Unpack

import uvloop

import delayqueue
from delayqueue.cli import main

PACKAGE: Final = str(Path(delayqueue.__file__).parent) + "/"
STARTS: Final = 0  # what RESUME tells where a function begins; where it goes on after an await or a yield, 1 or more


Ts = TypeVarTuple("Ts")


class Call(NamedTuple):
    """A function that was called, or a coroutine or generator that went on."""

    file: str  # in the package
    function: str
    resumed: bool


def record(calls: list[Call]) -> None:
    """Record the calls of this thread from now on."""

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            resumed = code.co_code[frame.f_lasti + 1] != STARTS
            file = code.co_filename.removeprefix(PACKAGE)
            calls.append(Call(file, code.co_qualname, resumed))

    sys.setprofile(note)


class Loop(uvloop.Loop):
    """An event loop whose timers can be held: those that are due meanwhile fire afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self._is_held = False
        self._late: list[Callable[[], object]] = []
        loops.append(self)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: Unpack[Ts],
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As ever, but for the hold; call_at and asyncio.sleep come here, too."""

        def fire() -> None:
            if not handle.cancelled():
                callback(*args)

        def fire_or_hold() -> None:
            if self._is_held:
                self._late.append(partial(self.call_soon, fire, context=copy_context()))
            else:
                callback(*args)

        handle = super().call_later(delay, fire_or_hold, context=context)
        return handle

    def turn(self, *, held: bool) -> None:
        """Hold the timers or let them fire, and wait for a turn of the loop, from another thread."""
        done = Event()
        self.call_soon_threadsafe(self._turn, held, done)
        done.wait()

    def _turn(self, held: bool, done: Event) -> None:
        self._is_held = held
        if not held:
            late, self._late = self._late, []
            for fire in late:
                fire()
        done.set()


loops: Final[list[Loop]] = []


def tell(calls: list[Call], socket: str) -> None:
    """Answer the one who asks for the calls, again and again."""
    with Listener(socket) as listener, listener.accept() as asker:
        while True:
            held = not asker.recv()
            for loop in loops:
                loop.turn(held=held)
            count = len(calls)  # the other thread goes on appending
            asker.send([tuple(call) for call in calls[:count]])
            del calls[:count]


if __name__ == "__main__":
    uvloop.Loop = Loop  # type: ignore[misc]  # that is the point: uvloop.run makes one of these
    calls: list[Call] = []
    Thread(target=tell, args=(calls, sys.argv[1]), daemon=True).start()
    record(calls)
    sys.exit(main([]))
