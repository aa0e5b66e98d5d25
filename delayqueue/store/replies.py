"""Parses the scripts' answers."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from delayqueue.domain.job import JobView, Reserved, State
from delayqueue.domain.limit import Limit
from delayqueue.domain.receipt import receipt_for
from delayqueue.store.record import ended_view, live_view, reserved_job, text
from delayqueue.store.types import (
    NO_CHANGE,
    SOON_MS,
    BucketCounts,
    Change,
    Moved,
    Reservation,
)

BURIED = -1  # instead of the time of a job that is delivered again

# What happened to jobs of a topic: an event of metrics.EVENTS, the topic, and the number and times of count_event.
JobEvent = tuple[str, str, int, Sequence[int]]


class Reply(NamedTuple):
    """A script's answer. The script's head says what `results` and `times` hold."""

    results: list[Any]  # one for each item, or what this verb has to tell
    times: Sequence[int]  # ms, for each item; () if the verb has none
    looked: int  # how many items are done
    change: Change
    events: Sequence[JobEvent]
    now_ms: int  # the store's time


def or_none(number: int) -> int | None:
    """A script's number; None if it is negative."""
    return None if number < 0 else number


def read_reply(answer: list[Any]) -> Reply:
    """Parse the answer of any script (end_call in _call.lua)."""
    now_ms, next_due_ms, looked, results, times, topics = answer[:6]
    times_at = 6 + results
    ready_at = times_at + times
    events_at = ready_at + 2 * topics
    change = NO_CHANGE
    if topics:
        ready = [(text(answer[i]), answer[i + 1]) for i in range(ready_at, events_at, 2)]
        change = Change(ready, or_none(next_due_ms))
    elif next_due_ms >= 0:
        change = Change([], next_due_ms, next_due_ms < SOON_MS)
    events: list[JobEvent] = []
    for at in range(events_at, len(answer), 4):
        event, topic, number, times_ms = answer[at : at + 4]
        events.append((event.decode(), text(topic), number, times_ms or ()))
    return Reply(answer[6:times_at], answer[times_at:ready_at], looked, change, events, now_ms)


def moved(reply: Reply) -> list[Moved]:
    """What each job is now, from a code and a time for each."""
    return [
        Moved(code, or_none(time), not code and time == BURIED)
        for code, time in zip(reply.results, reply.times, strict=True)
    ]


def reserved(found: Sequence[Any], nonce: str, revision: str) -> list[Reserved]:
    """The jobs that `pop` reserved with this nonce, at this revision, given as id, record, attempt, ..."""
    jobs = []
    for at in range(0, len(found), 3):
        raw_id, record, attempt = found[at : at + 3]
        job_id = text(raw_id)
        job = reserved_job(job_id, record, attempt, receipt_for(nonce, job_id))
        job.revision = revision
        jobs.append(job)
    return jobs


def reservation(job_id: str, nonce: str, result: int | Sequence[Any]) -> Reservation:
    """The result of `reserve` for a job."""
    if isinstance(result, int):
        return Reservation(result, None)
    code, record, attempt, was_buried = result
    job = reserved_job(job_id, record, attempt, receipt_for(nonce, job_id))
    job.was_buried = was_buried == 1
    return Reservation(code, job)


def topic_counts(answer: int | Sequence[Any]) -> BucketCounts:
    """The counts and settings of a topic."""
    if isinstance(answer, int):
        return BucketCounts(answer, 0, 0, 0, None, None, None, 0)
    delayed, ready, reserved, buried, oldest, paused, limit, urgent, called, *groups = answer
    in_force = Limit.read(json.loads(limit)) if limit else None
    return BucketCounts(
        *(delayed, ready, reserved, buried, or_none(oldest), or_none(paused), in_force),
        *(urgent, called, *map(or_none, groups)),
    )


def settings_of(written: bytes) -> dict[str, Any]:
    """A topic's settings; {} if they are unreadable."""
    with suppress(ValueError):
        settings: Any = json.loads(written)
        return settings if isinstance(settings, dict) else {}
    return {}


def view(
    job_id: str, state: bytes, record: bytes, run: bytes = b"", worker: bytes = b""
) -> JobView | None:
    """All about a job, from its state, record, run and the worker that holds it; None if those are unreadable."""
    with suppress(ValueError):
        if state == b"ended":
            return ended_view(job_id, record)
        found = live_view(job_id, State(state.decode()), record, run)
        found.worker = text(worker)
        return found
    return None
