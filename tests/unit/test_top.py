"""What `top` shows for two answers of /stats."""

from __future__ import annotations

from typing import Any

from delayqueue.cli.top import Top
from delayqueue.web.endpoints.operations import STATS


def test_rates_are_what_a_server_did_between_two_of_its_reports() -> None:
    top = Top()
    assert rates(top({**STATS})) == ["-", "-", "-"]
    assert rates(top(later(10, pushed=20, finished=5))) == ["2", "0", "0"]
    assert rates(top(later(10, pushed=20, finished=5))) == ["2", "0", "0"]  # no news
    assert rates(top(later(12, pushed=24, finished=7))) == ["2", "0", "1"]


def test_a_server_that_began_anew_has_no_rates_yet() -> None:
    top = Top()
    top(later(0, pushed=100))
    begun = later(10, pushed=1)
    begun["servers"][0]["started"] += 9
    assert rates(top(begun)) == ["-", "-", "-"]


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
