"""What `top` shows for two answers of /stats."""

from typing import Any, Final

import pytest

from delayqueue.cli.tables import age, fitting
from delayqueue.cli.top import SERVER_COLUMNS, Top
from delayqueue.web.endpoints.operations import stats

STATS: Final[dict[str, Any]] = stats.answers
# what servers tell of a host that know nothing of jobs that wait
EARLIER: Final = ("host", "calling", "limit", "succeeded", "failed", "put_off", "took")


def test_rates_are_what_a_server_did_between_two_of_its_reports() -> None:
    top = Top()
    assert rates(top(STATS)) == ["-", "-", "-"]
    assert rates(top(later(10, pushed=20, finished=5))) == ["2", "0", "0"]
    assert rates(top(later(10, pushed=20, finished=5))) == ["2", "0", "0"]  # no news
    assert rates(top(later(12, pushed=24, finished=7))) == ["2", "0", "1"]


def test_a_server_that_began_anew_has_no_rates_yet() -> None:
    top = Top()
    top(later(0, pushed=100))
    begun = later(10, pushed=1)
    begun["servers"][0]["started"] += 9
    assert rates(top(begun)) == ["-", "-", "-"]


def test_calls_of_jobs_are_shown_if_there_are_any() -> None:
    shown = Top()(STATS)
    assert "calls due 314" in shown
    head, row = shown.split("\n\n")[-2].splitlines()
    names = ["HOST", "CALLING", "LIMIT", "OK/MIN", "FAILED", "PUT", "OFF", "TOOK", "WAITING"]
    assert head.split() == [*names, "SINCE", "NEXT"]
    counts = ["10", "10", "118", "3", "40", "4200", "ms", "312"]
    assert row.split()[:9] == ["merchant.example.com:443", *counts]
    of_before = [{k: v for k, v in STATS["calls"][0].items() if k in EARLIER}]
    assert Top()(STATS | {"calls": of_before}).split("\n\n")[-2].split()[-3:] == ["-"] * 3
    older: dict[str, Any] = {
        name: value for name, value in STATS.items() if name not in {"called", "calls"}
    }
    for without in (older, STATS | {"called": 0, "calls": []}):
        assert "CALLING" not in Top()(without)
        assert "calls due" not in Top()(without)


def test_troubles_are_shown_if_there_are_any() -> None:
    troubles = [
        {"kind": "lost", "name": "mail", "topic": "mail", "count": 1855, "at": 0, "message": ""},
        {"kind": "host", "name": "a:1", "topic": "", "count": 3, "at": 0, "message": "HTTP\n503"},
    ]
    head, lost, host = Top()(STATS | {"troubles": troubles}).split("\n\n")[1].splitlines()
    assert head.split() == ["TROUBLE", "NAME", "TOPIC", "COUNT", "LAST", "MESSAGE"]
    assert lost.split()[:4] == ["lost", "mail", "mail", "1855"]
    assert host.split()[:4] == ["host", "a:1", "-", "3"]
    assert host.endswith(r" ago  HTTP\n503")
    older = {name: value for name, value in STATS.items() if name != "troubles"}
    for without in (older, STATS | {"troubles": []}):
        assert "TROUBLE" not in Top()(without)


def test_outboxes_are_shown_if_there_are_any() -> None:
    head, row = Top()(STATS).split("\n\n")[-1].splitlines()
    assert head.split() == ["OUTBOX", "FAILED", "ROWS", "OLDEST", "SEEN", "NEWEST", "REASON"]
    assert row.startswith("db1/shop/delay_queue_outbox            2    0.2s")
    assert row.endswith(" ago  ttr -1: must be 1 to 86400 seconds")
    older = {name: value for name, value in STATS.items() if name != "outboxes"}
    for without in (older, STATS | {"outboxes": []}):
        assert "OUTBOX" not in Top()(without)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "-"), (0, "0.0s"), (59.94, "59.9s"), (60, "1m"), (938.3, "15m 38s"), (90_061, "1d 1h")],
)
def test_an_age_is_told_in_its_two_largest_units(seconds: float | None, shown: str) -> None:
    assert age(seconds) == shown


def test_a_long_name_loses_its_middle_and_pushes_no_column_off_the_terminal() -> None:
    name = "com.example.shop.orders." + "very." * 20 + "close"
    shown = fitting(["topic", "ready", "why"], [[name, "7", "buried"], ["订单" * 30, "8", ""]], 60)
    head, first, second = shown.splitlines()
    assert max(len(head), len(first)) <= 60
    assert first.startswith("com.example.shop")
    assert first.endswith("close      7  buried")
    assert second.endswith("8")
    assert fitting(["topic"], [["short"]], 10) == "TOPIC\nshort"


def test_servers_fit_a_terminal_of_80_columns() -> None:
    busy = ["queue-7d9f8b6c5-x2x4v:9277 #1", "1.0.0", *3 * ["10000"], "20000", "25 ms", "5m"]
    assert max(map(len, fitting(SERVER_COLUMNS, [busy], 80).splitlines())) <= 80


def later(seconds: float, **done: int) -> dict[str, Any]:
    """The example this much later, after the server has done more."""
    [server] = STATS["servers"]
    changed: dict[str, Any] = {**server, "seen": server["seen"] + seconds}
    for name, count in done.items():
        changed[name] += count
    return {**STATS, "servers": [changed]}


def rates(text: str) -> list[str]:
    """The values of PUSHED/S, DELIVERED/S, FINISHED/S."""
    lines = text.splitlines()
    [head] = [place for place, line in enumerate(lines) if line.startswith("SERVER")]
    return lines[head + 1].split()[3:6]  # the name has a blank in it
