"""The verbs on jobs, one row each: `Store.run(PUSH, jobs, scope)`.

A new verb is a row here below the class of its items, its script, and a method of engine/jobs.py. Items that more than
engine/jobs.py makes are in types.py.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from delayqueue.domain.job import MAX_DUE_S, USUAL_PRIORITY, Job, PolledTopic
from delayqueue.domain.push_fields import KEPT
from delayqueue.errors import Code
from delayqueue.store.call import Reply, job_view, or_none, reservation
from delayqueue.store.record import text
from delayqueue.store.scripts import CALLS_WORD
from delayqueue.store.types import (
    DONE,
    JobView,
    Moved,
    Plan,
    Postponement,
    Pushed,
    Recording,
    Reservation,
    Taken,
)

# The due time of jobs that an import has not settled yet; no client can ask for it.
STAGED_DUE_MS: Final = MAX_DUE_S * 1000 + 1
LOST: Final = int(Code.UNAVAILABLE)
# json.dumps with these would make one at each call
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Verb(Generic[Item, Result]):
    """How to call a script with items, each of one job, and what it answers."""

    script: str
    # the script's arguments
    pack: Callable[[Sequence[Item]], list[Any]]
    # a result for each of the first items, at least one: those that the script did before it had done enough
    read: Callable[[Sequence[Item], Reply], Sequence[Result]]
    # the result of items whose bucket does not answer while others do; None = the whole request fails
    lost: Result | None = None
    # of an item, if it can have many bytes
    large_part: Callable[[Item], str | bytes] | None = None
    id_of: Callable[[Any], str] = attrgetter("id")


def dump_topics(topics: Iterable[PolledTopic]) -> list[str]:
    """The topics that a poll asks for, as the scripts take them."""
    return [topic if isinstance(topic, str) else CALLS_WORD for topic in topics]


def dump_rows(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """The parts of all rows as the scripts take them: "" for None."""
    return ["" if part is None else part for part in chain.from_iterable(rows)]


def dump_text(written: str | None) -> str:
    """A text that may be missing, as the scripts take it: "" is no text, "=" an empty one."""
    return "" if written is None else f"={written}"


def dump_unreserved(created_ms: int | None) -> str:
    """Instead of a nonce: a job that nobody holds; if the time is not None, only the one that was pushed then."""
    return "-" if created_ms is None else f"-{created_ms}"


def dump_due(delay_ms: int, due_ms: int | None) -> str:
    """A delay or a due time as the scripts take it; the due time counts if it is not None."""
    return f"+{delay_ms}" if due_ms is None else f"={due_ms}"


def dump_plan(plan: Plan) -> tuple[str, int | str]:
    """A new due time and a new priority as the scripts take them; "" = each job keeps its own."""
    priority = "" if plan.priority is None else plan.priority
    if plan.by_ms is not None:
        return f"~{plan.by_ms}", priority
    if plan.delay_ms is None and plan.due_ms is None:
        return "", priority
    return dump_due(plan.delay_ms or 0, plan.due_ms), priority


def dump_options(job: Job) -> str:
    """The optional fields that the scripts or the consumer need, as JSON; "" if there are none."""
    options: dict[str, object] = {}
    if job.priority != USUAL_PRIORITY:
        options["priority"] = job.priority  # first (`with_option` in _record.lua)
    if job.tags:
        options["tags"] = job.tags
    if job.retry_ms is not None:
        options["retry"] = job.retry_ms
    if job.texts:
        options |= {kept_as: job.texts[name] for name, kept_as in KEPT.items() if name in job.texts}
    if job.call is not None:
        options["call"] = job.call.written
    if job.max_wait_ms:
        options["max_wait"] = job.max_wait_ms
    return _encoder.encode(options) if options else ""


def dump_schedule(retry_ms: tuple[int, ...] | None) -> str:
    """A schedule that is not the job's own, as a script takes it: the delays, with commas; "" = none."""
    return "" if retry_ms is None else f",{','.join(map(str, retry_ms))},"


def _codes(_: Sequence[object], reply: Reply) -> Sequence[int]:
    return reply.results


BURIED: Final = -1  # instead of the time of a job that is delivered again


def _moved(_: Sequence[object], reply: Reply) -> list[Moved]:
    """What each job is now, from a code and a time for each."""
    return [
        Moved(code, or_none(time), not code and time == BURIED)
        for code, time in zip(reply.results, reply.times, strict=True)
    ]


