"""Logging to standard error: one line per event, as text or JSON, that no job can forge."""

import json
import logging
import sys
import time
from collections import OrderedDict
from copy import copy
from dataclasses import dataclass
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
TRACEBACK_CHARS: Final = 8192  # a longer one is cut in the middle
REPEAT_S: Final = 10.0  # before the same warning is written again
MOST_REMEMBERED: Final = 1000  # warnings


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING delayqueue.server.serve: message`, with a traceback on the same line.

    `for_terminal`: on lines of its own, which are indented, so that no job can forge an event there either.
    """

    def __init__(self, *, for_terminal: bool = False) -> None:
        super().__init__()
        self._for_terminal = for_terminal

    def format(self, record: logging.LogRecord) -> str:
        head = f"{_utc(record)} {record.levelname} {record.name}: "
        parts = [record.getMessage(), *_traceback(self, record)]
        if not self._for_terminal:
            return head + one_line(" ".join(parts))
        first, *more = "\n".join(parts).split("\n")
        return "\n".join([head + one_line(first), *(f"    {one_line(line)}" for line in more)])


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, its `fields`, and a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": _utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        for traceback in _traceback(self, record):
            event["traceback"] = traceback
        return json.dumps(event)  # ASCII, so no character can end the line


@dataclass
class _Written:
    at_s: float
    left_out: int = 0  # times since then


class Handler(logging.StreamHandler):  # type: ignore[type-arg]  # to standard error
    """Writes the same warning once per REPEAT_S, then with the number of those left out; errors always."""

    def __init__(self) -> None:
        super().__init__()
        self._written: OrderedDict[tuple[str, str], _Written] = OrderedDict()  # oldest first

    def emit(self, record: logging.LogRecord) -> None:
        """Write the event, unless it has just been written."""
        if record.levelno != logging.WARNING or record.exc_info:
            super().emit(record)
            return
        try:
            text = record.getMessage()
        except Exception:  # other people's code: the arguments do not fit the message
            self.handleError(record)
            return
        now_s = time.monotonic()
        former = self._written.get((record.name, text))
        if former and now_s < former.at_s + REPEAT_S:
            former.left_out += 1
            return
        self._remember(record.name, text, now_s)
        if former and former.left_out:
            record = copy(record)
            record.msg = f"{text} ({former.left_out} more since the last)"
            record.args = ()
        super().emit(record)

    def _remember(self, name: str, text: str, now_s: float) -> None:
        self._written.pop((name, text), None)
        if len(self._written) >= MOST_REMEMBERED:
            oldest = next(iter(self._written))
            if now_s < self._written[oldest].at_s + REPEAT_S:
                return
            del self._written[oldest]
        self._written[name, text] = _Written(now_s)


def set_up(level: str, style: str) -> None:
    """Log events of at least `level` ("info") in `style` ("text" or "json"), replacing earlier settings."""
    if sys.stderr is None:  # it was closed at the start
        handler: logging.Handler = logging.NullHandler()
    else:
        handler = Handler()
        text = TextFormatter(for_terminal=sys.stderr.isatty())
        handler.setFormatter(JsonFormatter() if style == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def one_line(text: str) -> str:
    r"""`text` with line ends and unprintable characters escaped, as in a Python string: \n, \x1b."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    """The start and the end of a traceback, which say most."""
    if not record.exc_info:
        return []
    text = formatter.formatException(record.exc_info)
    if len(text) <= TRACEBACK_CHARS:
        return [text]
    half = TRACEBACK_CHARS // 2
    return [f"{text[:half]} ... {text[-half:]}"]


def _utc(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"
