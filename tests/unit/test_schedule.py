"""When a schedule occurs: calendars, time zones, and what was missed; clocks that change: tests/unit/test_cron.py."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from delayqueue.domain.schedule import (
    BATCH,
    LATE_MS,
    CatchUp,
    Schedule,
    check_cron,
    check_every,
    check_tz,
)

HOUR_MS = 3_600_000


def ms(text: str) -> int:
    """Unix milliseconds of a time in UTC, such as 2026-03-29 01:00."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def shown(time_ms: int | None) -> str:
    assert time_ms is not None
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def schedule(**fields: object) -> Schedule:
    return Schedule(name="s", topic="t", **fields)  # type: ignore[arg-type]


def occurrences(one: Schedule, after: str, number: int) -> list[str]:
    times, time_ms = [], one.after(ms(after))
    for _ in range(number):
        times.append(shown(time_ms))
        time_ms = one.after(time_ms or 0)
    return times


@pytest.mark.parametrize(
    ("cron", "tz", "after", "expected", "_why"),
    [
        ("30 9 * * *", "UTC", "2026-01-01 09:30", ["2026-01-02 09:30:00"], "after, not at"),
        ("30 9 * * *", "Asia/Shanghai", "2026-01-01 00:00", ["2026-01-01 01:30:00"], "zone"),
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", ["2028-02-29 00:00:00"], "leap year"),
        ("0 12 L * *", "UTC", "2026-02-01 00:00", ["2026-02-28 12:00:00"], "last of the month"),
        ("0 9 * * MON#1", "UTC", "2026-01-01 00:00", ["2026-01-05 09:00:00"], "first Monday"),
        ("*/20 * * * * *", "UTC", "2026-01-01 00:00", ["2026-01-01 00:00:20"], "with seconds"),
    ],
)
def test_the_calendar(cron: str, tz: str, after: str, expected: list[str], _why: str) -> None:
    assert occurrences(schedule(cron=cron, tz=tz), after, len(expected)) == expected


def test_every_is_counted_from_1970() -> None:
    quarter = schedule(every_ms=900_000)
    assert occurrences(quarter, "2026-01-01 00:07", 2) == [
        "2026-01-01 00:15:00",
        "2026-01-01 00:30:00",
    ]
    assert quarter.after(ms("2026-01-01 00:15")) == ms("2026-01-01 00:30")
    assert quarter.until(ms("2026-01-01 00:15")) == ms("2026-01-01 00:15")


