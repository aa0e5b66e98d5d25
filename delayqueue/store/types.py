"""What the store takes and returns. Times in ms; a code per job is one of errors.Code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import JobView, Reserved
from delayqueue.domain.limit import Limit

# Topics and how many of their jobs became ready.
Arrivals = list[tuple[str, int]]


class Change(NamedTuple):
    """What a change means for those who wait: what became ready, and ms until something is due that was not."""

    ready: Arrivals
    next_due_ms: int | None = None


NO_CHANGE: Final = Change([])


class Pushed(NamedTuple):
    """What a push did to each job."""

    codes: list[int]
    change: Change


class Ticked(NamedTuple):
    """What a tick did; `change.next_due_ms` is 0 where more is due now. `named`: topics and ids of buried jobs."""

    change: Change
    redelivered: int
    buried: int
    expired: int
    set_aside: int
    named: Sequence[tuple[str, str]] = ()


class Demand(NamedTuple):
    """So many jobs are wanted of these topics: in their order, or the most urgent ones of all."""

    topics: tuple[str, ...]
    wanted: int
    by_priority: bool = False


class Popped(NamedTuple):
    """Jobs for each demand; those after the first `complete` ones may have left ready jobs behind.

    `change.next_due_ms` is when a topic's rate lets go what it holds back.
    """

    jobs: list[list[Reserved]]
    complete: int
    change: Change


class Ending(NamedTuple):
    """A job to finish or delete. nonce "" = whatever its state, HELD_BY_NOBODY = unless it is reserved."""

    id: str
    nonce: str
    message: str


class Burial(NamedTuple):
    """A job to give up. nonce "" = whatever its state; priority None = as it is."""

    id: str
    nonce: str
    message: str
    priority: int | None = None


class Reservation(NamedTuple):
    """What became of a job that was asked for by its id: a code, and the job where it is OK."""

    code: int
    job: Reserved | None


class Requeue(NamedTuple):
    """A reservation to undo. The message is kept with the job, "" = none."""

    id: str
    nonce: str
    message: str = ""


class Release(NamedTuple):
    """A reserved job to give back; delay None = by its schedule, else by `retry_ms`, else for the fallback."""

    id: str
    nonce: str  # "" = whoever holds it
    delay_ms: int | None
    message: str
    fallback_ms: int | None = None
    priority: int | None = None  # None = as it is
    retry_ms: tuple[int, ...] | None = None


class Recording(NamedTuple):
    """How a subscriber fared with a job that is reserved for it. `delay_ms`: when to call it again, None = never."""

    id: str
    nonce: str
    subscriber: str
    succeeded: bool
    message: str
    attempts: int
    took_ms: int
    delay_ms: int | None


class Postponement(NamedTuple):
    """A reserved job to give back until the first of these subscribers that failed may be called again."""

    id: str
    nonce: str
    message: str
    subscribers: tuple[str, ...]


class Touch(NamedTuple):
    """A reservation to extend. nonce "" = whoever holds it; ttr None = the job's own."""

    id: str
    nonce: str
    ttr_ms: int | None


class Reschedule(NamedTuple):
    """A new due time for a job: `due_ms`, or `delay_ms` from now where that is None."""

    id: str
    delay_ms: int
    due_ms: int | None


class Settlement(NamedTuple):
    """The due time of a job that an import has staged; None = drop it."""

    id: str
    due_ms: int | None


class Moved(NamedTuple):
    """What became of one job: a code, and its new due time or deadline, None where it has none, as if it was buried."""

    code: int
    time_ms: int | None
    buried: bool = False


class Range(NamedTuple):
    """Due times from `first_ms` to `last_ms`, both in."""

    first_ms: int
    last_ms: int


class Position(NamedTuple):
    """A job's place in the order of the due times."""

    due_ms: int
    id: bytes


class Found(NamedTuple):
    """A job that is due in a range; `bytes` are those of its record and run."""

    position: Position
    bucket: int
    bytes: int


