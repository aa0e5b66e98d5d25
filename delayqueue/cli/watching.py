"""Repeated output that replaces the one before: `--watch` and `top`."""

import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from delayqueue.cli.output import write
from delayqueue.cli.remote_server import RequestError
from delayqueue.cli.signals import Ended
from delayqueue.cli.subcommand import DONE
from delayqueue.cli.tables import clipped

ANOTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"  # without a cursor
FORMER_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
TOP: Final = "\x1b[H"
END_OF_LINE: Final = "\x1b[K"
END_OF_SCREEN: Final = "\x1b[J"
QUITS: Final = {b"q", b""}  # the key, and the end of input


def watch(frame: Callable[[], str], every_s: float) -> int:
    """Show what `frame` returns, again every `every_s` seconds, until `q` or Ctrl-C. Returns the exit status.

    A terminal shows as much as fits; anything else gets everything, one below the other. After the first frame, a
    RequestError is shown instead of a frame; before it, it is raised.
    """
    text = frame()
    try:
        if not sys.stdout.isatty():
            while True:
                write(f"{text}\n")
                time.sleep(every_s)
                text = _frame_or_error(frame)
        with _terminal() as is_over:
            while True:
                write(_screen(text))
                if is_over(every_s):
                    return DONE
                text = _frame_or_error(frame)
    except Ended:
        raise
    except KeyboardInterrupt:  # the way to end it
        return DONE


def _frame_or_error(frame: Callable[[], str]) -> str:
    try:
        return frame()
    except RequestError as error:
        return str(error)


def _screen(text: str) -> str:
    columns, rows = shutil.get_terminal_size()
    lines = (f"{clipped(line, columns)}{END_OF_LINE}" for line in text.splitlines()[: rows - 1])
    return TOP + "\n".join(lines) + END_OF_SCREEN


@contextmanager
def _terminal() -> Generator[Callable[[float], bool]]:
    """An alternate screen; gives a function that waits, and returns whether `q` was pressed."""
    write(ANOTHER_SCREEN)
    try:
        with _keys() as is_over:
            yield is_over
    finally:
        write(FORMER_SCREEN)


@contextmanager
def _keys() -> Generator[Callable[[float], bool]]:
    if sys.platform == "win32" or sys.stdin is None or not sys.stdin.isatty():
        yield _slept  # no keys can be read
        return
    import termios  # noqa: PLC0415  # not on Windows
    import tty  # noqa: PLC0415

    former = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield _quit_is_pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, former)


def _slept(for_s: float) -> bool:
    time.sleep(for_s)
    return False


def _quit_is_pressed(within_s: float) -> bool:
    until = time.monotonic() + within_s
    while (left_s := until - time.monotonic()) > 0:
        if (
            select.select([sys.stdin], [], [], left_s)[0]
            and os.read(sys.stdin.fileno(), 1) in QUITS
        ):
            return True
    return False
