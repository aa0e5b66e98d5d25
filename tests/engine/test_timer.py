"""The timer: what it does in its spare time, and if it has none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import pytest

from delayqueue.engine.timer import MOST_REST_S, MOST_SWEEP_TOPICS, SWEEP_TOPICS, Timer
from delayqueue.store.types import Change, Ticked
from tests.engine.shelves import QUIET, Shelf, Shelves
from tests.waiting import until

LONG_S = 600.0  # far more than a rest, and than a busy machine delays a task
SOON = Change([], next_due_ms=1)
BEHIND = QUIET._replace(change=Change([], next_due_ms=0))


@asynccontextmanager
async def running(timer: Timer) -> AsyncIterator[None]:
    """The timer ticks while the block runs."""
    task = asyncio.create_task(timer.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def no_care() -> None:
    """Nothing to repair."""


def timer_of(store: Shelves, care: Callable[[], Awaitable[None]] = no_care) -> Timer:
    return Timer(store.bucket(0), lambda _bucket: None, care, timed_out=lambda *_: None)


async def test_the_store_is_cared_for_only_when_no_tick_is_behind() -> None:
    store = Shelves()
    store.next_ticks.extend([BEHIND] * 3)
    ticks_before: list[int] = []

    async def care() -> None:
        ticks_before.append(len(store.tick_times_s))

    timer = timer_of(store, care)
    store.on_due(lambda _bucket, in_ms: timer.arm(in_ms))
    async with running(timer):
        await until(lambda: bool(ticks_before))
    assert not store.next_ticks
    assert ticks_before[0] > 3  # a quiet one after those that were late


async def test_housekeeping_follows_the_backlog_of_empty_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.engine.timer.INTERVAL_S", 0.001)
    monkeypatch.setattr("delayqueue.engine.timer.SWEEP_AGAIN_S", 0.001)
    store = Shelves()
    store.empty_topics = 30_000
    timer = timer_of(store)
    async with running(timer):
        await until(lambda: store.empty_topics == 0 and store.swept_topics[-1] == SWEEP_TOPICS)
    assert max(store.swept_topics) == MOST_SWEEP_TOPICS
    assert store.swept_topics.index(SWEEP_TOPICS, 1) < 400  # tenths of a second


async def test_a_sweep_that_had_more_to_do_is_followed_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.engine.timer.INTERVAL_S", 600.0)
    store = Shelves()
    store.cut_short_sweeps = 3
    timer = timer_of(store)
    async with running(timer):
        await until(lambda: store.cut_short_sweeps < 0)
    assert len(store.swept_topics) == 4


async def test_a_tick_that_failed_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delayqueue.engine.timer.INTERVAL_S", 600.0)
    store = Shelves()
    store.down.add(0)
    timer = timer_of(store)
    async with running(timer):
        await until(lambda: len(store.tick_times_s) > 2)


async def test_what_is_due_later_does_not_put_off_what_is_due_earlier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.engine.timer.INTERVAL_S", 600.0)
    store = Shelves()
    timer = timer_of(store)
    async with running(timer):
        await until(lambda: timer.last_try_at is not None)
        timer.arm(20)
        timer.arm(60_000)
        await until(lambda: len(store.tick_times_s) == 2)


async def test_while_jobs_fall_due_all_the_time_ticks_take_half_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each tick has a fixed cost for the store: with one each millisecond nothing else would be done."""
    monkeypatch.setattr("delayqueue.engine.timer.INTERVAL_S", LONG_S)
    spans_s: list[tuple[float, float]] = []

    class Slow(Shelf):
        async def tick(self, limit: int = 0) -> Ticked:
            began_s = asyncio.get_running_loop().time()
            await asyncio.sleep(0.008)
            spans_s.append((began_s, asyncio.get_running_loop().time()))
            return (await super().tick(limit))._replace(change=SOON)

    store = Shelves(shelf=Slow)
    store.on_due(lambda _bucket, in_ms: timer.arm(in_ms))
    timer = timer_of(store)
    async with running(timer):
        await until(lambda: len(spans_s) > 10)
    for (began_s, ended_s), (next_s, _) in pairwise(spans_s):
        assert next_s - ended_s > 0.9 * min(ended_s - began_s, MOST_REST_S)


async def test_after_a_tick_that_had_to_wait_for_the_store_it_rests_no_longer_than_usual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.engine.timer.INTERVAL_S", 2 * LONG_S)
    loop, ended_s = asyncio.get_running_loop(), list[float]()
    clock = loop.time

    class Stalled(Shelf):
        async def tick(self, limit: int = 0) -> Ticked:
            if not ended_s:  # the loop's clock says that it took so long
                monkeypatch.setattr(loop, "time", lambda: clock() + LONG_S)
                ended_s.append(loop.time())
            return (await super().tick(limit))._replace(change=SOON)

    store = Shelves(shelf=Stalled)
    store.on_due(lambda _bucket, in_ms: timer.arm(in_ms))
    timer = timer_of(store)
    async with running(timer):
        await until(lambda: len(store.tick_times_s) > 1)
    assert store.tick_times_s[1] - ended_s[0] < LONG_S