@dataclass(slots=True)
class Taken:
    """A job that was taken. It is put back with what the store had of it: id, record and run."""

    topic: str
    id: str
    body: str
    due_ms: int
    raw_id: bytes
    record: bytes
    run: bytes


class TakeReply(NamedTuple):
    """The first `looked` ids were looked at before the answer was full; `gone` of them were not there any more."""

    looked: int
    gone: int
    jobs: list[Taken]


class Listing(NamedTuple):
    """What to list: the jobs of a topic in a state, or of a tag. "" for a topic, tag or state = any."""

    topic: str
    tag: str
    state: str
    due: Range


class TagListing(NamedTuple):
    """A page of a listing; cursor "" = that was all. `bytes` that it holds; `is_full`: the next job has no room."""

    jobs: list[JobView]
    cursor: str
    bytes: int
    is_full: bool


# Where one is among the jobs of a tag; it begins at START and has come to all of them when it is there again.
TagPlace = list[bytes]
START: Final[TagPlace] = [b"0"]


class TagPage(NamedTuple):
    """About `limit` jobs of a tag, of one topic or of all (""), from a place on."""

    tag: str
    topic: str
    limit: int
    place: TagPlace = START
    scope: Scope = EVERYWHERE

    @property
    def args(self) -> list[Any]:
        """As the scripts take it."""
        return [self.tag, self.topic, self.limit, *self.place]


class TopicCounts(NamedTuple):
    """One topic in one bucket; exact. `paused_until_ms`: 0 = until resumed, None = not paused; `urgent`: TopicView."""

    delayed: int
    ready: int
    reserved: int
    buried: int
    oldest_age_ms: int | None
    paused_until_ms: int | None
    limit: Limit | None
    urgent: int = 0


class Limited(NamedTuple):
    """The limits of a topic that are in force; a code that says whether what was wanted is."""

    code: int
    limit: Limit
    change: Change


class Health(NamedTuple):
    """What the store says of itself. `memory_limit_bytes`: 0 = none."""

    memory_bytes: int
    memory_limit_bytes: int
    durable: bool  # it writes an append-only file, and its last write went well
    version: str = ""
    warnings: Sequence[str] = ()


class Swept(NamedTuple):
    """What housekeeping did."""

    cursor: int
    ghosts: int
    forgotten: int
    ended: int  # buried jobs


class Entry(NamedTuple):
    """A subscriber or a schedule as it stands in the store; `time_ms`: paused since, or next due."""

    name: str
    definition: str
    time_ms: int | None = None


class DueSchedules(NamedTuple):
    """The store's time, ms until the next time of any schedule (None = there is none), those whose time has come."""

    now_ms: int
    wait_ms: int | None
    entries: list[Entry]


class DueJobs(NamedTuple):
    """The jobs that occurrences of a schedule push. `next_ms` None = never again."""

    entry: Entry
    next_ms: int | None
    topic: str
    ttr_ms: int
    body: str
    jobs: list["Occurrence"]


class Occurrence(NamedTuple):
    """The job of an occurrence. It has the id `spare_id` where somebody else's job has the other."""

    id: str
    spare_id: str
    due_ms: int


class Enqueued(NamedTuple):
    """Whether this call pushed the jobs of a schedule, and the ids of its occurrences that were somebody else's."""

    done: bool
    taken: list[str]


class Piece(NamedTuple):
    """A piece of a bucket to inspect: a key without the tag (b"" = which keys there are), and where in it to go on."""

    name: bytes
    cursor: bytes


class Finding(NamedTuple):
    """Something that is not whole. `kind` is one of damage.KINDS, `name` a topic or a key without the tag."""

    kind: str
    name: str
    id: str
    repaired: bool


class Inspected(NamedTuple):
    """What an inspection saw.

    `suspects` are (topic, id) of jobs that are lost unless they stand in their ready list.
    """

    pieces: list[Piece]
    looked: int
    findings: list[Finding]
    suspects: list[tuple[bytes, bytes]]
    change: Change
