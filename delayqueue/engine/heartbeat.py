"""Tells other server processes that this one is alive, with its figures, and reads theirs."""

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from time import time
from typing import Final, NamedTuple

from delayqueue.config.build import build
from delayqueue.domain.damage import LOST
from delayqueue.domain.outboxes import Outboxes
from delayqueue.domain.troubles import Kind, Troubles
from delayqueue.engine.reports import SILENT, ServerReport
from delayqueue.errors import Code, Unavailable, utc
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
from delayqueue.store.registry import Registry

log = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0
SILENCE_MS: Final = 15_000  # after this silence a process counts as gone
MOST_NAMESAKES: Final = 15  # beats: a restart, with both servers at work for seconds, has fewer
MOST_PENDING: Final = 6  # beats: one that got no answer can be carried out for ten seconds more
WINDOW_S: Final = 60.0  # lateness covers the last minute


class Late(NamedTuple):
    """Deliveries in each LATENESS_S bucket since the process started, and the worst lateness of the last interval."""

    counts: Sequence[int]
    worst_s: float


class Heartbeat:
    """This process's entry, written every two seconds, and those of all processes."""

    def __init__(self, registry: Registry, metrics: Metrics, name: str, troubles: Troubles) -> None:
        self._registry = registry
        self._metrics = metrics
        self._name = name
        self._troubles = troubles
        self._counted = Counter[tuple[Kind, str, str]]()  # what is a trouble, as of the last beat
        self.outboxes = Outboxes()
        self._started = time()
        self._namesakes = 0  # entries of others that ours took the place of
        # hashes of entries: the last ones up to that which the store has accepted, and all since
        self._accepted = deque[int](maxlen=MOST_PENDING)
        self._unanswered: list[int] = []
        self._told_ms = 0  # when the store got the last entry that it had, 0 = nobody knows
        self.noted_at: float | None = None  # loop time at which the store last accepted the entry
        self.has_failed = False  # at the last try
        self._window: deque[Late] = deque(maxlen=round(WINDOW_S / INTERVAL_S) + 1)

    async def run(self) -> None:
        """Write the entry until cancelled."""
        while True:
            self._window.append(self._late())
            try:
                written = self._report().written
                self._unanswered.append(hash(written))
                self._compare(
                    *await self._registry.heartbeat("servers", self._name, written, SILENCE_MS)
                )
                self._accepted += self._unanswered
                self._unanswered.clear()
                self.noted_at = asyncio.get_running_loop().time()
                self.has_failed = False
            except Unavailable:
                self.has_failed = True
                log.debug("heartbeat failed")
            await asyncio.sleep(INTERVAL_S)

    def _compare(self, told_ms: int, former: str) -> None:
        """Warn if the entry that ours takes the place of, told at `told_ms`, is not the one before it.

        It is of another process that tells its figures under our name, and is not just the one before us: said once.
        Or it is an old one, of ours or of the one before us: the store's data was set back.
        """
        if not former:
            return
        is_ours = json.loads(former).get("started") == self._started
        if is_ours and hash(former) in [*self._accepted, *self._unanswered]:
            self._told_ms = told_ms
        elif is_ours or told_ms < self._told_ms:
            log.error(
                "the store's data is that of %s again: what it has acknowledged since is lost, "
                "and jobs that have ended since are delivered again",
                utc(datetime.fromtimestamp(told_ms / 1000, UTC)),
            )
        else:
            self._namesakes += 1
            if self._namesakes == MOST_NAMESAKES:
                log.warning(
                    "another server is called %s, too, so each of the two hides the other in /stats and at /admin; "
                    "let their host names or ports differ",
                    self._name,
                )

    async def servers(self) -> list[ServerReport]:
        """All processes that were alive recently, by name. Raises Unavailable if the store does not answer.

        This one is, also if the store has taken no entry for a while.
        """
        entries = await self._registry.reports("servers", SILENCE_MS)
        found = {entry[0]: ServerReport.read(*entry) for entry in entries}
        if self._name not in found and self._window:
            found[self._name] = self._report()
        return [found[name] for name in sorted(found)]

    def _report(self) -> ServerReport:
        figures = self._metrics.snapshot()
        self._note_counted(figures)
        calls = self._metrics.calls
        counted = zip(self._window[-1].counts, self._window[0].counts, strict=True)
        late = [now - then for now, then in counted]
        worst_s = max(each.worst_s for each in list(self._window)[1:] or self._window)
        stats = replace(
            SILENT,
            name=self._name,
            seen=round(time(), 3),
            version=build(),
            started=self._started,
            pushed=self._metrics.events("pushed"),
            delivered=self._metrics.events("delivered"),
            finished=self._metrics.events("finished"),
            waiting=sum(count for _, count in figures[WAITING_POLLS.name]),
            lateness_p50=quantile(late, 0.5, worst_s),
            lateness_p99=quantile(late, 0.99, worst_s),
            call_limit=calls.per_host if calls else 0,
        )
        return ServerReport(
            stats,
            calls=tuple(calls.report()) if calls else (),
            outboxes=tuple(self.outboxes.report()),
            troubles=tuple(self._troubles.report()),
            halts=True,
        )

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
