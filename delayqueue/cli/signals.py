"""Signals that end a verb leave nothing behind: no terminal in another state, no jobs that were taken and not shown."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

ENDING: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Ended(KeyboardInterrupt):
    """A signal other than that of Ctrl-C ended the program."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def raised_signals() -> Generator[None]:
    """SIGTERM and SIGHUP raise Ended within the block, as Ctrl-C raises KeyboardInterrupt; ignored ones stay so.

    Only a program's main thread hears signals; in another one this does nothing.
    """
    former = {number: signal.getsignal(number) for number in ENDING}
    changed = [number for number, handler in former.items() if handler is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        changed = []
    for number in changed:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, former[number])


def _end(number: int, _: Any) -> NoReturn:
    raise Ended(number)


def hold_signals(*, hold: bool) -> None:
    """Let signals wait, or let those go that have waited, which raises what they raise. Not on Windows."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK if hold else signal.SIG_UNBLOCK, ENDING)
