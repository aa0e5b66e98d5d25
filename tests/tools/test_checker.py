"""Both checkers are sharp: they pass a good history, and report each planted fault and nothing else."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import pytest

from faults.checker import GONE, UNAVAILABLE, Verdict, judge
from faults.history import (
    FREEZE,
    INFO,
    INVOKE,
    KILL_EVERYSEC,
    NOTE,
    OK,
    THAW,
    Event,
    History,
    read_history,
)
from tests.tools import test_group_checker as groups
from tests.tools.test_group_checker import TTR_S, WALL_S, Operations

STALE: Final = 4
RULES: Final = ("lost", "unexpected", "early", "after_end", "unexplained")


class Script(Operations):
    """What becomes of job `a`, unless another one is named."""

    def push(
        self,
        at_s: float,
        job_id: str = "a",
        *,
        delay_s: float = 0,
        code: int = 0,
        outcome: str = OK,
        heard_s: float | None = None,
    ) -> Self:
        job = {"id": job_id, "delay_s": delay_s, "ttr_s": TTR_S}
        told = [{"id": job_id, "code": code}] if outcome == OK or code else []
        return self.operation("push", at_s, [job], told, outcome=outcome, heard_s=heard_s)

    def pop(self, at_s: float, job_id: str = "a", *, heard_s: float | None = None) -> Self:
        return self.operation("pop", at_s, [], [{"id": job_id}], heard_s=heard_s)

    def end(
        self,
        at_s: float,
        job_id: str = "a",
        *,
        verb: str = "finish",
        code: int = 0,
        outcome: str = OK,
    ) -> Self:
        told = [{"id": job_id, "code": code}] if outcome == OK or code else []
        return self.operation(verb, at_s, [{"id": job_id}], told, outcome=outcome)

    def clock(self, at_s: float, offset_s: float) -> Self:
        note = {"offset_s": WALL_S + offset_s}
        self.events.append(Event(NOTE, INFO, "clock", at_s, note=note))
        return self

    def frozen(self, from_s: float, to_s: float) -> Self:
        return self.fault(from_s, FREEZE).fault(to_s, THAW)

    def killed(self, at_s: float) -> Self:
        return self.fault(at_s, KILL_EVERYSEC)

    def fault(self, at_s: float, what: str) -> Self:
        self.events.append(Event(NOTE, INFO, "fault", at_s, note={"what": what}))
        return self

    def judged(self) -> Verdict:
        return judge(sorted(self.events, key=lambda event: event.time_s))


def good() -> Script:
    return Script().push(1).pop(2).end(3)


def doubted_end() -> Script:
    """A job whose end got a 503, and then a success."""
    return Script().push(1).pop(2).end(3, code=UNAVAILABLE, outcome=INFO).end(4, code=GONE)


def doubted_push() -> Script:
    """A job whose push got a 503, and that was pushed again at 20, delivered and ended."""
    return Script().push(1, code=UNAVAILABLE, outcome=INFO).push(20).pop(21).end(22)


HARMLESS: Final[dict[str, Callable[[], Script]]] = {
    "a job's life": good,
    "delivered at its due time": lambda: Script().push(1, delay_s=1).pop(1.5, heard_s=2.0).end(3),
    "a delete ends as well": lambda: Script().push(1).end(2, verb="delete"),
    "again when its TTR ran out": lambda: Script().push(1).pop(2).pop(2 + TTR_S).end(20),
    "again after a release": lambda: Script().push(1).pop(2).end(3, verb="release").pop(4).end(5),
    "again after a second push": lambda: good().push(4).pop(5).end(6),
    "again after a push without an answer": lambda: (
        Script().push(1).pop(2).push(3, outcome=INFO).pop(4).end(5)
    ),
    "ended by a finish without an answer": lambda: (
        Script().push(1).pop(2).end(3, outcome=INFO).end(4, code=GONE)
    ),
    "ended by a finish that has no answer for this one of many": lambda: (
        Script().push(1).pop(2).end(3, code=UNAVAILABLE).end(4, code=GONE)
    ),
    "a poll that began before the finish": lambda: (
        Script().push(1).pop(2).end(12.5).pop(12.4, heard_s=12.6)
    ),
    "a push without an answer, never seen": lambda: Script().push(1, outcome=INFO),
    "early by our clock, as the store's jumped ahead": lambda: (
        Script().push(1, delay_s=100).clock(2, 3600).pop(3).end(4)
    ),
    "TTR ran out since the store froze with the answer in it": lambda: (
        Script().push(1).frozen(2, 4).pop(3.9, heard_s=4.01).pop(2 + TTR_S).end(20)
    ),
    "ended by a finish that got a 503": doubted_end,
    "a finish that got a 503 ends another job, while it can": lambda: doubted_end().push(12),
    "or leaves it": lambda: doubted_end().push(12).pop(13).end(14),
    "a finish without an answer ends another job": lambda: (
        Script().push(1).pop(2).end(3, outcome=INFO).end(4, code=GONE).push(60)
    ),
    "pushed again after a push that got a 503": doubted_push,
    "a push that got a 503 comes back, while it can": lambda: (
        Script().push(1, code=UNAVAILABLE, outcome=INFO).push(2).pop(3).end(4).pop(10).end(11)
    ),
    "a push without an answer comes back": lambda: (
        Script().push(1, outcome=INFO).push(20).pop(21).end(22).pop(60).end(61)
    ),
    "pushed while it is ended, and there": lambda: (
        good().push(4).pop(5).push(6, heard_s=8).end(7).pop(9).end(10)
    ),
    "pushed while it is ended, and gone": lambda: good().push(4).pop(5).push(6, heard_s=8).end(7),
    "an end is followed by a push that got a 503": lambda: good().push(
        4, code=UNAVAILABLE, outcome=INFO
    ),
    "TTR ran out as the store's clock jumped ahead": lambda: (
        Script().push(1).pop(2).clock(3, 3600).pop(4).end(5)
    ),
    "pushed just before everysec's store was killed": lambda: Script().push(1).killed(3),
    "delivered just before everysec's store was killed": lambda: (
        Script().push(1).pop(8).killed(9).pop(10).end(11)
    ),
    "ended just before everysec's store was killed": lambda: (
        Script().push(1).pop(2).end(8).killed(9).pop(2 + TTR_S).end(13)
    ),
    "ended for good just before everysec's store was killed": lambda: good().killed(4),
}

PLANTED: Final[dict[str, tuple[str, Callable[[], Script]]]] = {
    "never delivered": ("lost", lambda: Script().push(1)),
    "delivered and never ended": ("lost", lambda: Script().push(1).pop(2)),
    "its finish was refused": ("lost", lambda: Script().push(1).pop(2).end(3, code=STALE)),
    "no answer to its finish": ("lost", lambda: Script().push(1).pop(2).end(3, code=UNAVAILABLE)),
    "vanished before its finish": ("lost", lambda: Script().push(1).pop(2).end(3, code=GONE)),
    "pushed again and gone": ("lost", lambda: good().push(4)),
    "ended by a finish that got a 503 long before": ("lost", lambda: doubted_end().push(13.1)),
    "gone before its finish, by one that got a 503 long before": (
        "lost",
        lambda: doubted_end().push(13.1).pop(14).end(15, code=GONE),
    ),
    "brought back by a push that got a 503 long before": (
        "after_end",
        lambda: doubted_push().pop(40),
    ),
    "early, though its former job was due": (
        "early",
        lambda: good().push(4, delay_s=5).pop(6).end(7),
    ),
    "never pushed": ("unexpected", lambda: good().pop(4, "ghost")),
    "before its due time": ("early", lambda: Script().push(1, delay_s=1).pop(1.5).end(2)),
    "a moment before its due time": (
        "early",
        lambda: Script().push(1, delay_s=1).pop(1.5, heard_s=1.99).end(3),
    ),
    "after its finish": ("after_end", lambda: good().pop(3.5 + TTR_S)),
    "after its delete": ("after_end", lambda: Script().push(1).end(2, verb="delete").pop(3)),
    "before its TTR ran out": ("unexplained", lambda: Script().push(1).pop(2).pop(3).end(4)),
    "before its TTR ran out since the store froze": (
        "unexplained",
        lambda: Script().push(1).frozen(2, 4).pop(3.9, heard_s=4.01).pop(1.9 + TTR_S).end(20),
    ),
    "before its TTR ran out, when the store was frozen no more": (
        "unexplained",
        lambda: Script().push(1).frozen(2, 4).pop(4.2).pop(2 + TTR_S).end(20),
    ),
    "twice after one release": (
        "unexplained",
        lambda: Script().push(1).pop(2).end(3, verb="release").pop(4).pop(5).end(6),
    ),
    "pushed long before everysec's store was killed": ("lost", lambda: Script().push(1).killed(4)),
    "delivered long before everysec's store was killed": (
        "unexplained",
        lambda: Script().push(1).pop(2).killed(5).pop(6).end(7),
    ),
    "ended long before everysec's store was killed": (
        "after_end",
        lambda: good().killed(6).pop(4 + TTR_S),
    ),
}


@pytest.mark.parametrize(
    "script",
    [*HARMLESS.values(), *groups.HARMLESS.values()],
    ids=[*HARMLESS, *(f"groups: {name}" for name in groups.HARMLESS)],
)
def test_a_history_that_keeps_the_promises_passes(
    script: Callable[[], Script | groups.Script],
) -> None:
    script().judged().check()


@pytest.mark.parametrize(
    ("rules", "rule", "script"),
    [
        *((RULES, *planted) for planted in PLANTED.values()),
        *((groups.RULES, *planted) for planted in groups.PLANTED.values()),
    ],
    ids=[*PLANTED, *(f"groups: {name}" for name in groups.PLANTED)],
)
def test_a_planted_fault_is_caught_and_named(
    rules: tuple[str, ...], rule: str, script: Callable[[], Script | groups.Script]
) -> None:
    verdict = script().judged()
    assert {name for name in rules if getattr(verdict, name)} == {rule}
    with pytest.raises(AssertionError, match=rule):
        verdict.check()


def test_a_push_without_an_answer_that_comes_is_recovered_and_not_lost() -> None:
    verdict = Script().push(1, outcome=INFO).pop(2).end(3).judged()
    assert (verdict.recovered, verdict.acknowledged, verdict.lost) == (1, 0, [])


def test_an_operation_that_never_ended_is_of_unknown_outcome() -> None:
    script = Script().push(1).pop(2)
    script.events.append(Event(99, INVOKE, "finish", 3, [{"id": "a"}]))
    assert script.judged().unknown == 1


def test_lateness_is_that_of_the_first_delivery() -> None:
    verdict = Script().push(1, delay_s=1).pop(1.5, heard_s=2.5).pop(20).end(21).judged()
    assert verdict.lateness_ms == [pytest.approx(500)]


@pytest.fixture
def ahead_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """By how much the machine's clock is ahead of the monotonic one, as its only item."""
    ahead_s = [WALL_S]
    monkeypatch.setattr(time, "time", lambda: time.monotonic() + ahead_s[0])
    return ahead_s


