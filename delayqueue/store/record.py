"""The packed values of the hashes: how Python reads what the scripts write (scripts/_record.lua).

Numbers are in a header, everything else follows as it is, by length, so it may contain any byte.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import methodcaller
from struct import Struct
from typing import Any, Final, NamedTuple

from delayqueue.answers.answer import LEFT_OUT, seconds
from delayqueue.answers.jobs import Attempt, HeldBy, Progress, SubscriberResult
from delayqueue.domain.call import Call
from delayqueue.domain.job import USUAL_PRIORITY, Reserved, State
from delayqueue.domain.push_fields import KEPT, POPPED
from delayqueue.store.types import JobView

# the start of a record, and the length of its header
PLAIN, FULL = b"0", b"1"
PLAIN_BYTES, FULL_BYTES = 22, 41
# "!!!!!!!", "!!!!!", "!!" as digits, as in _record.lua
TIME_ZERO, SHORT_TIME_ZERO, LENGTH_ZERO = 17734604157303, 2189457303, 3003
KNOWN_BYTES: Final = 128  # of options that are remembered

# of a note that is no remark but how far an attempt is (_run.lua): what it has instead of the time of its beginning
UNKNOWN_PROGRESS, LATEST_PROGRESS = 1, 10_002

# Lua's numbers are exact up to 15 digits, too
_digits: Final = Struct("19B").unpack_from
_RUN = re.compile(rb"(\d{1,15}) (\d{1,15}) (\S+) (\d{1,15})(?: (\d{1,15}))?\n")
_NOTE = re.compile(rb"(\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) ")
_ENDED = re.compile(rb"(finished|cancelled|expired|dropped) (\d{1,15}) (\d{1,15}) (\d{1,15})\n")
# what other people's JSON, and the numbers in it, can raise
_UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)


# Bytes of the store as text. Jobs pushed over HTTP are UTF-8; anything else is shown as far as possible.
text: Final[Callable[[bytes], str]] = methodcaller("decode", "utf-8", "replace")


class Record(NamedTuple):
    """The value of a job in `T:job`. Bytes are as pushed."""

    due_ms: int
    created_ms: int
    ttr_ms: int
    expire_ms: int  # 0 = never
    retain_ms: int
    topic: bytes
    options: bytes
    body: bytes


def parse_record(raw: bytes) -> Record:
    """Parse a record. Raises ValueError if it is not one."""
    kind, length = raw[:1], len(raw)
    expire_ms = retain_ms = options_length = 0
    if kind == PLAIN and length >= PLAIN_BYTES:
        topic_at = PLAIN_BYTES
    elif kind == FULL and length >= FULL_BYTES:
        topic_at = FULL_BYTES
        expire_ms, retain_ms, options_length = _numbers(raw, PLAIN_BYTES)
    else:
        raise ValueError("not a record")
    due_ms, created_ms, ttr_ms = _numbers(raw, 1)
    options_at = topic_at + raw[20] * 90 + raw[21] - LENGTH_ZERO
    body_at = options_at + options_length
    if not topic_at <= options_at <= body_at <= length:
        raise ValueError("the lengths in a record are wrong")
    topic, options, body = raw[topic_at:options_at], raw[options_at:body_at], raw[body_at:]
    return Record(due_ms, created_ms, ttr_ms, expire_ms, retain_ms, topic, options, body)


def _numbers(raw: bytes, at: int) -> tuple[int, int, int]:
    """Two times and a shorter number, which stand there side by side, in digits of base 90."""
    # for each job that is handed out: a loop takes twice as long
    a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s = _digits(raw, at)  # noqa: E741
    return (
        (((((a * 90 + b) * 90 + c) * 90 + d) * 90 + e) * 90 + f) * 90 + g - TIME_ZERO,
        (((((h * 90 + i) * 90 + j) * 90 + k) * 90 + l) * 90 + m) * 90 + n - TIME_ZERO,
        (((o * 90 + p) * 90 + q) * 90 + r) * 90 + s - SHORT_TIME_ZERO,
    )


@dataclass(slots=True)
class Run:
    """The value of a job in `T:run`."""

    attempt: int
    started_ms: int
    results: tuple[SubscriberResult, ...]
    notes: tuple[Attempt, ...]
    progress: Progress | None  # of the last attempt


def parse_run(raw: bytes) -> Run:
    """Parse a run; all zero for a job that was never handed out (b"")."""
    head = _RUN.match(raw)
    if head is None:
        return Run(0, 0, (), (), None)
    notes_at = head.end() + int(head[5] or 0)
    run = Run(
        attempt=int(head[1]),
        started_ms=int(head[4]),
        results=tuple(_parse_results(raw[head.end() : notes_at])),
        notes=(),
        progress=None,
    )
    _parse_notes(run, raw, notes_at)
    return run


def _parse_results(raw: bytes) -> list[SubscriberResult]:
    """Unreadable results count as none, as in the scripts."""
    with suppress(*_UNREADABLE, KeyError, AttributeError):
        return [
            SubscriberResult(
                subscriber=str(result["name"]),
                status="succeeded" if result["ok"] else "failed",
                attempts=int(result["attempts"]),
                started=int(result["started"]) / 1000,
                ended=int(result["ended"]) / 1000,
                due=None if result.get("due") is None else int(result["due"]) / 1000,
                message=str(result["message"]),
            )
            for result in (json.loads(raw) if raw else ())
        ]
    return []


def _parse_notes(run: Run, raw: bytes, at: int) -> None:
    notes: list[Attempt] = []
    worker = ""
    while head := _NOTE.match(raw, at):
        at = head.end() + int(head[4])
        message = text(raw[head.end() : at])
        attempt, started_ms, ended_ms = (int(head[place]) for place in (1, 2, 3))
        if attempt == ended_ms == 0:  # _run.lua: who had the next one
            worker = message
        elif not attempt and UNKNOWN_PROGRESS <= started_ms <= LATEST_PROGRESS:
            hundredths = started_ms - UNKNOWN_PROGRESS - 1
            percent = None if hundredths < 0 else hundredths / 100
            run.progress = Progress(percent, message, ended_ms / 1000)
        else:
            if attempt not in {0, run.attempt}:
                run.progress = None  # another attempt has begun since
            started, ended = started_ms / 1000, ended_ms / 1000
            notes.append(Attempt(attempt, started, ended, message, worker or LEFT_OUT))
            worker = ""
    run.notes = tuple(notes)


def reserved_job(job_id: str, raw: bytes, attempt: int, nonce: str) -> Reserved:
    """A job that `pop` reserved, from its record."""
    record = parse_record(raw)
    topic, due_ms, ttr_ms = text(record.topic), record.due_ms, record.ttr_ms
    # by position, and the rest only if it is there: twelve keywords take twice as long
    job = Reserved(topic, job_id, record.body, attempt, nonce, due_ms, ttr_ms)
    job.created_ms = record.created_ms
    if record.options:
        options = options_of(record)
        job.due_ms = own_due_ms(record, options)
        job.retry_ms = _retry_ms(options["retry"]) if "retry" in options else None
        job.texts = _texts(options, POPPED)
        job.tags = tuple(options.get("tags", ()))
        job.call = _call(options["call"]) if "call" in options else None
    return job


def live_view(job_id: str, state: State, raw: bytes, raw_run: bytes) -> JobView:
    """All about a job that has not ended."""
    record, run = parse_record(raw), parse_run(raw_run)
    options = options_of(record)
    return JobView(
        topic=text(record.topic),
        id=job_id,
        body=record.body,
        ttr_ms=record.ttr_ms,
        due_ms=own_due_ms(record, options),
        ready_ms=record.due_ms,
        state=state,
        attempt=run.attempt,
        tags=tuple(options.get("tags", ())),
        message=run.notes[-1].message if run.notes else "",
        created_ms=record.created_ms,
        started_ms=run.started_ms or None,
        ended_ms=None,
        attempts=tuple(note for note in run.notes if note.attempt),
        remarks=tuple(note.message for note in run.notes if not note.attempt),
        results=run.results,
        priority=options.get("priority", USUAL_PRIORITY),
        retry_ms=_retry_ms(options["retry"]) if "retry" in options else None,
        retain_ms=record.retain_ms,
        expire_ms=record.expire_ms,
        call=_call(options["call"]) if "call" in options else None,
        texts=_texts(options, KEPT),
        progress=run.progress,
    )


def _texts(options: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, str]:
    """The texts of a push that a record has, of those that are wanted."""
    return {name: options[kept_as] for name, kept_as in wanted.items() if options.get(kept_as)}


def held_by(raw_id: bytes, state: bytes, until_ms: bytes) -> HeldBy:
    """What holds up a ready job, from what a script tells of it (_turns.lua)."""
    until = seconds(int(until_ms)) if until_ms else None
    return HeldBy(text(raw_id), State(state.decode()), until)


def own_due_ms(record: Record, options: Mapping[str, Any]) -> int:
    """When a job is due by the client's will: its record has a later time while it is put off (requeue.lua)."""
    match options.get("put_off"):
        case [int(due_ms), record.due_ms]:
            return due_ms
    return record.due_ms


