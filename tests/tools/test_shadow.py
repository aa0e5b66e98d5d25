"""The shadow is sharp: it passes what the promises allow and catches each planted fault."""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from delayqueue.errors import Code
from faults.attack.life import NOBODY, Kept, Live, Span, Spec, State, Told
from faults.attack.shadow import OPEN_HOLDS, Shadow

BEGIN_MS: Final = 1_000_000
STEP_MS: Final = 10  # the duration of an operation
SPEC: Final = Spec("t", "first", 1000, tags=("x",))
AGAIN: Final = Spec("t", "second", 1000)
RETRIED: Final = Spec("t", "first", 1000, retry_ms=(100,))
KEPT: Final = Spec("t", "first", 1000, retain_ms=500)
URGENT: Final = Spec("t", "first", 1000, priority=0)
OK: Final = Told()
GONE: Final = Told(Code.NO_SUCH_JOB)
STALE: Final = Told(Code.STALE_RECEIPT)
EXISTS: Final = Told(Code.JOB_EXISTS)


class Story:
    """Operations on one job, one after the other; times are ms since the beginning."""

    def __init__(self) -> None:
        self.shadow = Shadow(["a"], BEGIN_MS)
        self.found: list[str] = []

    def does(
        self, at_ms: int, verb: str, told: Told | None, took_ms: int = STEP_MS, **asked: Any
    ) -> "Story":
        """`told` None: no answer came."""
        ticket = self.shadow.began()
        since_ms = BEGIN_MS + at_ms
        self.shadow.heard(ticket, verb, since_ms, since_ms + took_ms, {"a": (asked, told)})
        return self

    def push(
        self,
        at_ms: int,
        spec: Spec = SPEC,
        told: Told | None = OK,
        *,
        delay_ms: int = 0,
        expire_ms: int = 0,
        if_exists: str = "replace",
    ) -> "Story":
        return self.does(
            at_ms,
            "push",
            told,
            spec=spec,
            delay_ms=delay_ms,
            due=None,
            expire_ms=expire_ms,
            if_exists=if_exists,
        )

    def pop(self, at_ms: int, due_ms: int, receipt: str = "r1", attempt: int = 1) -> "Story":
        due = BEGIN_MS + due_ms, BEGIN_MS + due_ms
        return self.does(at_ms, "pop", Told(0, due, ("t", "first", attempt)), receipt=receipt)

    def finish(self, at_ms: int, receipt: str = "r1", told: Told | None = OK) -> "Story":
        return self.does(at_ms, "finish", told, receipt=receipt, how="finished")

    def release(self, at_ms: int, delay_ms: int) -> "Story":
        told = Told(time=_at(at_ms + delay_ms))
        return self.does(at_ms, "release", told, receipt="", delay_ms=delay_ms, fallback_ms=None)

    def kick(self, at_ms: int) -> "Story":
        return self.does(at_ms, "kick", OK)

    def cancel(self, at_ms: int, told: Told | None = OK) -> "Story":
        return self.does(at_ms, "cancel", told, tag="x", topic="")

    def sees(self, at_ms: int, *seen: object) -> "Story":
        told = Told(0, (BEGIN_MS, BEGIN_MS + at_ms), ("t", *seen)) if seen else OK
        return self.does(at_ms, "look", told)

    def hold(self, at_ms: int, real: State) -> "Story":
        self.found += self.shadow.judge({} if real is None else {"a": real}, BEGIN_MS + at_ms)
        return self


def live(state: str, due_ms: int = 15, spec: Spec = SPEC, **more: Any) -> Live:
    return Live(spec, state, (BEGIN_MS + due_ms, BEGIN_MS + due_ms), **more)


def held_by(receipt: str, due_ms: int = 15, deadline_ms: int = 1035, attempt: int = 1) -> Live:
    deadline = BEGIN_MS + deadline_ms, BEGIN_MS + deadline_ms
    return live("reserved", due_ms, attempt=attempt, deadline=deadline, holder=receipt)


def _at(ms: int) -> Span:
    return BEGIN_MS + ms, BEGIN_MS + ms


