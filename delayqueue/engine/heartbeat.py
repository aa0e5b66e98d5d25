"""Tells other server processes that this one is alive, with its figures, and reads theirs."""

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, pairwise
from time import time
from typing import Final, NamedTuple, Self

from delayqueue.config.build import build
from delayqueue.domain.call_tally import HostCalls
from delayqueue.domain.damage import LOST
from delayqueue.domain.outboxes import Outbox, Outboxes
from delayqueue.domain.troubles import Kind, Trouble, Troubles
from delayqueue.domain.written import known
from delayqueue.errors import Code, Unavailable
from delayqueue.metrics import (
    DELIVERY_LATENESS,
    JOB_EVENTS,
    LATENESS_S,
    REFUSED,
    REQUESTS,
    WAITING_POLLS,
    Metrics,
    Snapshot,
)
from delayqueue.store.bucket.bucket_store import BucketStore

log = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0
SILENCE_MS: Final = 15_000  # after this silence a process counts as gone
WINDOW_S: Final = 60.0  # lateness covers the last minute


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server process. Counters since its start; lateness in seconds, None if nothing was delivered recently."""

    name: str
    seen: float  # unix seconds, by the store's clock
    version: str = ""
    started: float = 0  # unix seconds, by its own clock
    pushed: int = 0
    delivered: int = 0
    finished: int = 0
    waiting: int = 0
    lateness_p50: float | None = None
    lateness_p99: float | None = None
    call_limit: int = 0  # calls of jobs at once to one host; 0 = it makes none
    calls: tuple[HostCalls, ...] = ()  # to the hosts with the most trouble
    outboxes: tuple[Outbox, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    halts: bool = False  # while the number of buckets is changed; an older version goes on

    @classmethod
    def read(cls, name: str, seen_ms: int, figures: str) -> Self:
        """Parse what a server wrote; fields that only a newer version knows are ignored."""
        written = json.loads(figures)
        told = known(cls, written) | {"name": name, "seen": seen_ms / 1000}
        told["calls"] = tuple(map(HostCalls.read, written.get("calls", ())))
        told["outboxes"] = tuple(map(Outbox.read, written.get("outboxes", ())))
        told["troubles"] = tuple(map(Trouble.read, written.get("troubles", ())))
        return cls(**told)


_FIGURES: Final = frozenset(field.name for field in fields(ServerView)) - {"name", "seen"}
# Left out while they say nothing: the first version refuses what it does not know. The others it must be told.
_LATER: Final = frozenset({"call_limit", "calls", "outboxes", "troubles"})


class Late(NamedTuple):
    """Deliveries in each LATENESS_S bucket since the process started, and the worst lateness of the last interval."""

    counts: Sequence[int]
    worst_s: float


class Heartbeat:
    """This process's entry, written every two seconds, and those of all processes."""

    def __init__(
        self, store: BucketStore, metrics: Metrics, name: str, troubles: Troubles | None = None
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._name = name
        self._troubles = troubles or Troubles()
        self._counted = Counter[tuple[Kind, str, str]]()  # what is a trouble, as of the last beat
        self.outboxes = Outboxes()
        self._started = time()
        self.noted_at: float | None = None  # loop time at which the store last accepted the entry
        self.has_failed = False  # at the last try
        self._window: deque[Late] = deque(maxlen=round(WINDOW_S / INTERVAL_S) + 1)

    async def run(self) -> None:
        """Write the entry until cancelled."""
        while True:
            self._window.append(self._late())
            try:
                figures = json.dumps(self._figures())
                await self._store.heartbeat("servers", self._name, figures, SILENCE_MS)
                self.noted_at = asyncio.get_running_loop().time()
                self.has_failed = False
            except Unavailable:
                self.has_failed = True
                log.debug("heartbeat failed")
            await asyncio.sleep(INTERVAL_S)

    async def servers(self) -> list[ServerView]:
        """All processes that were alive recently, by name. Raises Unavailable if the store does not answer.

        This one is, also if the store has taken no entry for a while.
        """
        entries = await self._store.servers("servers", SILENCE_MS)
        found = {entry[0]: ServerView.read(*entry) for entry in entries}
        if self._name not in found and self._window:
            found[self._name] = ServerView.read(
                self._name, round(time() * 1000), json.dumps(self._figures())
            )
        return [found[name] for name in sorted(found)]

    def _figures(self) -> dict[str, object]:
        figures = self._metrics.snapshot()
        self._note_counted(figures)
        calls = self._metrics.calls
        counted = zip(self._window[-1].counts, self._window[0].counts, strict=True)
        late = [now - then for now, then in counted]
        worst_s = max(each.worst_s for each in list(self._window)[1:] or self._window)
        view = ServerView(
            name="",
            seen=0,
            version=build(),
            started=self._started,
            pushed=self._metrics.events("pushed"),
            delivered=self._metrics.events("delivered"),
            finished=self._metrics.events("finished"),
            waiting=sum(count for _, count in figures[WAITING_POLLS.name]),
            lateness_p50=quantile(late, 0.5, worst_s),
            lateness_p99=quantile(late, 0.99, worst_s),
            call_limit=calls.per_host if calls else 0,
            calls=tuple(calls.report()) if calls else (),
            outboxes=tuple(self.outboxes.report()),
            troubles=tuple(self._troubles.report()),
            halts=True,
        )
        return {
            field: value
            for field, value in asdict(view).items()
            if field in _FIGURES and (value or field not in _LATER)
        }

    def _note_counted(self, figures: Snapshot) -> None:
        """What was counted since the last beat and is a trouble.

        Refused pushes are one, but those of an id that exists: so a client pushes once.
        """
        counted = Counter[tuple[Kind, str, str]]()
        for (path, code), count in figures[REQUESTS.name]:
            if path == "/push" and code not in {Code.OK, Code.JOB_EXISTS}:
                counted[Kind.PUSHES, str(int(code)), ""] += count
        for (limit,), count in figures[REFUSED.name]:
            if limit == "connections":
                counted[Kind.CONNECTIONS, "", ""] += count
        for (event, topic), count in figures[JOB_EVENTS.name]:
            if event == LOST:
                counted[Kind.LOST, topic, topic] += count
        for (kind, name, topic), count in (counted - self._counted).items():
            self._troubles.note(kind, name, topic=topic, count=count)
        self._counted = counted

    def _late(self) -> Late:
        late = self._metrics.histogram(DELIVERY_LATENESS)
        return Late(tuple(late.counts), late.take_worst_s())


def quantile(counts: Sequence[int], share: float, worst_s: float) -> float | None:
    """The lateness in seconds at this quantile of the jobs in LATENESS_S buckets; None = no jobs.

    Within a bucket they are taken as spread evenly, and none as later than `worst_s`: some buckets are an hour wide.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    edges = pairwise((0, *LATENESS_S, worst_s))
    for (low_s, high_s), count, so_far in zip(edges, counts, accumulate(counts), strict=True):
        if so_far >= wanted:
            part = (wanted - so_far + count) / count
            return round(min(low_s + part * (high_s - low_s), worst_s), 4)
    return None
