"""Records the past in the store: what happened to jobs, how many there were, what went wrong."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from random import uniform
from typing import Final, NamedTuple

from delayqueue.domain.history_steps import (
    ACTION,
    MAX_ACTION_CHARS,
    MOST_TOPICS,
    NO_COUNTS,
    Depth,
    Mark,
    Row,
    TopicSum,
)
from delayqueue.domain.job import LIVE_STATES
from delayqueue.domain.topic_counters import Counts, TopicCounters
from delayqueue.engine.timers import STALE_S
from delayqueue.errors import Unavailable
from delayqueue.metrics import Metrics
from delayqueue.store.census import TopicView
from delayqueue.store.store import Store
from delayqueue.tasks import at_most

log = logging.getLogger(__name__)

FLUSH_S: Final = (8.0, 12.0)  # between two flushes, random so that servers do not flush all at once
WATCH_S: Final = 1.0
LAST_S: Final = 1.0  # that a stopping server waits for the store
ALL_TOPICS: Final = 10_000  # with more topics, only those with events are read
MOST_MARKS: Final = 20  # kept until the store answers


class Noticed(NamedTuple):
    """A mark at a loop time."""

    kind: str
    began_at: float
    lasted_s: float = 0.0
    server: str = ""


class HistoryRecorder:
    """Adds the counts of this process about every ten seconds.

    Nothing waits for it: if the store does not accept the counts, or the process dies, they are dropped. `stale` names
    the buckets that do not work.
    """

    def __init__(
        self, store: Store, metrics: Metrics, name: str, stale: Callable[[], Collection[int]]
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._name = name
        self._stale = stale
        self._counters = TopicCounters()
        self._noticed: list[Noticed] = []
        self._servers: set[object] = set()
        self._works = False  # whether it ever did, since this process started
        self._away_at: float | None = None
        self._jumps = 0

    async def run(self) -> None:
        """Add the counts until cancelled."""
        self._metrics.topic_counters = self._counters
        self._notice(Noticed("started", asyncio.get_running_loop().time(), server=self._name))
        while True:
            try:
                await self._flush()
            except Exception:  # nothing in the store may stop the server here
                log.exception("bug: the history of the last seconds is lost")
            await self._watch(uniform(*FLUSH_S))  # noqa: S311  # not for security

    async def aclose(self) -> None:
        """Add the counts since the last flush, if the store answers soon."""
        if self._metrics.topic_counters:
            async with at_most(LAST_S):
                await self._add()

    async def _flush(self) -> None:
        named, looks = await self._add()
        if looks:
            with suppress(Unavailable):
                await self._store.history.add(await self._look(named))

    async def _add(self) -> tuple[Collection[str], bool]:
        """Add the counts; returns their topics, and whether this process should count the jobs in the store."""
        topics, others = self._counters.take(MOST_TOPICS)
        now = asyncio.get_running_loop().time()
        marks = [
            Mark(kind, round(1000 * (now - began_at)), round(1000 * lasted_s), server)
            for kind, began_at, lasted_s, server in self._noticed
        ]
        try:
            looks = await self._store.history.add(_rows(topics, others), marks)
        except Unavailable:
            log.debug("the history of the last seconds is lost")
            return (), False
        del self._noticed[: len(marks)]
        return topics.keys(), looks

    async def _look(self, named: Iterable[str]) -> list[Row]:
        """Count the jobs in the store: rows for all, for the topics with the most, and for the others."""
        census = self._store.census
        if await census.most() > ALL_TOPICS:
            return [
                Row(view.topic, NO_COUNTS, _depth(view)) for view in await census.of(list(named))
            ]
        views = [view for view in await census.all() if view.jobs]
        views.sort(key=lambda view: -view.jobs)
        return [
            Row(TopicSum.ALL, NO_COUNTS, _sum(views)),
            *(Row(view.topic, NO_COUNTS, _depth(view)) for view in views[:MOST_TOPICS]),
            Row(TopicSum.OTHERS, NO_COUNTS, _sum(views[MOST_TOPICS:])),
        ]

    async def _watch(self, length_s: float) -> None:
        """Wait, and mark what goes wrong meanwhile."""
        until = asyncio.get_running_loop().time() + length_s
        while (now := asyncio.get_running_loop().time()) < until:
            self._notice_outage(now)
            self._notice_failover(now)
            self._notice_jump(now)
            await asyncio.sleep(WATCH_S)

    def _notice_outage(self, now: float) -> None:
        if not self._stale():
            if self._away_at is not None:
                self._notice(Noticed("outage", self._away_at, now - self._away_at))
            self._works, self._away_at = True, None
        elif self._works and self._away_at is None:
            self._away_at = now - STALE_S

    def _notice_failover(self, now: float) -> None:
        """Mark a failover: one server has replaced another; one that only joined or left is not a failover."""
        before, self._servers = self._servers, set(self._store.servers.clients())
        if before - self._servers and self._servers - before:
            self._notice(Noticed("failover", now))

    def _notice_jump(self, now: float) -> None:
        before, self._jumps = self._jumps, self._store.servers.clock_jumps()
        if self._jumps > before:
            self._notice(Noticed("clock", now))

    def note_action(self, by: str, what: str) -> None:
        """Mark what somebody did on the page at /admin."""
        if self._metrics.topic_counters:  # only if a history is kept
            now = asyncio.get_running_loop().time()
            self._notice(Noticed(ACTION, now, server=f"{by}\n{what[:MAX_ACTION_CHARS]}"))

    def _notice(self, noticed: Noticed) -> None:
        self._noticed = [*self._noticed, noticed][-MOST_MARKS:]


def _rows(topics: dict[str, Counts], others: Counts) -> list[Row]:
    everything = Counts()
    for counts in (*topics.values(), others):
        everything.add(counts)
    rows = [
        Row(TopicSum.ALL, everything),
        *(Row(topic, counts) for topic, counts in topics.items()),
    ]
    return rows if others == NO_COUNTS else [*rows, Row(TopicSum.OTHERS, others)]


def _depth(view: TopicView) -> Depth:
    return view.delayed, view.ready, view.reserved, view.buried


def _sum(views: Sequence[TopicView]) -> Depth:
    delayed, ready, reserved, buried = (
        sum(getattr(view, state) for view in views) for state in LIVE_STATES
    )
    return delayed, ready, reserved, buried
