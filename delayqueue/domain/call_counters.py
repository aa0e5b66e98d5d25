"""Counts how the calls of jobs went, by host and port: within the last minute, of those called last. No IO."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import nlargest
from math import ceil, inf
from time import monotonic, time
from typing import Any, Final

MOST_HOSTS: Final = 200  # remembered; the report on all takes half a millisecond
MOST_REPORTED: Final = 20
MOST_ERROR_CHARS: Final = 200
FORGOTTEN_S: Final = 3600.0  # after it, that calls fail is no news
MOST_UNTIL: Final = 1000  # times that jobs wait for, before those that are past are forgotten
SLOT_S: Final = 10
SLOTS: Final = 6  # a minute, of which the last slot is not over
# Jobs that wait are counted by the time at which they are tried again, rounded up to this; the second for a wait of
# FAR_S and longer. So what is kept is bounded by how long they wait, not by their number.
NEAR_STEP_S, FAR_STEP_S, FAR_S = 0.1, 10.0, 30.0


@dataclass(frozen=True, slots=True)
class HostReport:
    """The calls of jobs to a host: those under way, what happened to others within a minute, and the last failure.

    `waiting`: jobs that are due and have no place there, in the servers and in the store. Times are unix seconds, 0 =
    there is none: `waiting_since`, when the first of them was due; `next_try`, when one in the store is tried again.
    """

    host: str  # and port
    calling: int = 0
    waiting: int = 0
    waiting_since: float = 0
    next_try: float = 0
    succeeded: int = 0
    failed: int = 0
    put_off: int = 0  # jobs without a place at the host
    took_s: float = 0  # of all these calls together
    failed_at: float = 0  # unix seconds, 0 = no failure is remembered
    error: str = ""
    # calls that failed since the last success, however long ago: retries can be hours apart
    failing: int = 0
    succeeded_at: float = 0  # unix seconds, 0 = no success is remembered

    def __add__(self, other: "HostReport") -> "HostReport":
        """The sum of two reports on one host."""
        last = max(self, other, key=lambda one: one.failed_at)
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        firsts: dict[str, Any] = {
            name: min(filter(None, (getattr(self, name), getattr(other, name))), default=0)
            for name in ("waiting_since", "next_try")
        }
        succeeded_at = max(self.succeeded_at, other.succeeded_at)
        return replace(last, **counts, **firsts, succeeded_at=succeeded_at)

    @property
    def fails(self) -> bool:
        """Whether no call succeeds."""
        return self.failing > 0 and self.failed_at > self.succeeded_at


OF_A_MINUTE: Final = ("succeeded", "failed", "put_off", "took_s")
COUNTS: Final = ("calling", "waiting", "failing", *OF_A_MINUTE)


class HostCounters:
    """The counters of one host."""

    def __init__(self, host: str, now: Callable[[], float]) -> None:
        self._host = host
        self._now = now
        self._calling = 0
        self._waiting = dict[object, float]()  # in this process: when each was due
        # until then: how many, and when the first was due
        self._put_off = dict[float, tuple[int, float]]()
        self._slots: dict[int, dict[str, float]] = {}
        self._failed_at, self._error = 0.0, ""
        self._failing, self._succeeded_at = 0, 0.0

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A call is under way while the block runs."""
        self._calling += 1
        try:
            yield
        finally:
            self._calling -= 1

    def ended(self, took_s: float, error: str | None) -> None:
        """Count a call; `error` says why it failed, None = it has not."""
        self._count("took_s", took_s)
        self._count("succeeded" if error is None else "failed", 1)
        if error is None:
            self._failing, self._succeeded_at = 0, self._now()
        else:
            self._failing += 1
            self._failed_at, self._error = self._now(), error[:MOST_ERROR_CHARS]

    @contextmanager
    def waiting(self, due_s: float) -> Iterator[None]:
        """A job that was due then waits for a place while the block runs."""
        job = object()
        self._waiting[job] = due_s
        try:
            yield
        finally:
            del self._waiting[job]

    def put_off(self, due_s: float, delay_s: float) -> None:
        """Count a job that was due then, found no place at the host, and is tried again after the delay."""
        self._count("put_off", 1)
        step_s = NEAR_STEP_S if delay_s < FAR_S else FAR_STEP_S
        until_s = ceil((self._now() + delay_s) / step_s) * step_s
        count, first_due_s = self._put_off.get(until_s, (0, inf))
        self._put_off[until_s] = count + 1, min(first_due_s, due_s)
        if len(self._put_off) > MOST_UNTIL:
            self._forget()

    def report(self, ahead_s: float = 0.0) -> HostReport:
        """The figures as they are now. `ahead_s`: by how much unix time is ahead of this clock."""
        self._forget()
        next_try, failed_at, succeeded_at = (
            ahead_s + at if at else 0
            for at in (min(self._put_off, default=0), self._failed_at, self._succeeded_at)
        )
        counts: dict[str, Any] = {
            name: sum(slot[name] for slot in self._slots.values()) for name in OF_A_MINUTE
        }
        dues = [*self._waiting.values(), *(due for _, due in self._put_off.values())]
        return HostReport(
            self._host,
            calling=self._calling,
            waiting=len(self._waiting) + sum(count for count, _ in self._put_off.values()),
            waiting_since=min(dues, default=0),
            next_try=next_try,
            failed_at=failed_at,
            error=self._error,
            failing=self._failing if self._now() - self._failed_at < FORGOTTEN_S else 0,
            succeeded_at=succeeded_at,
            **counts,
        )

    def _count(self, name: str, by: float) -> None:
        slot = int(self._now() // SLOT_S)
        if slot not in self._slots:
            self._forget()
            self._slots[slot] = dict.fromkeys(OF_A_MINUTE, 0)
        self._slots[slot][name] += by

    def _forget(self) -> None:
        now = self._now()
        first = int(now // SLOT_S) - SLOTS
        self._put_off = {until: jobs for until, jobs in self._put_off.items() if until > now}
        self._slots = {slot: counts for slot, counts in self._slots.items() if slot > first}


class CallCounters:
    """The counters of the hosts that were called last; each may be called `per_host` times at once.

    `now` is a clock that nobody sets: if unix time is put back, a minute is still a minute.
    """

    def __init__(
        self,
        per_host: int,
        now: Callable[[], float] = monotonic,
        unix: Callable[[], float] = time,
    ) -> None:
        self.per_host = per_host
        self._now = now
        self._unix = unix
        self._hosts = OrderedDict[str, HostCounters]()  # the one with the latest news last

    def of(self, host: str) -> HostCounters:
        """The counters of a host, which becomes the one that was called last."""
        found = self._hosts.pop(host, None) or HostCounters(host, self._now)
        self._hosts[host] = found
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.popitem(last=False)
        return found

    def report(self) -> list[HostReport]:
        """The hosts with the most trouble, then those that are called most."""
        ahead_s = self._unix() - self._now()
        reports = (each.report(ahead_s) for each in self._hosts.values())
        return nlargest(MOST_REPORTED, reports, _trouble)


def added_by_host(reports: Iterable[HostReport]) -> list[HostReport]:
    """The reports of several processes, added up for each host, in the order of CallCounters.report()."""
    found = dict[str, HostReport]()
    for each in reports:
        found[each.host] = found[each.host] + each if each.host in found else each
    return sorted(found.values(), key=_trouble, reverse=True)


def _trouble(one: HostReport) -> tuple[float, ...]:
    return (
        max(one.failed, one.failing) + one.put_off + one.waiting,
        one.calling,
        one.succeeded,
        one.failed_at,
    )
