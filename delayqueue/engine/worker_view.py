"""A worker, as all servers have seen it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from delayqueue.domain.written import known

MOST_SHOWN: Final = 3  # jobs of a worker, those that it has had for longest


class JobInHand(NamedTuple):
    """A job that a worker runs; times in unix seconds, by the store's clock."""

    id: str
    topic: str
    since: float
    until: float


class WorkerCounts(NamedTuple):
    """How many workers are alive, and how many are gone with jobs in hand."""

    alive: int
    gone: int


@dataclass(slots=True)
class WorkerView:
    """A worker, as all servers have seen it; times in unix seconds, by the store's clock.

    `finished` and `failed` count the last minute. `jobs`: those of the `in_hand` that it has had for longest; all are
    its own until `until` at the latest. `gone`: its connection broke, and nothing was heard of it since.
    """

    name: str
    version: str
    host: str
    pid: int
    concurrency: int
    address: str
    topics: list[str]
    since: float
    seen: float
    gone: bool
    in_hand: int
    until: float | None
    jobs: list[JobInHand]
    finished: int
    failed: int

    @classmethod
    def read(cls, row: Mapping[str, Any], heard_s: float) -> Self:
        """A worker as a server has written it, with ages (workers.py), at this unix time."""
        times = {
            "since": round(heard_s - row["since"], 3),
            "seen": round(heard_s - row["seen"], 3),
            "until": row["until"] and row["until"] / 1000,
            "jobs": [
                JobInHand(job_id, topic, round(heard_s - age_s, 3), until_ms / 1000)
                for job_id, topic, age_s, until_ms in row["jobs"]
            ],
        }
        return cls(**known(cls, row) | times)

    @property
    def is_lost(self) -> bool:
        """Whether it is gone with jobs in hand."""
        return self.gone and self.in_hand > 0

    def add(self, other: Self) -> None:
        """Add what another server has seen of it; the later sign counts."""
        if other.seen > self.seen:
            self.seen, self.gone = other.seen, other.gone
            self.address = other.address
        self.topics = list(dict.fromkeys([*self.topics, *other.topics]))
        self.since = min(self.since, other.since)
        self.in_hand += other.in_hand
        self.until = max(filter(None, (self.until, other.until)), default=None)
        self.jobs = sorted([*self.jobs, *other.jobs], key=lambda job: job.since)[:MOST_SHOWN]
        self.finished += other.finished
        self.failed += other.failed
