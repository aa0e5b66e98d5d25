"""A job, the states it passes through, and the limits of its fields. No IO, no clock."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_ID_BYTES = 1024  # the original has no limit, and its clients go on pushing what they pushed
MAX_TOPIC_BYTES = 256
MAX_DELAY_S = 2**31
MAX_TTR_S = 86_400
MAX_BATCH = 1000  # jobs in one push, ids in one finish, jobs in one pop
MAX_ANSWER_BYTES = (
    4 * 1024 * 1024
)  # of the jobs in one, as the store has them; a larger job comes alone
MAX_POP_TOPICS = 64
MAX_TAGS = 64
MAX_TAG_BYTES = 256
MAX_FORECAST_STEPS = 1000
MAX_MESSAGE_CHARS = 1024  # the tail of a longer message is cut off
# both as in beanstalkd's protocol, where most clients put jobs with this priority if they are not told another
USUAL_PRIORITY = 1024
MAX_PRIORITY = 2**32 - 1


class State(StrEnum):
    """A job is in exactly one of these."""

    DELAYED = "delayed"  # waits for its due time
    READY = "ready"  # waits for a consumer
    RESERVED = "reserved"  # handed out; comes again when its TTR runs out
    BURIED = "buried"  # given up, kept for a person
    FINISHED = "finished"  # these three are only seen of a job with `retain`
    CANCELLED = "cancelled"
    EXPIRED = "expired"


# of a job that is still to be done
LIVE_STATES: Final = (State.DELAYED, State.READY, State.RESERVED, State.BURIED)


class IfExists(StrEnum):
    """What a push does when the id is there already."""

    REPLACE = "replace"
    KEEP = "keep"
    FAIL = "fail"


@dataclass(slots=True)
class Job:
    """A job as a client pushes it. Exactly one of `delay_ms` and `due_ms` counts: `due_ms` where it is not None."""

    topic: str
    id: str
    body: str
    ttr_ms: int
    delay_ms: int = 0
    due_ms: int | None = None
    tags: tuple[str, ...] = ()
    retry_ms: tuple[int, ...] | None = None
    if_exists: IfExists = IfExists.REPLACE
    retain_ms: int = 0
    expire_ms: int = 0
    traceparent: str = ""  # W3C trace context: the trace that pushed it
    priority: int = (
        USUAL_PRIORITY  # of two ready jobs of a topic the one with the smaller number goes first
    )


@dataclass(slots=True)
class Reserved:
    """A job as a consumer gets it. `receipt` proves this very reservation; `retry_ms` is its own schedule, if any."""

    topic: str
    id: str
    body: str
    attempt: int
    receipt: str
    due_ms: int
    ttr_ms: int
    retry_ms: tuple[int, ...] | None
    traceparent: str = ""


@dataclass(slots=True)
class Attempt:
    """One reservation that failed, by a release, a bury or a TTR that ran out."""

    attempt: int
    started_ms: int
    ended_ms: int
    message: str


@dataclass(slots=True)
class Result:
    """How a subscriber fared with a job. `due_ms`: when it may be called again, None = never; 0 = at once."""

    subscriber: str
    succeeded: bool
    message: str
    attempts: int
    started_ms: int
    ended_ms: int
    due_ms: int | None


@dataclass(slots=True)
class JobView:
    """All that is known of a job. `message` is the last one that a consumer left; times are None where not reached.

    `remarks` are the messages that belong to no attempt. `expire_ms`: when nobody needs it any more, 0 = never.
    """

    topic: str
    id: str
    body: str
    ttr_ms: int
    due_ms: int
    state: State
    attempt: int
    tags: tuple[str, ...]
    message: str
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    attempts: tuple[Attempt, ...]
    results: tuple[Result, ...]
    priority: int
    remarks: tuple[str, ...]
    retry_ms: tuple[int, ...] | None
    retain_ms: int
    expire_ms: int
