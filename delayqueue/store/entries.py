"""Subscribers and schedules, as the store keeps them and as its calls take and return them."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A subscriber or a schedule as the store keeps it; `time_ms`: paused since, or next due."""

    name: str
    definition: str
    time_ms: int | None = None


class DueSchedules(NamedTuple):
    """The store's time, ms until the next occurrence of any schedule (None = there is none), and the due schedules."""

    now_ms: int
    wait_ms: int | None
    entries: list[Entry]


class DueJobs(NamedTuple):
    """The jobs for a schedule's occurrences. `next_ms` None = never again."""

    entry: Entry
    next_ms: int | None
    topic: str
    ttr_ms: int
    body: str
    jobs: list["OccurrenceJob"]


class OccurrenceJob(NamedTuple):
    """The job of an occurrence. It gets the id `spare_id` if the other one belongs to somebody else's job."""

    id: str
    spare_id: str
    due_ms: int


class Enqueued(NamedTuple):
    """Whether this call pushed a schedule's jobs, and which of their ids were somebody else's."""

    done: bool
    taken: list[str]
