"""Parses the scripts' answers."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from delayqueue.domain.job import JobView, Reserved, State
from delayqueue.domain.limit import Limit
from delayqueue.domain.receipt import receipt_for
from delayqueue.errors import Code
from delayqueue.store.bucket.record import ended_view, live_view, reserved_job, text
from delayqueue.store.types import Arrivals, Change, Moved, Reservation, TopicCounts

BURIED = -1  # instead of the time of a job that is delivered again


def or_none(number: int) -> int | None:
    """A script's number; None if it is negative."""
    return None if number < 0 else number


def change(ready: Sequence[Any], next_due_ms: int = -1) -> Change:
    """What became ready, given as topic, count, topic, count, ...; and ms until something is due."""
    arrivals: Arrivals = [(text(ready[i]), ready[i + 1]) for i in range(0, len(ready), 2)]
    return Change(arrivals, or_none(next_due_ms))


def moved(codes: list[int], times: list[int]) -> list[Moved]:
    """A code and a time for each job."""
    return [
        Moved(code, or_none(time), code == Code.OK and time == BURIED)
        for code, time in zip(codes, times, strict=True)
    ]


def reserved(found: Sequence[Any], nonce: str) -> list[Reserved]:
    """The jobs that `pop` reserved with this nonce, given as id, record, attempt, ..."""
    return [
        reserved_job(found[i], found[i + 1], found[i + 2], receipt_for(nonce, text(found[i])))
        for i in range(0, len(found), 3)
    ]


def reservation(
    nonce: str,
    code: int,
    raw_id: bytes = b"",
    record: bytes = b"",
    attempt: int = 0,
    was_buried: int = 0,
) -> Reservation:
    """The answer of `reserve` for a job."""
    if code != Code.OK:
        return Reservation(code, None)
    job = reserved_job(raw_id, record, attempt, receipt_for(nonce, text(raw_id)))
    job.was_buried = was_buried == 1
    return Reservation(code, job)


def topic_counts(answer: int | Sequence[Any]) -> TopicCounts:
    """The counts and settings of a topic."""
    if isinstance(answer, int):
        return TopicCounts(answer, 0, 0, 0, None, None, None, 0)
    delayed, ready, reserved, buried, oldest, paused, limit, urgent = answer
    in_force = Limit.read(json.loads(limit)) if limit else None
    return TopicCounts(
        delayed, ready, reserved, buried, or_none(oldest), or_none(paused), in_force, urgent
    )


def settings_of(written: bytes) -> dict[str, Any]:
    """A topic's settings; {} if they are unreadable."""
    with suppress(ValueError):
        settings: Any = json.loads(written)
        return settings if isinstance(settings, dict) else {}
    return {}


def view(job_id: str, state: bytes, record: bytes, run: bytes = b"") -> JobView | None:
    """All about a job, from its state, record and run; None if those are unreadable."""
    with suppress(ValueError):
        if state == b"ended":
            return ended_view(job_id, record)
        return live_view(job_id, State(state.decode()), record, run)
    return None