def _kicked_retry() -> Story:
    return Story().push(10, expire_ms=300).pop(30, 15).release(40, 500).kick(60)


def at_once() -> Story:
    """Two operations at the same time: a finish, which is answered last, and a push."""
    story = Story().push(10).pop(30, 15)
    first, second = story.shadow.began(), story.shadow.began()
    push = {"spec": AGAIN, "delay_ms": 0, "due": None, "expire_ms": 0, "if_exists": "fail"}
    finish = {"receipt": "r1", "how": "finished"}
    story.shadow.heard(second, "push", BEGIN_MS + 50, BEGIN_MS + 60, {"a": (push, OK)})
    story.shadow.heard(first, "finish", BEGIN_MS + 50, BEGIN_MS + 70, {"a": (finish, OK)})
    return story


ALLOWED: Final[dict[str, Callable[[], Story]]] = {
    "due anew where it failed and has a priority": lambda: (
        Story()
        .push(10, URGENT)
        .pop(30, 15)
        .hold(1100, live("ready", 1035, URGENT, attempt=1, step=1))
    ),
    "a job's life": lambda: Story().push(10).pop(30, 15).finish(50).hold(100, None),
    "delivered when due": lambda: (
        Story().push(10, delay_ms=100).pop(110, 112).hold(200, held_by("r1", 112, 1115))
    ),
    "kept by a push that must not replace it": lambda: (
        Story().push(10).push(30, AGAIN, if_exists="keep").hold(100, live("ready"))
    ),
    "ready again when its TTR ran out": lambda: (
        Story().push(10).pop(30, 15).hold(1100, live("ready", attempt=1, step=1))
    ),
    "delayed by its schedule": lambda: (
        Story()
        .push(10, RETRIED)
        .pop(30, 15)
        .hold(1100, live("delayed", 1137, RETRIED, attempt=1, step=1))
    ),
    "remembered, and then not": lambda: (
        Story()
        .push(10, KEPT)
        .finish(30, "")
        .hold(100, Kept(KEPT, "finished", (BEGIN_MS + 535, BEGIN_MS + 535)))
        .hold(600, None)
    ),
    "kicked before it was delivered: expires earlier": lambda: (
        Story()
        .push(10, delay_ms=500, expire_ms=300)
        .kick(30)
        .hold(100, live("ready", 35, expire=_at(328)))
    ),
    "kicked after it was delivered: expires as it did": lambda: _kicked_retry().hold(
        100, live("ready", 65, attempt=1, expire=_at(315))
    ),
    "expired while nobody asked": lambda: Story().push(10, expire_ms=50).hold(100, None),
    "a push without an answer that was done": lambda: (
        Story().push(10, told=None).hold(100, live("ready"))
    ),
    "a push without an answer that was not done": lambda: (
        Story().push(10, told=None).hold(100, None).sees(110).hold(200, None)
    ),
    "a push without an answer that is done late": lambda: (
        Story().push(10, told=None).hold(100, None).hold(200, live("ready", 150))
    ),
    "a push that came between a finish and its answer": lambda: at_once().hold(
        100, live("ready", 55, AGAIN)
    ),
    "delivered to a client that was gone, until its TTR ran out": lambda: (
        Story()
        .push(10)
        .does(30, "lost_pop", None, topics=["t"])
        .hold(1100, live("ready", attempt=1, step=1))
    ),
    "reserved by a server that stood still until the TTR ran out": lambda: (
        Story().push(10).hold(3100, live("ready", attempt=1, step=1))
    ),
    "reserved for a poll that was over, and put back": lambda: (
        Story().push(10).hold(100, held_by(NOBODY, 15, 1090)).hold(200, live("ready"))
    ),
}

