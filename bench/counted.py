"""Runs our server, and records each call of a function of the package: python bench/counted.py SOCKET.

Whoever connects to SOCKET (multiprocessing.connection) and sends anything gets the calls since the last time.
"""

import sys
from multiprocessing.connection import Listener
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Final, NamedTuple

import delayqueue
from delayqueue.cli import main

PACKAGE: Final = str(Path(delayqueue.__file__).parent) + "/"
STARTS: Final = 0  # what RESUME tells where a function begins; where it goes on after an await or a yield, 1 or more


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


def tell(calls: list[Call], socket: str) -> None:
    """Answer the one who asks for the calls, again and again."""
    with Listener(socket) as listener, listener.accept() as asker:
        while True:
            asker.recv()
            count = len(calls)  # the other thread goes on appending
            asker.send([tuple(call) for call in calls[:count]])
            del calls[:count]


if __name__ == "__main__":
    calls: list[Call] = []
    Thread(target=tell, args=(calls, sys.argv[1]), daemon=True).start()
    record(calls)
    sys.exit(main([]))
