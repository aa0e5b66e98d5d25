"""The history, as the store keeps it in the first bucket; _history.lua describes it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

from delayqueue.answers.servers import HistoryMark
from delayqueue.answers.topics import TopicRates
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.history_steps import (
    ACTION,
    FINEST,
    MOST_TOPICS,
    NO_COUNTS,
    RINGS,
    HistoryStep,
    Mark,
    Ring,
    Row,
    TopicSum,
)
from delayqueue.domain.topic_counters import Counts
from delayqueue.store.bucket import Bucket
from delayqueue.store.census import TOPICS_PER_CALL
from delayqueue.store.record import text
from delayqueue.tasks import batched

SUMS: Final = {TopicSum.ALL: "a", TopicSum.OTHERS: "o"}  # their fields in a step
PIECE: Final = 360  # steps that a call reads: about 2 ms of the store's time
SCOPED_PIECE: Final = 24  # the same if it adds up topics
FIGURES: Final = re.compile(rb"(\d*)," * 11)
_numbers: Callable[[Counts], tuple[int, ...]] = attrgetter(*(each.name for each in fields(Counts)))
RATES: Final = [each.name for each in fields(TopicRates)]
MARK: Final = re.compile(r"(\d+) (\w+) (\d+) (.*)", re.DOTALL)


class HistorySteps(NamedTuple):
    """Consecutive steps, the first at `start_ms`; and the marks since then, newest first."""

    start_ms: int
    steps: list[HistoryStep | None]
    marks: list[HistoryMark]


class HistoryStore:
    """One method per script. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def add(self, rows: Sequence[Row], marks: Sequence[Mark] = ()) -> bool:
        """Add to the current steps, all or nothing. Returns whether the caller should count the jobs in the store."""
        args: list[Any] = [MOST_TOPICS, len(RINGS)]
        for ring in RINGS.values():
            args += ring
        args.append(len(marks))
        for mark in marks:
            args += mark
        for row in rows:
            args += (_field(row.topic), _packed(row))
        return (await self._bucket.run("add_history", args)).results == [1]

    async def read(self, ring: Ring, topic: str | None, scope: Scope) -> HistorySteps:
        """All steps of a ring, of a topic or of all topics (None); the last one is the current one."""
        piece = PIECE if topic is not None or scope is EVERYWHERE else SCOPED_PIECE
        last: int | str = ""
        packed: list[bytes] = []
        raw_marks: list[bytes] = []
        while len(packed) < ring.places:
            back = ring.places - 1 - len(packed)
            what = [*ring, MOST_TOPICS, back, min(piece, back + 1), last, int(not packed)]
            if topic is not None:
                what.append(topic)
            reply = await self._bucket.run("history", what, scope)
            last, found, raw = reply.results
            packed += found
            raw_marks += raw  # only in the first answer
        start_ms = (int(last) - ring.places + 1) * ring.step_ms
        marks = [mark for mark in map(_mark, raw_marks) if mark and mark.at >= start_ms / 1000]
        return HistorySteps(start_ms, [_step(each) for each in packed], marks)

    async def rates(self, topics: Sequence[str]) -> dict[str, TopicRates]:
        """How often things happened within the last minute, of those topics of which that is known."""
        found: dict[str, TopicRates] = {}
        for piece in batched(topics, TOPICS_PER_CALL):
            what = [*FINEST, MOST_TOPICS, 1, 2, "", 0, *piece]
            reply = await self._bucket.run("history", what)
            steps = [_step(packed) for packed in reply.results[1]]
            elapsed = reply.now_ms % FINEST.step_ms / FINEST.step_ms
            rows = zip(piece, steps[: len(piece)], steps[len(piece) :], strict=True)
            for topic, before, current in rows:
                if rates := _rates(before, current, elapsed):
                    found[topic] = rates
        return found


def _field(topic: str | TopicSum) -> str:
    return f"t{topic}" if isinstance(topic, str) else SUMS[topic]


def _packed(row: Row) -> str:
    depth = row.depth or ("", "", "", "")
    return "".join(f"{number}," for number in (*_numbers(row.counts), *depth))


def _step(packed: bytes) -> HistoryStep | None:
    """Parse a step; None if it is unreadable."""
    parts = FIGURES.fullmatch(packed)
    if not parts:
        return None
    *counts, delayed, ready, reserved, buried = (int(part or 0) for part in parts.groups())
    depth = (delayed, ready, reserved, buried) if parts[FIGURES.groups] else None
    return HistoryStep(Counts(*counts), depth)


def _mark(raw: bytes) -> HistoryMark | None:
    """Parse a mark; None if it is not one."""
    parts = MARK.fullmatch(text(raw))
    if not parts:
        return None
    kind, server = parts[2], parts[4]
    by, what = server.split("\n", 1) if kind == ACTION and "\n" in server else ("", "")
    server = "" if kind == ACTION else server
    return HistoryMark(int(parts[1]) / 1000, kind, int(parts[3]) / 1000, server, by, what)


def _rates(
    before: HistoryStep | None, current: HistoryStep | None, elapsed: float
) -> TopicRates | None:
    """The rates of about the last minute; None if both steps are unknown.

    `elapsed` is the part of the current step of the FINEST ring that is over. What happened in the step before it is
    taken as spread evenly.
    """
    if before is None and current is None:
        return None
    old, new = (step.counts if step else NO_COUNTS for step in (before, current))
    counted = ((getattr(old, name), getattr(new, name)) for name in RATES)
    step_s = FINEST.step_ms / 1000
    return TopicRates(*(round((was * (1 - elapsed) + now) / step_s, 3) for was, now in counted))
