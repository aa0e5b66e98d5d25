"""What people type on the command line: numbers and lengths of time, in digits that are ASCII."""

import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

import pytest

from delayqueue.cli.words import (
    as_of_now,
    distance,
    interval,
    length,
    moment,
    number,
    or_none,
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
        (or_none(number), "0.5", 0.5),
        (or_none(number), "none", "none"),
        (or_none(whole), "12", 12),
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
        (or_none(length), "must be like 90.* or 1d, or none"),
        (moment, "must be like now"),
        (interval, "must be like 90"),
        (whole, "must be a whole number"),
        (positive, "must be a whole number, at least 1"),
        (or_none(number), "must be a number, like 40 or 0.5, or none"),
        (or_none(whole), "must be a whole number, or none"),
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


def test_a_day_without_hyphens_is_no_number_of_seconds() -> None:
    assert moment("20260131") == moment("2026-01-31")
    assert moment("1700000000") == 1_700_000_000


def test_a_distance_from_now_is_from_the_time_of_each_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    asked = [moment("+2h"), moment("now"), moment("-30m"), 5.0]
    assert asked == [8200, 1000, -800, 5]
    monkeypatch.setattr(time, "time", lambda: 1060.0)
    assert list(map(as_of_now, asked)) == [8260, 1060, -740, 5]


def test_a_time_that_no_clock_can_show_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    with pytest.raises(ArgumentTypeError, match="must be like now"):
        moment("9999-12-31T23:59:59")
    monkeypatch.undo()
    time.tzset()
