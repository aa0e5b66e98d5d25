"""What servers write for each other about the workers that they have seen, and what clients see of that."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from delayqueue.answers.servers import WorkerJob, WorkerStats
from delayqueue.domain.written import known

MOST_SHOWN: Final = 3  # jobs of a worker, those that it has had for longest


def read_worker(row: Mapping[str, Any], heard_s: float) -> WorkerStats:
    """A worker as a server has written it, with ages (workers.py), at this unix time."""
    times = {
        "since": round(heard_s - row["since"], 3),
        "seen": round(heard_s - row["seen"], 3),
        "until": row["until"] and row["until"] / 1000,
        "jobs": [
            WorkerJob(job_id, topic, round(heard_s - age_s, 3), until_ms / 1000)
            for job_id, topic, age_s, until_ms in row["jobs"]
        ],
    }
    return WorkerStats(**known(WorkerStats, row) | times)


def is_lost(worker: WorkerStats) -> bool:
    """Whether the worker is gone with jobs in hand."""
    return worker.gone and worker.in_hand > 0


def merged(one: WorkerStats, other: WorkerStats) -> WorkerStats:
    """What two servers have seen of a worker; the later sign counts."""
    later = other if other.seen > one.seen else one
    return replace(
        one,
        seen=later.seen,
        gone=later.gone,
        address=later.address,
        topics=list(dict.fromkeys([*one.topics, *other.topics])),
        since=min(one.since, other.since),
        in_hand=one.in_hand + other.in_hand,
        until=max(filter(None, (one.until, other.until)), default=None),
        jobs=sorted([*one.jobs, *other.jobs], key=lambda job: job.since)[:MOST_SHOWN],
        finished=one.finished + other.finished,
        failed=one.failed + other.failed,
    )