PLANTED: Final[dict[str, tuple[str, Callable[[], Story]]]] = {
    "an acknowledged push is lost": ("is None", lambda: Story().push(10).hold(100, None)),
    "delivered early": (
        "must not answer so.* pop",
        lambda: Story().push(10, delay_ms=100).pop(90, 112).hold(200, None),
    ),
    "reserved for nobody until its TTR ran out": (
        "could be",
        lambda: Story().push(10).hold(3000, live("ready", attempt=1, step=1)),
    ),
    "delivered after its end": (
        "must not answer so.* pop",
        lambda: Story().push(10).pop(30, 15).finish(50).pop(70, 15, "r2").hold(200, None),
    ),
    "delivered twice at once": (
        "must not answer so.* pop",
        lambda: Story().push(10).pop(30, 15).pop(50, 15, "r2", 2).hold(200, None),
    ),
    "an attempt that is not counted": (
        "must not answer so.* pop",
        lambda: Story().push(10).pop(30, 15).pop(1050, 15, "r2", 1).hold(2000, None),
    ),
    "a stale receipt ends it": (
        "must not answer so.* finish",
        lambda: Story().push(10).pop(30, 15).finish(50, "r0").hold(200, None),
    ),
    "the right receipt is called stale": (
        "must not answer so.* finish",
        lambda: Story().push(10).pop(30, 15).finish(50, told=STALE).hold(200, None),
    ),
    "the answer is there before the next request, and has no effect": (
        "must not answer so.* look",
        lambda: Story().push(10).finish(30, "").sees(50, "first", "ready", 0).hold(100, None),
    ),
    "a push that must fail says that it did not": (
        "must not answer so.* push",
        lambda: Story().push(10).push(30, AGAIN, if_exists="fail").hold(100, None),
    ),
    "a push that need not fail does": (
        "must not answer so.* push",
        lambda: Story().push(10, told=EXISTS, if_exists="fail").hold(100, None),
    ),
    "a tag is passed over": (
        "must not answer so.* look|is Live",
        lambda: Story().push(10).cancel(30).hold(100, live("ready")),
    ),
    "another due time than was asked for": (
        "is Live",
        lambda: Story().push(10, delay_ms=500).hold(100, live("delayed", 700)),
    ),
    "replaced, and the old one is still there": (
        "is Live",
        lambda: Story().push(10).push(30, AGAIN).hold(100, live("ready")),
    ),
    "before its equals again, though it failed": (
        "is Live",
        lambda: (
            Story()
            .push(10, URGENT)
            .pop(30, 15)
            .hold(1100, live("ready", 15, URGENT, attempt=1, step=1))
        ),
    ),
    "its TTR ran out, and no client was gone": (
        "is Live",
        lambda: Story().push(10).hold(1100, live("ready", attempt=1, step=1)),
    ),
    "buried before its schedule was over": (
        "is Live",
        lambda: (
            Story()
            .push(10, RETRIED)
            .pop(30, 15)
            .hold(1100, live("buried", 15, RETRIED, attempt=1, step=1))
        ),
    ),
    "kicked, and it expires earlier than before": (
        "is Live",
        lambda: _kicked_retry().hold(100, live("ready", 65, attempt=1, expire=_at(-160))),
    ),
    "remembered as something else": (
        "is Kept",
        lambda: (
            Story()
            .push(10, KEPT)
            .finish(30, "")
            .hold(100, Kept(KEPT, "cancelled", (BEGIN_MS + 535, BEGIN_MS + 535)))
        ),
    ),
    "a push without an answer that is done far too late": (
        "is Live",
        lambda: _held_often(Story().push(10, told=None)).hold(900, live("ready", 850)),
    ),
}


def _held_often(story: Story) -> Story:
    for number in range(OPEN_HOLDS + 1):
        story.hold(100 + number, None)
    return story


@pytest.mark.parametrize("story", ALLOWED.values(), ids=ALLOWED)
def test_what_the_promises_allow_passes(story: Callable[[], Story]) -> None:
    assert story().found == []


@pytest.mark.parametrize(("words", "story"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_found(words: str, story: Callable[[], Story]) -> None:
    [found] = story().found[:1]
    assert re.search(words, found.splitlines()[0])


def test_a_reservation_that_no_client_heard_of_and_that_lasts_is_noted() -> None:
    there = held_by(NOBODY)
    story = Story().push(10).hold(100, there)
    assert not story.shadow.stuck
    story.hold(200, there)
    assert story.found == []
    assert story.shadow.stuck == {("a", there)}
