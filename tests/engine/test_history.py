"""The history that a server records while its store works, is away, moves, or has very many topics."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

from delayqueue.domain.history_steps import MOST_TOPICS, Mark, Row, TopicSum
from delayqueue.domain.topic_counters import Counts
from delayqueue.engine import history
from delayqueue.engine.history import HistoryRecorder
from delayqueue.engine.timers import STALE_S
from delayqueue.errors import Unavailable
from delayqueue.metrics import Metrics
from delayqueue.store.census import TopicView
from tests.waiting import until_async


class Store:
    """The parts of a store that the history uses; `added` holds the rows and marks of each accepted call."""

    def __init__(self) -> None:
        self.history = self.census = self.servers = self
        self.is_away = False
        self.is_broken = False
        self.views: list[TopicView] = []
        self.many = False
        self.addresses: Collection[str] = ("a",)
        self.added: list[tuple[list[Row], list[Mark]]] = []
        self.calls = 0
        self.jumps = 0

    def clock_jumps(self) -> int:
        return self.jumps

    async def add(self, rows: Sequence[Row], marks: Sequence[Mark] = ()) -> bool:
        self.calls += 1
        if self.is_away:
            raise Unavailable
        self.added.append((list(rows), list(marks)))
        return bool(rows) and rows[0].depth is None

    async def most(self) -> int:
        return history.ALL_TOPICS + 1 if self.many else len(self.views)

    async def all(self) -> list[TopicView]:
        assert not self.many
        if self.is_broken:
            raise ValueError("what nobody can read")
        return self.views

    async def of(self, names: Iterable[str]) -> list[TopicView]:
        return [TopicView(name, ready=1) for name in names]

    def clients(self) -> Collection[str]:
        return self.addresses

    @property
    def marks(self) -> list[tuple[str, str]]:
        """Kind and server of all marks."""
        return [(mark.kind, mark.server) for _, marks in self.added for mark in marks]

    def pushed(self, topic: str | TopicSum) -> int:
        return sum(
            row.counts.pushed for rows, _ in self.added for row in rows if row.topic == topic
        )


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "FLUSH_S", (0.01, 0.02))
    monkeypatch.setattr(history, "WATCH_S", 0.005)


@pytest.fixture
def store() -> Store:
    return Store()


class Running:
    """A running history, and what it is told."""

    def __init__(self, store: Any) -> None:
        self.store: Store = store
        self.metrics = Metrics()
        self.stale: list[int] = []
        self.history = HistoryRecorder(store, self.metrics, "this", lambda: self.stale)

    async def __aenter__(self) -> "Running":
        self.task = asyncio.create_task(self.history.run())
        await self.has_flushed()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.history.aclose()

    async def has_flushed(self) -> None:
        calls = self.store.calls

        async def is_done() -> bool:
            return self.store.calls >= calls + 3

        await until_async(is_done)


async def test_what_was_counted_is_added_once_also_when_the_server_stops(store: Store) -> None:
    async with Running(store) as running:
        running.metrics.count_event("pushed", "t", 2)
        await running.has_flushed()
        assert store.pushed(TopicSum.ALL) == store.pushed("t") == 2
        running.metrics.count_event("pushed", "t", 3)
    assert store.pushed(TopicSum.ALL) == store.pushed("t") == 5
    assert store.marks == [("started", "this")]


async def test_a_store_that_is_away_loses_counts_and_no_mark(store: Store) -> None:
    async with Running(store) as running:
        store.is_away, running.stale = True, [0]
        running.metrics.count_event("pushed", "t", 2)
        await running.has_flushed()
        store.is_away, running.stale = False, []
        running.metrics.count_event("pushed", "t", 3)
        await running.has_flushed()
        assert store.pushed("t") == 3
        assert store.marks == [("started", "this"), ("outage", "")]
        [outage] = [mark for _, marks in store.added for mark in marks if mark.kind == "outage"]
        assert outage.lasted_ms >= STALE_S * 1000
        assert outage.ago_ms >= outage.lasted_ms


async def test_contents_that_nobody_can_read_do_not_end_it(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.is_broken = True
    async with Running(store) as running:
        running.metrics.count_event("pushed", "t", 1)
        await running.has_flushed()
        assert store.pushed("t") == 1
    assert "bug: the history" in caplog.text


async def test_a_server_that_takes_the_place_of_another_is_marked(store: Store) -> None:
    async with Running(store) as running:
        for addresses in (("a", "b"), ("a",), (), ("a",), ("c",)):  # two more, one less, unknown
            store.addresses = addresses
            await running.has_flushed()
        assert store.marks == [("started", "this"), ("failover", "")]


async def test_a_clock_of_the_store_that_stepped_is_marked_once(store: Store) -> None:
    async with Running(store) as running:
        await running.has_flushed()
        store.jumps = 2
        for _ in range(3):
            await running.has_flushed()
        assert store.marks == [("started", "this"), ("clock", "")]


async def test_how_many_jobs_there_are_is_told_of_the_topics_with_the_most(store: Store) -> None:
    store.views = [TopicView(f"t{n}", delayed=n) for n in range(MOST_TOPICS + 3)]
    async with Running(store):
        pass
    looked = [rows for rows, _ in store.added if rows[0].depth is not None]
    rows = {row.topic: row.depth for row in looked[0]}
    assert rows.pop(TopicSum.ALL) == (sum(range(MOST_TOPICS + 3)), 0, 0, 0)
    assert rows.pop(TopicSum.OTHERS) == (1 + 2, 0, 0, 0)
    assert rows == {f"t{n}": (n, 0, 0, 0) for n in range(3, MOST_TOPICS + 3)}


async def test_of_a_great_many_topics_those_with_events_are_looked_at(store: Store) -> None:
    store.many = True
    async with Running(store) as running:
        running.metrics.count_event("pushed", "busy", 1)
        await running.has_flushed()
    looked = [row for rows, _ in store.added for row in rows if row.depth]
    assert looked == [Row("busy", Counts(), (0, 1, 0, 0))]
