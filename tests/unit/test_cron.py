"""A cron expression in a time zone, around the nights when clocks change, beside a slow and simple search."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from delayqueue.domain.cron import Cron

SPAN_S = 3 * 86_400
SEARCHED = timedelta(
    days=4
)  # before and after: half a span, the zone's distance from UTC, and a day
CHANGES = (
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-04"),
    ("America/Sao_Paulo", "2018-11-04"),  # at midnight
    ("America/Sao_Paulo", "2018-02-18"),
    ("Pacific/Apia", "2011-12-30"),  # a whole day
    ("Antarctica/Troll", "2026-03-29"),  # two hours
    ("Antarctica/Troll", "2026-10-25"),
)
ONCE = ("30 2 * * *", "0 30 2 * * *", "15 30 2 * * *", "*/20 45 1 * * *", "0 15,45 1-2 * * *")
ONCE_AT_MIDNIGHT = ("0 0 * * *", "0 0 0 * * *", "59 59 23 * * *")
BY_THE_CLOCK = ("45 * * * *", "* 2 * * *", "*/10 1 * * *", "15 */2 * * *", "10 45 * * * *")
CRONS = (*ONCE, *ONCE_AT_MIDNIGHT, *BY_THE_CLOCK)


def end_of_gap(shown: datetime, zone: ZoneInfo) -> float:
    clock = shown.replace(second=0)
    while clock.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != clock:
        clock += timedelta(minutes=1)
    return clock.replace(tzinfo=zone).timestamp()


@cache
def times(cron: str, tz: str, day: str) -> list[int]:
    """All times in the days around that one: what the clock shows there, second by second, is looked up."""
    zone = ZoneInfo(tz)
    middle = datetime.fromisoformat(day)
    found = set()
    for shown in CronSim(cron, middle - SEARCHED):
        if shown > middle + SEARCHED:
            break
        first, second = (shown.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
        if first > second:  # in a gap
            if cron in BY_THE_CLOCK:
                continue
            first = end_of_gap(shown, zone)
        found |= {first, second} if cron in BY_THE_CLOCK else {first}
    return sorted(map(round, found))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(
    st.sampled_from(CHANGES),
    st.sampled_from(CRONS),
    st.integers(-SPAN_S // 2, SPAN_S // 2),
)
@example(("Europe/Berlin", "2026-03-29"), "0 30 2 * * *", 0)  # left out
@example(("Europe/Berlin", "2026-10-25"), "0 30 2 * * *", 3600)  # twice
@example(("Australia/Lord_Howe", "2026-04-05"), "* 2 * * *", 0)
@example(("Pacific/Apia", "2011-12-30"), "*/20 45 1 * * *", SPAN_S // 2)  # 14 hours from UTC
def test_the_times_are_those_that_a_slow_search_finds(
    change: tuple[str, str], cron: str, away_s: int
) -> None:
    tz, day = change
    time_s = round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) + away_s
    known = times(cron, tz, day)
    one = Cron(cron, tz)
    assert one.after(time_s) == next(at_s for at_s in known if at_s > time_s)
    assert one.until(time_s) == next(at_s for at_s in reversed(known) if at_s <= time_s)


@pytest.mark.parametrize("cron", ["30 2 * * *", "0 30 2 * * *"])
@pytest.mark.parametrize(("tz", "day"), [one for one in CHANGES if one[0] != "Pacific/Apia"])
def test_a_job_a_day_comes_once_a_night_with_and_without_seconds(
    cron: str, tz: str, day: str
) -> None:
    one = Cron(cron, tz)
    at_s = one.after(round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) - SPAN_S)
    nights = []
    for _ in range(5):
        assert at_s is not None
        nights.append(datetime.fromtimestamp(at_s, ZoneInfo(tz)).date())
        at_s = one.after(at_s)
    assert nights == sorted(set(nights))


def test_a_time_of_one_day_a_year_is_found_when_the_clock_shows_it_again() -> None:
    shown = round(datetime(2026, 10, 25, 0, 45, tzinfo=UTC).timestamp())
    assert Cron("*/30 2 25 10 *", "Europe/Berlin").after(shown) == shown + 900  # not in a year


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("@hourly", ["10-25 03:00", "10-25 04:00"]),
        ("@daily", ["10-26 00:00", "10-27 00:00"]),
        ("@midnight", ["10-26 00:00", "10-27 00:00"]),
        ("@weekly", ["11-01 00:00", "11-08 00:00"]),
        ("@monthly", ["11-01 00:00", "12-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00"]),
    ],
)
def test_a_name_of_debians_cron_stands_for_its_times(name: str, times: list[str]) -> None:
    zone = ZoneInfo("Europe/Berlin")
    cron, at_s = (
        Cron(name, "Europe/Berlin"),
        round(datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=1).timestamp()),
    )
    found = []
    for _ in times:
        next_s = cron.after(at_s)
        assert next_s is not None
        assert cron.until(next_s) == next_s
        found.append(f"{datetime.fromtimestamp(next_s, zone):%m-%d %H:%M}")
        at_s = next_s
    assert found == times


@pytest.mark.parametrize("name", ["@reboot", "@Daily", "@fortnightly", "@", "@daily 0 0 * * *"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        Cron(name, "UTC")