@pytest.mark.parametrize(
    ("catch_up", "late_ms", "pushed", "_why"),
    [
        (CatchUp.SKIP, 5, [0], "on time"),
        (CatchUp.ONCE, 5, [0], "on time"),
        (CatchUp.ALL, 5, [0], "on time"),
        (CatchUp.SKIP, 5 * HOUR_MS + 5, [5], "what was missed is left out"),
        (CatchUp.ONCE, 5 * HOUR_MS + 5, [5], "there is one that was not missed"),
        (CatchUp.ALL, 5 * HOUR_MS + 5, [0, 1, 2, 3, 4, 5], "every one"),
        (CatchUp.SKIP, 5 * HOUR_MS + 2 * LATE_MS, [], "all were missed"),
        (CatchUp.ONCE, 5 * HOUR_MS + 2 * LATE_MS, [5], "the last one makes up for all"),
        (CatchUp.ALL, 5 * HOUR_MS + 2 * LATE_MS, [0, 1, 2, 3, 4, 5], "every one"),
        (CatchUp.SKIP, LATE_MS, [0], "not missed yet"),
        (CatchUp.SKIP, 5 * HOUR_MS + LATE_MS, [5], "the last one is not missed yet"),
        (CatchUp.SKIP, LATE_MS + 1, [], "missed"),
    ],
)
@pytest.mark.parametrize("fields", [{"cron": "0 * * * *"}, {"every_ms": HOUR_MS}], ids=str)
def test_what_was_missed(
    fields: dict[str, object], catch_up: CatchUp, late_ms: int, pushed: list[int], _why: str
) -> None:
    first_ms = ms("2026-03-29 00:00")
    one = schedule(catch_up=catch_up, **fields)
    due, next_ms = one.plan(first_ms, first_ms + late_ms)
    assert [(time_ms - first_ms) / HOUR_MS for time_ms in due] == pushed
    assert next_ms == first_ms + (late_ms // HOUR_MS + 1) * HOUR_MS


def test_many_missed_ones_come_in_bounded_pieces_without_a_gap() -> None:
    one = schedule(every_ms=1000, catch_up=CatchUp.ALL)
    first_ms, seen = ms("2026-01-01 00:00"), list[int]()
    now_ms, next_ms = first_ms + 3_600_000, first_ms
    while next_ms <= now_ms:
        due, following = one.plan(next_ms, now_ms)
        assert 0 < len(due) <= BATCH
        assert following is not None
        seen, next_ms = seen + due, following
    assert seen == list(range(first_ms, now_ms + 1, 1000))


def test_missed_ones_with_large_bodies_come_in_small_pieces() -> None:
    first_ms = ms("2026-01-01 00:00")
    for body, count in ((1_000_000, 4), (5_000_000, 1)):
        one = schedule(every_ms=1000, catch_up=CatchUp.ALL, body="x" * body)
        due, following = one.plan(first_ms, first_ms + 3_600_000)
        assert (len(due), following) == (count, first_ms + count * 1000)


def test_a_year_of_missed_seconds_is_made_up_for_at_once() -> None:
    """The last one is searched backwards from now, not forwards from then."""
    one = schedule(cron="0 4 * * *", tz="Europe/Berlin")
    due, _ = one.plan(ms("1990-01-01 03:00"), ms("2026-06-15 12:00"))
    assert [shown(time_ms) for time_ms in due] == ["2026-06-15 02:00:00"]


def test_each_occurrence_has_an_id_of_its_own() -> None:
    one = schedule(every_ms=1500)
    assert one.job_id(ms("2026-01-31 09:30")) == "s@2026-01-31T09:30:00Z"
    assert one.job_id(ms("2026-01-31 09:30") + 1500) == "s@2026-01-31T09:30:01.500Z"


def test_a_definition_is_read_as_it_was_written() -> None:
    one = schedule(cron="0 0 * * *", tz="Asia/Tokyo", body="排队", catch_up=CatchUp.ALL)
    assert Schedule.read(one.definition) == one


def test_only_a_paused_schedule_says_so_in_its_definition() -> None:
    one = schedule(every_ms=1000)
    assert (
        "paused" not in one.definition
    )  # as in earlier versions, so the same schedule is the same
    assert Schedule.read(one.definition) == one
    paused = replace(one, paused=True)
    assert Schedule.read(paused.definition) == paused


@pytest.mark.parametrize(
    "damage",
    [
        {"every_ms": "5000"},
        {"every_ms": None},
        {"every_ms": 0.5},
        {"every_ms": 0},
        {"every_ms": -1000},
        {"cron": ["* * * * *"], "every_ms": 0},
        {"cron": "* * * * *"},
        {"tz": None},
        {"body": None},
        {"ttr_ms": "60000"},
        {"topic": None},
        {"paused": 1},
        {"group": 5},
        {"call": {"url": "http://h/", "timeout": []}},
    ],
    ids=str,
)
def test_a_definition_with_a_damaged_member_is_not_a_schedule(damage: dict[str, object]) -> None:
    found = json.loads(schedule(every_ms=1000).definition)
    with pytest.raises(ValueError, match=r"not a definition of a schedule|not a call|one of cron"):
        Schedule.read(json.dumps(found | damage))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Wrong number of fields: must be like 30 9 * * MON-FRI"),
        ("* * *", "Wrong number of fields"),
        ("61 * * * *", "Bad minute"),
        ("* 25 * * *", "Bad hour"),
        ("* * 32 * *", "Bad day-of-month"),
        ("* * * 13 *", "Bad month"),
        ("* * * * 8", "Bad day-of-week"),
        ("@reboot", "Wrong number of fields"),
        ("a b c d e", "Bad minute"),
        ("*/0 * * * *", "Bad minute"),
        ("0 0 31 2 *", "Bad day-of-month"),
        ("0 0 */20 * 1L", "must be a time in the future"),
        ("1," * 3_000_000 + "1 * * * *", "must be at most 512 characters long"),
    ],
)
def test_a_bad_cron_expression_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        check_cron(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text", ["Mars/Olympus", "", "../../etc/passwd", "/etc/passwd", "Europe", "UTC\0", "x" * 300]
)
def test_a_bad_time_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time zone such as"):
        check_tz(text)


@pytest.mark.parametrize("text", ["localtime", "posixrules", "right/Europe/Berlin", "posix/UTC"])
def test_a_time_zone_that_each_server_understands_differently_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text} differs from server to server"):
        check_tz(text)


@pytest.mark.parametrize("every_ms", [0, 999, 367 * 86_400_000])
def test_a_bad_interval_is_refused(every_ms: int) -> None:
    with pytest.raises(ValueError, match="must be 1 to"):
        check_every(every_ms)
