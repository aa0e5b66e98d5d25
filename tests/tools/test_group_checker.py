"""Histories for the checker of groups; test_checker.py has it judge them."""

from collections.abc import Callable
from typing import Any, Final, Self

from faults.checker import GONE, UNAVAILABLE
from faults.group_checker import GroupVerdict, judge_groups
from faults.history import INFO, INVOKE, NOTE, OK, Event

WALL_S: Final = 1_000_000.0  # the store's clock minus the monotonic one
TTR_S: Final = 10
RULES: Final = ("out_of_order", "together", "lost", "stuck")


class Operations:
    """A history that is written by hand; each operation takes 10 ms."""

    def __init__(self) -> None:
        self.events = [Event(NOTE, INFO, "clock", 0.0, note={"offset_s": WALL_S})]
        self._number = 0

    def operation(
        self,
        verb: str,
        at_s: float,
        asked: list[dict[str, Any]],
        told: list[dict[str, Any]],
        *,
        outcome: str = OK,
        heard_s: float | None = None,
    ) -> Self:
        self._number += 1
        heard_s = at_s + 0.01 if heard_s is None else heard_s
        self.events.append(Event(self._number, INVOKE, verb, at_s, asked))
        self.events.append(Event(self._number, outcome, verb, heard_s, told))
        return self


class Script(Operations):
    """Job `a0` is the first of group `a`."""

    def push(self, *ids: str, outcome: str = OK) -> Self:
        jobs = [
            {"id": job_id, "group": job_id[0], "number": int(job_id[1:]), "ttr_s": TTR_S}
            for job_id in ids
        ]
        told = [{"id": job_id, "code": 0} for job_id in ids] if outcome == OK else []
        return self.operation("push", 1, jobs, told, outcome=outcome)

    def pop(self, at_s: float, *ids: str, attempt: int = 1, heard_s: float | None = None) -> Self:
        told = [{"id": job_id, "attempt": attempt} for job_id in ids]
        return self.operation("pop", at_s, [], told, heard_s=heard_s)

    def end(
        self, at_s: float, job_id: str, attempt: int = 1, *, verb: str = "finish", code: int = 0
    ) -> Self:
        outcome = INFO if code == UNAVAILABLE else OK
        told = [{"id": job_id, "code": code}]
        asked = [{"id": job_id, "attempt": attempt}]
        return self.operation(verb, at_s, asked, told, outcome=outcome)

    def left(self, job_id: str, state: str | None) -> Self:
        return self.operation("get", 90, [], [{"id": job_id, "state": state}])

    def judged(self) -> GroupVerdict:
        return judge_groups(sorted(self.events, key=lambda event: event.time_s))


def good() -> Script:
    return Script().push("a0", "a1").pop(2, "a0").end(3, "a0").pop(4, "a1").end(5, "a1")


def failed() -> Script:
    """The first job of a group fails, and is delivered again at 4."""
    return Script().push("a0").pop(2, "a0").end(3, "a0", verb="release").pop(4, "a0", attempt=2)


HARMLESS: Final[dict[str, Callable[[], Script]]] = {
    "one after the other": good,
    "jobs of two groups at once": lambda: (
        Script().push("a0", "b0").pop(2, "a0", "b0").end(3, "a0").end(4, "b0")
    ),
    "again after a release": lambda: failed().end(5, "a0", 2),
    "again when its TTR ran out": lambda: (
        Script().push("a0").pop(2, "a0").pop(2 + TTR_S, "a0", attempt=2).end(13, "a0", 2)
    ),
    "the next one while the answer to the finish is on its way": lambda: (
        Script().push("a0", "a1").pop(2, "a0").end(3, "a0").pop(3.005, "a1").end(4, "a1")
    ),
    "asked for before, and delivered after the one before was finished": lambda: (
        Script()
        .push("a0", "a1")
        .pop(2, "a0")
        .end(3, "a0")
        .pop(1.5, "a1", heard_s=3.02)
        .end(4, "a1")
    ),
    "ended by a finish without an answer": lambda: (
        Script().push("a0").pop(2, "a0").end(3, "a0", code=UNAVAILABLE).end(4, "a0", code=GONE)
    ),
    "ended by a worker that was killed": lambda: (
        Script().push("a0").pop(2, "a0").end(3, "a0", code=UNAVAILABLE).left("a0", "finished")
    ),
    "a push without an answer that never comes": lambda: Script().push("a0", outcome=INFO),
}

PLANTED: Final[dict[str, tuple[str, Callable[[], Script]]]] = {
    "the second job first": (
        "out_of_order",
        lambda: Script().push("a0", "a1").pop(2, "a1").end(3, "a1").pop(4, "a0").end(5, "a0"),
    ),
    "one is skipped": (
        "out_of_order",
        lambda: good().push("a2", "a3").pop(6, "a3").end(7, "a3").pop(8, "a2").end(9, "a2"),
    ),
    "the second one while the first waits for its retry": (
        "out_of_order",
        lambda: (
            Script()
            .push("a0", "a1")
            .pop(2, "a0")
            .end(3, "a0", verb="release")
            .pop(4, "a1")
            .end(5, "a1")
            .pop(6, "a0", attempt=2)
            .end(7, "a0", 2)
        ),
    ),
    "the first one again after the second": (
        "out_of_order",
        lambda: good().pop(6, "a0", attempt=2).end(7, "a0", 2),
    ),
    "one job twice": (
        "together",
        lambda: Script().push("a0").pop(2, "a0").pop(3, "a0", attempt=2).end(4, "a0", 2),
    ),
    "one job twice, by the attempt before a release": (
        "together",
        lambda: failed().pop(5, "a0", attempt=3).end(6, "a0", 3),
    ),
    "never delivered, and gone": ("lost", lambda: good().push("a2").left("a2", None)),
    "never delivered, and nobody looked": ("lost", lambda: good().push("a2")),
    "gone while it was in hand": (
        "lost",
        lambda: Script().push("a0").pop(2, "a0").end(3, "a0", code=GONE).left("a0", None),
    ),
    "never delivered, though it is ready": ("stuck", lambda: good().push("a2").left("a2", "ready")),
    "delivered, and never again": (
        "stuck",
        lambda: Script().push("a0").pop(2, "a0").left("a0", "reserved"),
    ),
}


def test_two_jobs_of_a_group_in_hand_are_out_of_order_and_together() -> None:
    verdict = Script().push("a0", "a1").pop(2, "a0", "a1").end(3, "a0").end(4, "a1").judged()
    assert (verdict.out_of_order, verdict.together) == (["a1"], ["a1"])
