"""Parses what a user types: durations, times, schedules, bodies."""

import re
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Self

from delayqueue.domain import retry

NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
DAY: Final = re.compile(r"(19|20)[0-9]{6}")  # 20260131, and no seconds: these were in 1970
WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
UNLIMITED: Final = "none"  # as a limit: remove it
SOURCE: Final = "-"  # as a body: read it from standard input


def length(text: str) -> float:
    """Seconds, from "90", "1.5", "500ms", "30m", "2h", "1d"."""
    try:
        ms = retry.duration_ms(float(text) if NUMBER.fullmatch(text) else text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: must be like 90, 500ms, 15s, 30m, 2h or 1d") from None
    seconds = ms / 1000
    return int(seconds) if seconds.is_integer() else seconds


def interval(text: str) -> float:
    """Seconds, from a duration as length() takes it, above 0."""
    seconds = length(text)
    if not seconds:
        raise ArgumentTypeError(f"{text!r}: must be more than 0")
    return seconds


def distance(text: str) -> float:
    """Seconds, from a duration as length() takes it, with or without a sign."""
    return -length(text[1:]) if text[:1] == "-" else length(text.removeprefix("+"))


class FromNow(float):
    """Unix seconds that lie `ahead_s` after the time when they were asked for."""

    ahead_s: float

    @classmethod
    def of(cls, ahead_s: float) -> Self:
        self = cls(time.time() + ahead_s)
        self.ahead_s = ahead_s
        return self


def as_of_now(value: Any) -> Any:
    """A value of the command line, which may be a time that is said by its distance from now, asked for once more."""
    return FromNow.of(value.ahead_s) if isinstance(value, FromNow) else value


def moment(text: str) -> float:
    """Unix seconds, from "now", "+2h", "-30m", "2026-01-31 12:00" in local time, or unix seconds."""
    if NUMBER.fullmatch(text) and not DAY.fullmatch(text):
        return float(text)
    try:
        if text == "now":
            return FromNow.of(0)
        if text[:1] in {"+", "-"}:
            return FromNow.of(distance(text))
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ArgumentTypeError, ValueError, OverflowError):  # the last: near the year 10000
        raise ArgumentTypeError(
            f"{text!r}: must be like now, +2h, -30m, 2026-01-31, '2026-01-31 12:00' or unix seconds"
        ) from None


def schedule(text: str) -> dict[str, object]:
    """A retry schedule, from a preset's name or "15s,2m,10m"."""
    if text in retry.PRESETS:
        return {"preset": text}
    try:
        return {"delays": [length(delay.strip()) for delay in text.split(",")]}
    except ArgumentTypeError as error:
        presets = ", ".join(retry.PRESETS)
        raise ArgumentTypeError(f"{error}; or one of {presets}") from None


def header(text: str) -> tuple[str, str]:
    """Name and value of a header, from "NAME: VALUE"."""
    name, colon, value = text.partition(":")
    if not (colon and name.strip() and value.strip()):
        raise ArgumentTypeError(f"{text!r}: must be like 'Authorization: Bearer abc'")
    return name.strip(), value.strip()


def whole(text: str) -> int:
    """A whole number."""
    if WHOLE.fullmatch(text) is None:
        raise ArgumentTypeError(f"{text!r}: must be a whole number")
    return int(text)


def positive(text: str) -> int:
    """A whole number, at least 1."""
    if WHOLE.fullmatch(text) is None or int(text) < 1:
        raise ArgumentTypeError(f"{text!r}: must be a whole number, at least 1")
    return int(text)


def number(text: str) -> float:
    """A number, such as of percent, or a rate."""
    if NUMBER.fullmatch(text) is None:
        raise ArgumentTypeError(f"{text!r}: must be a number, like 40 or 0.5")
    return float(text)


def or_none(parse: Callable[[str], float]) -> Callable[[str], float | str]:
    """What `parse` takes, or UNLIMITED."""

    def parsed(text: str) -> float | str:
        try:
            return text if text == UNLIMITED else parse(text)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(f"{error}, or {UNLIMITED}") from None

    return parsed


def yes_no(text: str) -> bool:
    """Whether it is yes."""
    if text not in {"yes", "no"}:
        raise ArgumentTypeError(f"{text!r}: must be yes or no")
    return text == "yes"


def secret(text: str) -> str:
    """The text itself; for "-" the line on standard input."""
    return body(text).strip()


def body(text: str) -> str:
    """The text itself; for "-" all of standard input, byte for byte."""
    if text != SOURCE:
        return text
    if sys.stdin is None:
        raise ArgumentTypeError("standard input: it is closed")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise ArgumentTypeError("standard input: must be UTF-8") from None
    except OSError as error:  # opened for writing, a terminal that is gone
        raise ArgumentTypeError(f"standard input: {error.strerror}") from None