def _jobs(jobs: Sequence[Job]) -> list[Any]:
    args: list[Any] = []
    for job in jobs:
        due = dump_due(job.delay_ms, job.due_ms)
        args += (job.id, job.topic, due, job.ttr_ms, job.expire_ms, job.retain_ms)
        args += (job.if_exists, int(job.is_strict), dump_options(job), job.body)
    return args


def _pushed(_: Sequence[Job], reply: Reply) -> list[Pushed]:
    if not any(reply.results):  # all are OK
        return [DONE] * len(reply.results)
    return [_outcome(result) for result in reply.results]


def _outcome(result: int | Sequence[Any]) -> Pushed:
    if isinstance(result, int):
        return DONE if result == Code.OK else Pushed(result)
    code, *more = result
    return Pushed(code, full=(*more,)) if code == Code.TOPIC_FULL else Pushed(code, text(*more))


# Add or replace jobs.
PUSH: Final = Verb[Job, Pushed]("push", _jobs, _pushed, Pushed(LOST), large_part=attrgetter("body"))


class Ending(NamedTuple):
    """A job to finish or delete; nonce None = in any state."""

    id: str
    nonce: str | None
    message: str


# End jobs whose work is done, or that are no longer wanted.
FINISH: Final = Verb[Ending, int]("finish", dump_rows, _codes, LOST)
DELETE: Final = Verb[Ending, int]("delete", dump_rows, _codes, LOST)


class Discard(NamedTuple):
    """A job to delete unless it is reserved, or was pushed at another time than `created_ms`; None = at any time."""

    id: str
    created_ms: int | None = None


# Delete jobs that nobody holds.
DISCARD: Final = Verb[Discard, int](
    "delete",
    lambda items: dump_rows([(one.id, dump_unreserved(one.created_ms), "") for one in items]),
    _codes,
    LOST,
)


class Burial(NamedTuple):
    """A job to bury. nonce None = in any state; priority None = keep its own."""

    id: str
    nonce: str | None
    message: str
    priority: int | None = None


# Set jobs aside until somebody looks at them.
BURY: Final = Verb[Burial, int]("bury", dump_rows, _codes)


class Claim(NamedTuple):
    """A job to reserve by its id, with this nonce."""

    id: str
    nonce: str


def _reserved(claims: Sequence[Claim], reply: Reply) -> list[Reservation]:
    return [
        reservation(claim.id, claim.nonce, result)
        for claim, result in zip(claims, reply.results, strict=False)
    ]


# Reserve jobs that are not reserved, in any other state.
RESERVE: Final = Verb[Claim, Reservation]("reserve", dump_rows, _reserved)


class Release(NamedTuple):
    """A reserved job to give back; delay None = by its schedule, else by `retry_ms`, else after the fallback."""

    id: str
    nonce: str | None  # None = any reservation
    delay_ms: int | None
    message: str
    fallback_ms: int | None = None
    priority: int | None = None  # None = keep its own
    retry_ms: tuple[int, ...] | None = None


# Give reserved jobs back: the time is the new due time, None if it was buried or has expired.
RELEASE: Final = Verb[Release, Moved](
    "release",
    lambda items: dump_rows([(*one[:-1], dump_schedule(one.retry_ms)) for one in items]),
    _moved,
)


class Touch(NamedTuple):
    """A reservation to extend. nonce None = any reservation; ttr None = the job's own.

    Without `percent` and `message` its progress stays as it is; without `percent`, the percentage does.
    """

    id: str
    nonce: str | None
    ttr_ms: int | None
    percent: float | None = None
    message: str | None = None


def _touches(touches: Sequence[Touch]) -> list[Any]:
    return dump_rows(
        [
            (
                *one[:3],
                None if one.percent is None else round(one.percent * 100),
                dump_text(one.message if one.percent is None else one.message or ""),
            )
            for one in touches
        ]
    )


# Extend reservations: the time is the new deadline.
TOUCH: Final = Verb[Touch, Moved]("touch", _touches, _moved)


def _recordings(recordings: Sequence[Recording]) -> list[Any]:
    return dump_rows(
        [(*one[:3], int(one.succeeded), *one[4:8], dump_text(one.ending)) for one in recordings]
    )


# Record subscribers' results for jobs that are reserved for them, and end jobs with the last one.
RECORD: Final = Verb[Recording, int]("record", _recordings, _codes)


