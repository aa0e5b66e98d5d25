"""Lengths of time and points in time, as programs write them and as the server takes them: in seconds."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TypeAlias

from delayqueue.domain.retry import duration_ms

Seconds: TypeAlias = float | str | timedelta  # a str is like "500ms", "15s", "10m", "1.5h", "1d"
Moment: TypeAlias = float | datetime


def seconds(length: Seconds | date) -> float:
    """A duration in seconds; a whole number is returned as an int, because the server rejects 60.0.

    Raises ValueError if a string is not a duration, TypeError for a time or a bool.
    """
    if isinstance(length, str):
        number = duration_ms(length) / 1000
    elif isinstance(length, date):
        raise TypeError(f"{length} is a time, not a length of time: pass it as `due`")
    elif isinstance(length, bool):
        raise TypeError(f"{length} is not a length of time")
    else:
        number = length.total_seconds() if isinstance(length, timedelta) else length
    return int(number) if float(number).is_integer() else number


def time_left(length: Seconds) -> float:
    """A delay in seconds; one below 0 is that of a time that has passed, so now. Raises as seconds() does."""
    left = seconds(length)
    return 0 if left < 0 else left


def distance(by: Seconds) -> float:
    """A duration in seconds that may be negative: a number, a timedelta, or text as "-1h"."""
    if isinstance(by, str) and by[:1] in {"+", "-"}:
        length = seconds(by[1:])
        return -length if by[0] == "-" else length
    return seconds(by)


def unix(moment: Moment | date) -> float:
    """A time as unix seconds; a datetime without a time zone is local time. Raises TypeError for a date."""
    if isinstance(moment, datetime):
        return moment.timestamp()
    if isinstance(moment, date):
        year, month, day = moment.timetuple()[:3]
        raise TypeError(
            f"{moment} has no time of day: pass a datetime, such as datetime({year}, {month}, {day}, 9)"
        )
    return moment
