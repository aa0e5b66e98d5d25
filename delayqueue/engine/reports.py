"""Reports that server processes write for each other, on themselves and on workers, and what clients see of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self

from delayqueue.answers.servers import (
    HostCalls,
    OutboxStats,
    ServerStats,
    Trouble,
    WorkerJob,
    WorkerStats,
)
from delayqueue.domain.call_counters import HostReport, added_by_host
from delayqueue.domain.outboxes import Outbox
from delayqueue.domain.text import readable
from delayqueue.domain.troubles import Kind, TroubleReport, merge_troubles
from delayqueue.domain.written import known, read

# of a server that says nothing
SILENT: Final = ServerStats(
    name="",
    version="",
    started=0,
    seen=0,
    pushed=0,
    delivered=0,
    finished=0,
    waiting=0,
    lateness_p50=None,
    lateness_p99=None,
)
# Left out while they are empty: the first version refuses fields that it does not know, but needs the others.
_LATER: Final = frozenset({"call_limit", "calls", "outboxes", "troubles"})
MOST_SHOWN: Final = 3  # jobs of a worker, those that it has had for longest


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server process tells of itself. `stats.seen`: when, by the store's clock.

    `calls`: of jobs to the hosts with the most trouble. `halts`: while the number of buckets is changed; an older
    version goes on.
    """

    stats: ServerStats
    calls: tuple[HostReport, ...] = ()
    outboxes: tuple[Outbox, ...] = ()
    troubles: tuple[TroubleReport, ...] = ()
    halts: bool = False

    @classmethod
    def read(cls, name: str, seen_ms: int, written: str) -> Self:
        """Parse what a server wrote; fields that only a newer version knows are ignored."""
        told = json.loads(written)
        figures = known(ServerStats, told) | {"name": name, "seen": seen_ms / 1000}
        return cls(
            replace(SILENT, **figures),
            calls=tuple(read(HostReport, one) for one in told.get("calls", ())),
            outboxes=tuple(read(Outbox, one) for one in told.get("outboxes", ())),
            troubles=tuple(read(TroubleReport, one) for one in told.get("troubles", ())),
            halts=told.get("halts", False),
        )

    @property
    def written(self) -> str:
        """The report as the store keeps it, beside the server's name and the time."""
        told = asdict(self)
        told = told.pop("stats") | told
        del told["name"], told["seen"]
        return json.dumps(
            {name: value for name, value in told.items() if value or name not in _LATER}
        )


def called_hosts(reports: Iterable[ServerReport]) -> list[HostReport]:
    """The hosts to which the servers make calls, those in trouble first."""
    return added_by_host(each for report in reports for each in report.calls)


def host_calls(reports: Iterable[ServerReport], hosts: Iterable[HostReport]) -> list[HostCalls]:
    """These hosts as clients see them."""
    limit = sum(report.stats.call_limit for report in reports)
    return [
        HostCalls(
            host=one.host,
            calling=one.calling,
            limit=limit,
            waiting=one.waiting,
            waiting_since=one.waiting_since or None,
            next_try=one.next_try or None,
            succeeded=one.succeeded,
            failed=one.failed,
            put_off=one.put_off,
            took=round(one.took_s / ended, 3) if (ended := one.succeeded + one.failed) else None,
            failed_at=one.failed_at or None,
            error=readable(one.error),
        )
        for one in hosts
    ]


def outboxes(reports: Iterable[ServerReport]) -> list[OutboxStats]:
    """The latest report on each outbox, those with most failed rows first."""
    told = [
        OutboxStats(
            name=each.name,
            failed=each.failed,
            reason=readable(each.reason),
            oldest_age=each.oldest_s,
            seen=_at(report, each.ago_s),
        )
        for report in reports
        for each in report.outboxes
    ]
    latest = {one.name: one for one in sorted(told, key=lambda one: one.seen)}
    return sorted(latest.values(), key=lambda one: (-one.failed, one.name))


def troubles(reports: Iterable[ServerReport], hosts: Iterable[HostReport]) -> list[Trouble]:
    """What goes wrong again and again, the latest first: what the servers report, and those hosts that fail."""
    noted = [(_at(report, each.ago_s), each) for report in reports for each in report.troubles]
    for host in hosts:
        if host.fails:
            failing = TroubleReport(Kind.HOST, host.host, count=host.failing, message=host.error)
            noted.append((host.failed_at, failing))
    return [
        Trouble(one.kind, readable(one.name), one.topic, one.count, at, readable(one.message))
        for at, one in merge_troubles(noted)
    ]


def _at(report: ServerReport, ago_s: float) -> float:
    """The unix time that was `ago_s` before the report."""
    return round(report.stats.seen - ago_s, 3)


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