# Give reserved jobs back until a subscriber may be called again: the time is then, None if it was buried.
POSTPONE: Final = Verb[Postponement, Moved](
    "postpone",
    lambda items: dump_rows([(*one[:3], json.dumps(one.subscribers)) for one in items]),
    _moved,
)


class Reschedule(NamedTuple):
    """A job whose due time or priority changes."""

    id: str
    plan: Plan


# Give jobs that are not reserved a new due time, a new priority, or both.
RESCHEDULE: Final = Verb[Reschedule, Moved](
    "reschedule",
    lambda items: dump_rows([(one.id, *dump_plan(one.plan)) for one in items]),
    _moved,
    Moved(LOST, None),
)


class Kick(NamedTuple):
    """A job to make ready now, with another body if `body` is not None."""

    id: str
    body: str | None = None


# Make buried or delayed jobs ready now.
KICK: Final = Verb[Kick, int](
    "kick",
    lambda kicks: ["", "", 0, *dump_rows([(one.id, dump_text(one.body)) for one in kicks])],
    _codes,
    LOST,
    large_part=lambda kick: kick.body or "",
)


class Requeue(NamedTuple):
    """A reservation to undo. The message is kept with the job, "" = none; a job that was buried is buried again.

    `was_told`: the client had got the job, and may have begun with it. With `delay_ms` the job is delayed that long.
    """

    id: str
    nonce: str
    message: str = ""
    was_told: bool = False
    was_buried: bool = False
    delay_ms: int | None = None


# Undo reservations: back to the head of the list, the last one in front of all, or where RESERVE found them; the
# attempt is not counted. The result is whether it is lost.
REQUEUE: Final = Verb[Requeue, bool](
    "requeue",
    lambda items: dump_rows(
        [
            (
                each.nonce,
                each.id,
                each.message,
                int(each.was_told),
                int(each.was_buried),
                each.delay_ms,
            )
            for each in items
        ]
    ),
    lambda _, reply: [False] * reply.looked,
    lost=True,
)


class Holding(NamedTuple):
    """A job that was handed out, the name of the worker that got it, and the deadline that was found last, 0 = none."""

    id: str
    topic: str
    nonce: str
    worker: str
    deadline_ms: int = 0


class NotHeld(Enum):
    """Why a job has no deadline in a reservation."""

    ENDED = -1
    GIVEN_BACK = -2  # the job is there, but not in this reservation
    UNKNOWN = LOST


_NOT_HELD: Final[dict[int, int | NotHeld]] = {each.value: each for each in NotHeld}


def _held(_: Sequence[Holding], reply: Reply) -> list[int | NotHeld]:
    return [_NOT_HELD.get(result, result) for result in reply.results]


# Note which workers hold jobs. The result is the reservation's deadline in ms, if it has one.
HOLD: Final = Verb[Holding, int | NotHeld]("hold", dump_rows, _held, NotHeld.UNKNOWN)


# Undo takes; a job that was pushed with the same id since stays. The result is whether it is lost.
RESTORE: Final = Verb[Taken, bool](
    "restore",
    lambda jobs: dump_rows([(job.raw_id, job.record, job.run, job.was_first) for job in jobs]),
    lambda _, reply: [code == LOST for code in reply.results],
    lost=True,
    large_part=attrgetter("record"),
)


class Settlement(NamedTuple):
    """The due time of a job that an import has staged; None = drop it."""

    id: str
    due_ms: int | None


# Give staged jobs their due times, or drop them.
SETTLE: Final = Verb[Settlement, int](
    "settle", lambda items: [STAGED_DUE_MS, *dump_rows(items)], _codes
)


def _view(job_id: str | bytes, answer: Sequence[bytes]) -> JobView | None:
    return (
        job_view(text(job_id) if isinstance(job_id, bytes) else job_id, *answer) if answer else None
    )


# All about jobs, None for an unknown id.
GET: Final = Verb[str | bytes, JobView | None](
    "get",
    list,
    lambda ids, reply: list(map(_view, ids, reply.results)),
    id_of=str,
)
# Have the ends of jobs announced. The result is () for a job that is yet to end, or all about one that has ended, as
# GET tells it: a buried one has ended.
AWAIT_END: Final = Verb[str, Sequence[JobView | None]](
    "await_end",
    list,
    lambda ids, reply: [
        () if answer == 0 else (_view(job_id, answer),)
        for job_id, answer in zip(ids, reply.results, strict=False)
    ],
    id_of=str,
)
# How many bytes GET would read.
WEIGH: Final = Verb[str, int]("weigh", list, _codes, id_of=str)
