"""The history: time steps in rings of several lengths, each with what happened to jobs in it. No IO."""

from enum import Enum, auto
from typing import Final, NamedTuple

from delayqueue.domain.topic_counters import Counts

MOST_TOPICS: Final = 100  # named in a step: a hash of this size is still small
NO_COUNTS: Final = Counts()

Depth = tuple[int, int, int, int]  # how many jobs are delayed, ready, reserved, buried


class Ring(NamedTuple):
    """A fixed number of steps of one length; the newest replaces the oldest."""

    step_ms: int
    places: int


RINGS: Final = {"3h": Ring(60_000, 180), "2d": Ring(600_000, 288), "30d": Ring(3_600_000, 720)}
FINEST: Final = RINGS["3h"]


class TopicSum(Enum):
    """Topics that are added up."""

    ALL = auto()
    OTHERS = auto()  # those that are not named


class Row(NamedTuple):
    """An addition to a step; depth None = not counted."""

    topic: str | TopicSum
    counts: Counts
    depth: Depth | None = None


ACTION: Final = "did"  # the kind of a mark of what somebody did on the page at /admin
MAX_ACTION_CHARS: Final = 300


class Mark(NamedTuple):
    """An incident, as it is written: `kind` is started, outage, failover or clock. server "" = it concerns all.

    Of an ACTION it is who did it, a line feed, and what: versions that do not know this kind show it as it is.
    """

    kind: str
    ago_ms: int
    lasted_ms: int
    server: str


class HistoryStep(NamedTuple):
    """The figures of a time step; None = unknown."""

    counts: Counts
    depth: Depth | None
