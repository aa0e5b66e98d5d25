"""Standard output: it may lack characters, its disk may be full, it may be closed."""

import json
import os
import sys
from errno import EBADF
from io import TextIOWrapper
from typing import Any, Final

from delayqueue.domain.text import json_line

STANDARD: Final = range(3)  # the descriptors of input, output and errors


class OutputError(Exception):
    """Standard output takes nothing. `is_left`: because its reader is gone, as with `| head`."""

    def __init__(self, error: OSError | None = None) -> None:
        reason = "it is closed" if error is None else error.strerror or type(error).__name__
        super().__init__(f"standard output: {reason}")
        self.is_left = isinstance(error, BrokenPipeError)


def hold_descriptors() -> None:
    """Let no file or socket get the number of a standard stream that is closed: libuv aborts when it closes that."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) in STANDARD:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def show_every_character() -> None:
    r"""Let both outputs write what their encoding lacks as Python does in a string: \U0001f600."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def check_output() -> None:
    """Raises OutputError if standard output is closed."""
    if sys.stdout is None:
        raise OutputError


def write(text: str) -> None:
    """Write the text on standard output, at once: errors may follow. Raises OutputError."""
    check_output()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        drop_rest()
        raise OutputError(error) from None


def drop_rest() -> None:
    """Write nothing more on standard output: Python would try what is left of an interrupted write at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_error(text: str) -> None:
    """Write the text on standard error. Raises OSError if that takes nothing, or is closed."""
    if sys.stderr is None:
        raise OSError(EBADF, os.strerror(EBADF))
    sys.stderr.write(text)
    sys.stderr.flush()


def as_json(data: Any) -> str:
    """One line of JSON without control characters, in ASCII if standard output lacks a character of it."""
    text = json_line(data)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return json.dumps(data)
    return text
