"""Jobs as a Python program sees them. Times are unix seconds, lengths of time are seconds, both with fractions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from delayqueue.client.payload import Payload, body_of
from delayqueue.domain.job import USUAL_PRIORITY, IfExists, State
from delayqueue.domain.retry import duration_ms

Seconds: TypeAlias = float | str | timedelta  # a text is like "500ms", "15s", "10m", "1.5h", "1d"
Moment: TypeAlias = float | datetime
# a preset's name, the delays after each failure, or {"max": 5, "base": "2s", "factor": 3, "cap": "1m", "jitter": 0.1}
Retry: TypeAlias = str | Sequence[float | str | timedelta] | Mapping[str, Any]
# where something of the same id or name is there already
OnConflict: TypeAlias = IfExists | Literal["replace", "keep", "fail"]
AnyState: TypeAlias = (
    State | Literal["delayed", "ready", "reserved", "buried", "finished", "cancelled", "expired"]
)

DEFAULT_TTR_S = 60


def seconds(length: Seconds) -> float:
    """A length of time as a number: a whole one is an int, as the server takes no 60.0 for that.

    Raises ValueError if a text is none.
    """
    if isinstance(length, str):
        number = duration_ms(length) / 1000
    else:
        number = length.total_seconds() if isinstance(length, timedelta) else length
    return int(number) if float(number).is_integer() else number


def unix(moment: Moment) -> float:
    """A time as unix seconds; a datetime without a zone is local time."""
    return moment.timestamp() if isinstance(moment, datetime) else moment


def retry_request(retry: Retry) -> dict[str, Any]:
    """A retry schedule as the server takes it."""
    if isinstance(retry, str):
        return {"preset": retry}
    if isinstance(retry, Mapping):
        return dict(retry)
    return {
        "delays": [
            delay.total_seconds() if isinstance(delay, timedelta) else delay for delay in retry
        ]
    }


def new_id() -> str:
    """An id that no other job has."""
    return uuid.uuid4().hex


@dataclass(slots=True, kw_only=True)
class Job:
    """A job to push; see docs/api.md for the fields. Due at once without `delay` and `due`."""

    topic: str
    body: Payload = ""
    id: str = field(default_factory=new_id)
    delay: Seconds = 0
    due: Moment | None = None
    ttr: Seconds = DEFAULT_TTR_S
    tags: Sequence[str] = ()
    retry: Retry | None = None
    if_exists: OnConflict | None = None
    retain: Seconds | None = None
    expire: Seconds | None = None
    priority: int | None = None
    traceparent: str | None = None

    def request(self) -> dict[str, Any]:
        """The job as /push takes it."""
        request: dict[str, Any] = {"topic": self.topic, "id": self.id, "body": body_of(self.body)}
        request["ttr"] = seconds(self.ttr)
        if self.due is None:
            request["delay"] = seconds(self.delay)
        else:
            request["due"] = unix(self.due)
        options = {
            "tags": list(self.tags) or None,
            "retry": None if self.retry is None else retry_request(self.retry),
            "if_exists": self.if_exists and str(self.if_exists),
            "retain": None if self.retain is None else seconds(self.retain),
            "expire": None if self.expire is None else seconds(self.expire),
            "priority": self.priority,
            "traceparent": self.traceparent,
        }
        return request | {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ReservedJob:
    """A job that was handed to this program: finish it within its TTR, or it comes again.

    `attempt` counts from 1; `receipt` proves this very reservation; `traceparent` is the trace that pushed it.
    """

    topic: str
    id: str
    body: str
    attempt: int
    receipt: str
    due: float
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class TakenJob:
    """A job that was handed to this program and is gone from the queue."""

    topic: str
    id: str
    body: str
    due: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """A reservation that failed."""

    attempt: int
    started: float
    ended: float
    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """How a subscriber fared with a job: "succeeded" or "failed". `due`: when it may be called again."""

    subscriber: str
    status: str
    attempts: int
    started: float
    ended: float
    due: float | None
    message: str


@dataclass(frozen=True, slots=True)
class JobDetails:
    """All that is known of a job; a time is None where it was not reached.

    The last three are told where they are asked for, None = it has none: its own retry schedule, for how long it is
    kept after its end, and when nobody needs it any more.
    """

    topic: str
    id: str
    body: str
    ttr: float
    state: State
    attempt: int
    tags: tuple[str, ...]
    message: str
    created: float
    due: float
    started: float | None
    ended: float | None
    attempts: tuple[Attempt, ...]
    results: tuple[Result, ...]
    priority: int = USUAL_PRIORITY
    retry: tuple[float, ...] | None = None
    retain: float | None = None
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job of a batch: `code` 0 is done."""

    id: str
    code: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs of a listing, and the cursor of the next page, "" where this was the last."""

    jobs: list[JobDetails]
    cursor: str
