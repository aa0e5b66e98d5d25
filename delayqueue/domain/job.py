"""A job, the states it passes through, and the limits of its fields. No IO, no clock."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from delayqueue.domain.call import Call

MAX_ID_BYTES = 1024  # the original has no limit, and its clients' pushes must keep working
MAX_TOPIC_BYTES = 256
MAX_DELAY_S = 2**31
# nobody plans that far; a unix time sent as a delay is half a century
LONG_DELAY_S: Final = 366 * 86_400
MAX_DUE_S = 10_000_000_000  # the year 2286; a due time in milliseconds by mistake is far above
MAX_TTR_S = 86_400
MAX_BATCH = 1000  # jobs in one push, ids in one finish, jobs in one pop
# of the jobs in one answer, as the store keeps them; a larger job comes alone
MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_POP_TOPICS = 64
MAX_TAGS = 64
MAX_TAG_BYTES = 256
MAX_GROUP_BYTES = 250  # with the braces around it, an id has place for 772 bytes more
MAX_FORECAST_STEPS = 1000
MAX_TEXT_BYTES = 256  # of a short text that is kept with a job, such as an idempotency key
MAX_MESSAGE_CHARS = 1024  # the rest of a longer message is cut off
# Both as in beanstalkd's protocol, whose clients mostly use this priority by default
USUAL_PRIORITY = 1024
MAX_PRIORITY = 2**32 - 1


class Calls:
    """What a poll asks for instead of a topic: the jobs with a call, of all topics. There is one, CALLS."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CALLS"


CALLS: Final = Calls()
PolledTopic: TypeAlias = str | Calls


class State(StrEnum):
    """The states of a job, which is in exactly one of them."""

    DELAYED = "delayed"  # waits for its due time
    READY = "ready"  # waits for a consumer
    RESERVED = "reserved"  # handed out; delivered again if its TTR expires
    BURIED = "buried"  # failed for good; kept until somebody looks at it
    FINISHED = "finished"  # only jobs with `retain` are ever seen in these four
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    DROPPED = "dropped"  # its topic was full: limit `max_jobs`


# the states of a job that has not ended
LIVE_STATES: Final = (State.DELAYED, State.READY, State.RESERVED, State.BURIED)


class IfExists(StrEnum):
    """What a push does if the id already exists."""

    REPLACE = "replace"
    KEEP = "keep"
    FAIL = "fail"


CHANGE: Final = "change"  # as `if_exists` of a subscriber or a schedule: only what is given changes


@dataclass(slots=True)
class Job:
    """A job as a client pushes it. `due_ms` counts if it is not None, otherwise `delay_ms`.

    `texts` are the fields that are only kept (push_fields.py: KEPT), by their names. With the text `idempotency_key`,
    its push changes nothing if the job that has the id, live or kept, has this key and topic, too. With `is_strict`, it
    fails if a job of another topic has the id.
    """

    topic: str
    id: str
    body: str | bytes  # text, or any bytes: beanstalkd's protocol takes them
    ttr_ms: int
    delay_ms: int = 0
    due_ms: int | None = None
    tags: tuple[str, ...] = ()
    retry_ms: tuple[int, ...] | None = None
    if_exists: IfExists = IfExists.REPLACE
    # since the first of the pushes that replace each other until the job is handed out; 0 = without a limit
    max_wait_ms: int = 0
    retain_ms: int = 0
    expire_ms: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    # of a topic's ready jobs, the one with the smallest number goes first
    priority: int = USUAL_PRIORITY
    is_strict: bool = False
    call: Call | None = None  # the server makes it when the job is due: no consumer gets the job


@dataclass(slots=True)
class Reserved:
    """A job as a consumer gets it.

    The id with `nonce` identifies this reservation, with `created_ms` the job: a push of the same id makes another one.
    `retry_ms` is its own schedule, if it has one; `was_buried`: it was, until this reservation. `revision`: of the
    subscribers at that time, None = unknown. `call`: None = it has none that can be read. `texts`: of its push, those
    that a consumer gets (push_fields.py: POPPED), by their names.
    """

    topic: str
    id: str
    body: bytes
    attempt: int
    nonce: str
    due_ms: int
    ttr_ms: int
    retry_ms: tuple[int, ...] | None = None
    texts: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    created_ms: int = 0
    was_buried: bool = False
    revision: str | None = None
    call: Call | None = None

    @property
    def late_from_ms(self) -> int:
        """Since when it is late: it was due, and there. A client may push a job whose time is over."""
        return max(self.due_ms, self.created_ms)
