"""What people type on the command line: numbers and lengths of time, in digits that are ASCII."""

import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

import pytest

from delayqueue.cli.words import (
    at_once,
    distance,
    interval,
    kept,
    length,
    moment,
    per_second,
    positive,
    whole,
)
from delayqueue.client.times import distance as client_distance
from delayqueue.client.times import seconds
from delayqueue.domain.retry import duration_ms


@pytest.mark.parametrize(
    ("parse", "text", "meant"),
    [
        (distance, "-90m", -5400),
        (distance, "+1.5", 1.5),
        (client_distance, "-1h", -3600),
        (client_distance, -0.5, -0.5),
        (whole, "-7", -7),
        (positive, "1", 1),
        (interval, "500ms", 0.5),
        (per_second, "0.5", 0.5),
        (per_second, "none", "none"),
        (at_once, "12", 12),
    ],
)
def test_numbers_and_distances_are_read(
    parse: Callable[[Any], float | str], text: str | float, meant: float | str
) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("parse", "says"),
    [
        (length, "must be like 90"),
        (distance, "must be like 90"),
        (kept, "must be like 90"),
        (moment, "must be like now"),
        (interval, "must be like 90"),
        (whole, "must be a whole number"),
        (positive, "must be a whole number, at least 1"),
        (per_second, "must be a number, like 10 or 0.5, or none"),
        (at_once, "must be a whole number, or none"),
        (duration_ms, "must be seconds or a text"),
        (seconds, "must be seconds or a text"),
    ],
)
@pytest.mark.parametrize("text", ["abc", "", "١٥", "١٥s", "nan", "1_0", "--1"])
def test_what_is_no_number_is_told_what_one_is(
    parse: Callable[[str], object], says: str, text: str
) -> None:
    with pytest.raises((ArgumentTypeError, ValueError), match=says):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"), [(positive, "0"), (positive, "-1"), (interval, "0"), (interval, "0ms")]
)
def test_what_must_be_more_than_nothing_is_told_so(
    parse: Callable[[str], object], text: str
) -> None:
    with pytest.raises(ArgumentTypeError, match=r"at least 1|more than 0"):
        parse(text)


def test_a_time_that_no_clock_can_show_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    with pytest.raises(ArgumentTypeError, match="must be like now"):
        moment("9999-12-31T23:59:59")
    monkeypatch.undo()
    time.tzset()