def test_a_clock_that_is_set_meanwhile_makes_no_delivery_early(
    tmp_path: Path, ahead_s: list[float]
) -> None:
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        pushed = history.invoke("push", [{"id": "a", "delay_s": 0.001, "ttr_s": 1}])
        history.end(pushed, OK, "push", [{"id": "a", "code": 0}])
        ahead_s[0] += 3600
        taken = history.invoke("pop", [])
        history.end(taken, OK, "pop", [{"id": "a", "due": time.time()}])
    verdict = judge(read_history(path))
    assert (verdict.early, len(verdict.lateness_ms)) == ([], 1)
    assert verdict.lateness_ms[0] < 1000


@pytest.mark.usefixtures("ahead_s")
def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        number = history.invoke("push", [{"id": "a", "delay_s": 0, "ttr_s": 1}])
        history.fault("kill the server")
        history.end(number, OK, "push", [{"id": "a", "code": 0}])
    clock, invoke, fault, end = read_history(path)
    assert clock.verb == "clock"
    assert (invoke.number, invoke.type, end.type) == (end.number, INVOKE, OK)
    assert fault.note == {"what": "kill the server"}
    assert end.jobs == [{"id": "a", "code": 0}]
    assert [json.loads(line)["verb"] for line in path.read_text().splitlines()] == [
        "clock",
        "push",
        "fault",
        "push",
    ]
