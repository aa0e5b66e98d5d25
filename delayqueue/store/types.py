"""What the store takes and returns. Times in ms; a job's code is one of errors.Code."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from delayqueue.answers.jobs import Attempt, HeldBy, Progress, SubscriberResult
from delayqueue.domain.call import Call
from delayqueue.domain.job import PolledTopic, Reserved, State
from delayqueue.errors import Code, Text

# Topics, and how many of their jobs became ready; CALLS for those with a call.
Arrivals = list[tuple[PolledTopic, int]]


class Change(NamedTuple):
    """The effect of a call on polls and timers: what became ready, and ms until something newly due.

    `is_news`: they must be told. Of what is due in a second or later they need not be, as each timer ticks that often.
    """

    ready: Arrivals
    next_due_ms: int | None = None
    is_news: bool = True


NO_CHANGE: Final = Change([], is_news=False)
SOON_MS: Final = 1000


class Pushed(NamedTuple):
    """The outcome of a push: a code, and the other topic from which a job with that id was taken, None = none.

    `full`: how many jobs the topic may have in the job's bucket, which is full, and in all.
    """

    code: int
    other_topic: str | None = None
    full: tuple[int, ...] = ()


DONE: Final = Pushed(int(Code.OK))


class TimedOut(NamedTuple):
    """A job whose TTR has expired, and the worker that had it, "" = unknown."""

    topic: str
    id: str
    attempt: int
    worker: str


class Ticked(NamedTuple):
    """The effect of a tick; `change.next_due_ms` is 0 if more is due now.

    `named`: topics and ids of the first buried jobs; `timed_out`: the first jobs whose TTR has expired.
    """

    change: Change
    redelivered: int
    buried: int
    expired: int
    set_aside: int
    named: Sequence[tuple[str, str]] = ()
    timed_out: Sequence[TimedOut] = ()


class Demand(NamedTuple):
    """How many jobs are wanted of these topics: in the order of topics, or by priority across all."""

    topics: tuple[PolledTopic, ...]
    wanted: int
    by_priority: bool = False


class Popped(NamedTuple):
    """Jobs for each demand; after the first `complete` ones there may be more ready jobs.

    `change.next_due_ms` is when a topic's rate allows the next delivery.
    """

    jobs: list[list[Reserved]]
    complete: int
    change: Change


class Reservation(NamedTuple):
    """The outcome of reserving a job by its id: a code, and the job if it is OK."""

    code: int
    job: Reserved | None


class Recording(NamedTuple):
    """A subscriber's result for a job that is reserved for it. `delay_ms`: when to call it again, None = never.

    `ending`: the message with which the job is finished at once, None = it goes on.
    """

    id: str
    nonce: str
    subscriber: str
    succeeded: bool
    message: str
    attempts: int
    took_ms: int
    delay_ms: int | None
    ending: str | None = None


class Postponement(NamedTuple):
    """A reserved job to give back until the first of these failed subscribers may be called again."""

    id: str
    nonce: str
    message: str
    subscribers: tuple[str, ...]


class Plan(NamedTuple):
    """What changes about jobs that wait: when they are due, one of the first three; and their priority.

    `by_ms`: a distance from each job's own due time, negative = earlier. All None = each job keeps its own.
    """

    delay_ms: int | None = None
    due_ms: int | None = None
    by_ms: int | None = None
    priority: int | None = None


class Moved(NamedTuple):
    """The outcome for one job: a code, and its new due time or deadline; None if it has none, as when buried."""

    code: int
    time_ms: int | None
    buried: bool = False


class Range(NamedTuple):
    """Due times from `first_ms` to `last_ms`, inclusive."""

    first_ms: int
    last_ms: int


class Position(NamedTuple):
    """A job's position in the order of due times."""

    due_ms: int
    id: bytes


class Found(NamedTuple):
    """A job that is due in a range; `bytes` are those of its record and run."""

    position: Position
    bucket: int
    bytes: int


@dataclass(slots=True)
class JobView:
    """All about a job, for HTTP, beanstalkd's protocol and delivery. The classes of answers/ in it have seconds.

    `message` is the last one that a consumer left; a time that was not reached is None.

    `ready_ms` is `due_ms`, or later if its call has been put off until then, for want of a place at its host.

    `remarks` are the messages that belong to no attempt. `expire_ms`: when the job expires, 0 = never. `worker`: the
    name of the one that holds the job, "" = none, or unknown. `progress` of the last attempt, until the next one begins
    or the job is finished. `held_by` only while the job is ready, and its group may have no more jobs in hand.
    """

    topic: str
    id: str
    body: bytes
    ttr_ms: int
    due_ms: int
    ready_ms: int
    state: State
    attempt: int
    tags: tuple[str, ...]
    message: str
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    attempts: tuple[Attempt, ...]
    results: tuple[SubscriberResult, ...]
    priority: int
    remarks: tuple[str, ...]
    retry_ms: tuple[int, ...] | None
    retain_ms: int
    expire_ms: int
    call: Call | None
    texts: dict[str, str] = field(default_factory=dict)  # those of its push that it has
    worker: str = ""
    progress: Progress | None = None
    held_by: HeldBy | None = None


@dataclass(slots=True)
class Taken:
    """A job that was taken. It is put back with what the store had: id, record, run, and its place in its group."""

    view: JobView
    raw_id: bytes
    record: bytes
    run: bytes
    was_first: int  # 1 = the others of its group waited for it

    @property
    def id(self) -> str:
        """The job's id, as clients know it."""
        return self.view.id


class Listing(NamedTuple):
    """What to list: the jobs of a topic in a state, or of a tag. "" for a topic, tag or state = any."""

    topic: str
    tag: str
    state: str
    due: Range


# A position among the jobs of a tag; it begins at START and is there again after all of them.
TagPlace = list[bytes]
START: Final[TagPlace] = [b"0"]


class Health(NamedTuple):
    """The store's figures. `memory_limit_bytes`: 0 = none."""

    memory_bytes: int
    memory_limit_bytes: int
    durable: bool  # it writes an append-only file, and its last write succeeded
    version: str = ""
    warnings: Sequence[Text] = ()


class Swept(NamedTuple):
    """The effect of housekeeping; `is_cut_short`: there was more to do than one call may do."""

    cursor: int
    ghosts: int
    forgotten: int
    ended: int  # buried jobs
    is_cut_short: bool


class Piece(NamedTuple):
    """A piece of a bucket to inspect: a key without the tag (b"" = the list of keys), and where in it to go on."""

    name: bytes
    cursor: bytes


class Finding(NamedTuple):
    """Damage. `kind` is one of damage.KINDS, `name` a topic or a key without the tag."""

    kind: str
    name: str
    id: str
    repaired: bool


class Inspected(NamedTuple):
    """The result of an inspection.

    `suspects` are (topic, id) of jobs that are in no place unless they are in their ready list; `lost` are topics with
    how many of their jobs have no record any more.
    """

    pieces: list[Piece]
    looked: int
    findings: list[Finding]
    suspects: list[tuple[bytes, bytes]]
    change: Change
    lost: Sequence[tuple[str, int]] = ()
