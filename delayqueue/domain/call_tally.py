"""Counts how the calls of jobs went, by host: within the last minute, of those that were called last. No IO."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import nlargest
from time import time
from typing import Any, Final, Self

from delayqueue.domain.written import known

MOST_HOSTS: Final = 200  # remembered; the report on all takes half a millisecond
MOST_REPORTED: Final = 20
MOST_ERROR_CHARS: Final = 200
SLOT_S: Final = 10
SLOTS: Final = 6  # a minute, of which the last slot is not over


@dataclass(frozen=True, slots=True)
class HostCalls:
    """The calls of jobs to a host: those under way, what happened to others within a minute, and the last failure."""

    host: str
    calling: int = 0
    succeeded: int = 0
    failed: int = 0
    put_off: int = 0  # jobs without a place at the host
    took_s: float = 0  # of all these calls together
    failed_at: float = 0  # unix seconds, 0 = no failure is remembered
    error: str = ""

    @classmethod
    def read(cls, written: dict[str, Any]) -> Self:
        """Parse what a server wrote; fields that only a newer version knows are ignored."""
        return cls(**known(cls, written))

    def __add__(self, other: "HostCalls") -> "HostCalls":
        """Both together, of one host."""
        last = max(self, other, key=lambda one: one.failed_at)
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return replace(last, calling=self.calling + other.calling, **counts)


COUNTS: Final = ("succeeded", "failed", "put_off", "took_s")


class HostTally:
    """What is counted of one host."""

    def __init__(self, host: str, now: Callable[[], float]) -> None:
        self._host = host
        self._now = now
        self._calling = 0
        self._slots: dict[int, dict[str, float]] = {}
        self._failed_at, self._error = 0.0, ""

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
        if error is not None:
            self._failed_at, self._error = self._now(), error[:MOST_ERROR_CHARS]

    def put_off(self) -> None:
        """Count a job that found no place at the host."""
        self._count("put_off", 1)

    def report(self) -> HostCalls:
        """The figures as they are now."""
        self._forget()
        counts: dict[str, Any] = {
            name: sum(slot[name] for slot in self._slots.values()) for name in COUNTS
        }
        return HostCalls(
            self._host,
            calling=self._calling,
            failed_at=self._failed_at,
            error=self._error,
            **counts,
        )

    def _count(self, name: str, by: float) -> None:
        slot = int(self._now() // SLOT_S)
        if slot not in self._slots:
            self._forget()
            self._slots[slot] = dict.fromkeys(COUNTS, 0)
        self._slots[slot][name] += by

    def _forget(self) -> None:
        first = int(self._now() // SLOT_S) - SLOTS
        self._slots = {slot: counts for slot, counts in self._slots.items() if slot > first}


class CallTally:
    """The hosts with the latest news, each of which may be called `per_host` times at once."""

    def __init__(self, per_host: int, now: Callable[[], float] = time) -> None:
        self.per_host = per_host
        self._now = now
        self._hosts = OrderedDict[str, HostTally]()  # the one with the latest news last

    def of(self, host: str) -> HostTally:
        """Where to count the news of a host."""
        found = self._hosts.pop(host, None) or HostTally(host, self._now)
        self._hosts[host] = found
        if len(self._hosts) > MOST_HOSTS:
            self._hosts.popitem(last=False)
        return found

    def report(self) -> list[HostCalls]:
        """The hosts with the most trouble, then those that are called most."""
        return nlargest(MOST_REPORTED, (each.report() for each in self._hosts.values()), _trouble)


def together(reports: Iterable[HostCalls]) -> list[HostCalls]:
    """What several processes report, each host once, in the order of CallTally.report()."""
    found = dict[str, HostCalls]()
    for each in reports:
        found[each.host] = found[each.host] + each if each.host in found else each
    return sorted(found.values(), key=_trouble, reverse=True)


def _trouble(one: HostCalls) -> tuple[float, ...]:
    return one.failed + one.put_off, one.calling, one.succeeded, one.failed_at