def options_of(record: Record) -> Mapping[str, Any]:
    """The options of a record.

    The scripts set a record aside if its options are unreadable; options that only Python cannot parse count as none.
    """
    written = record.options
    return _known_options(written) if len(written) <= KNOWN_BYTES else _parse_options(written)


def _parse_options(written: bytes) -> Mapping[str, Any]:
    if not written:
        return {}
    with suppress(*_UNREADABLE):
        options: Any = json.loads(text(written))
        if isinstance(options, dict):
            return options
    return {}


# Many jobs have the same options, of a group or a priority: the last short ones are remembered, as in the scripts.
_known_options = lru_cache(128)(_parse_options)


def group_of(raw: bytes | None) -> str | None:
    """The group of a record; None if it has none, is none or cannot be read."""
    with suppress(ValueError, TypeError):
        group: Any = options_of(parse_record(raw)).get("group") if raw else None
        return group if isinstance(group, str) else None
    return None


def _retry_ms(written: Any) -> tuple[int, ...] | None:
    """The schedule; None if there is none that can be read."""
    with suppress(*_UNREADABLE):
        return tuple(map(int, written))
    return None


def _call(written: Any) -> Call | None:
    """The call; None if it cannot be read."""
    with suppress(*_UNREADABLE):
        return Call.read(written)
    return None


def ended_view(job_id: str, raw: bytes) -> JobView:
    """All about a job that has ended and is kept (`retain`). Raises ValueError if it is unreadable."""
    head = _ENDED.match(raw)
    if head is None:
        raise ValueError("not the record of a job that ended")
    run_at = head.end() + int(head[3])
    record_at = run_at + int(head[4])
    view = live_view(job_id, State(head[1].decode()), raw[record_at:], raw[run_at:record_at])
    said = text(raw[head.end() : run_at])
    # the message of an earlier failure does not belong to a job that is finished
    view.message = said if view.state is State.FINISHED else said or view.message
    view.ended_ms = int(head[2])
    if view.state is State.FINISHED:
        view.progress = None
    return view
