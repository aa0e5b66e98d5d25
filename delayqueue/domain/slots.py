"""The history: slots of time in rings of several lengths, with what came to jobs in each. No IO."""

from typing import Final, NamedTuple

from delayqueue.domain.tally import Counts

MOST_TOPICS: Final = 100  # that a slot names: a hash of so many is small
NO_COUNTS: Final = Counts()

Depth = tuple[int, int, int, int]  # jobs that are delayed, ready, reserved, buried


class Ring(NamedTuple):
    """So many slots of a length; the oldest one gives its place to the newest."""

    step_ms: int
    places: int


RINGS: Final = {
    "3h": Ring(60_000, 180),
    "2d": Ring(600_000, 288),
    "30d": Ring(3_600_000, 720),
}


class Row(NamedTuple):
    """What is added to a slot. topic None = all, "" = those that are not named; depth None = nobody has looked."""

    topic: str | None
    counts: Counts
    depth: Depth | None = None


class Mark(NamedTuple):
    """Something happened: `kind` is started, outage or failover. server "" = all have seen it."""

    kind: str
    ago_ms: int
    lasted_ms: int
    server: str


class Slot(NamedTuple):
    """What is known of a slot of time; None = nothing."""

    counts: Counts
    depth: Depth | None


class Slots(NamedTuple):
    """Slots one after the other, the first one from `start_ms` on; and the marks since then, the newest first."""

    start_ms: int
    now_ms: int
    slots: list[Slot | None]
    marks: list[Mark]
