"""The timers of all buckets, and whether they tick."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from delayqueue.engine.scrubber import Scrubber
from delayqueue.engine.timer import INTERVAL_S, Timer
from delayqueue.metrics import TICK_AGE
from delayqueue.store.store import Store
from delayqueue.tasks import TaskGroup

STALE_S: Final = 5 * INTERVAL_S  # without a tick for so long, a bucket counts as unavailable


class Timers:
    """A timer for each bucket that exists, and for those to come. `resync` is passed on to each Timer."""

    def __init__(
        self,
        store: Store,
        resync: Callable[[int], None],
        timed_out: Callable[[str, str, int, str], None],
        buried_retain_ms: int | None,
    ) -> None:
        self._store = store
        self._resync = resync
        self._timed_out = timed_out
        self._buried_retain_ms = buried_retain_ms
        self._timers: list[Timer] = []
        self._grown = asyncio.Event()  # set when timers are added
        self._grow()
        store.buckets.on_change(self._grow)
        store.on_due(self._arm)
        store.metrics.show(TICK_AGE, self._tick_age_s)

    async def run(self) -> None:
        """Run each timer in its own task, until cancelled; if one dies, all end, and its error is raised."""
        async with TaskGroup() as group:
            group.create_task(self._run_all(group), "timers")
            await group.failed()

    async def _run_all(self, group: TaskGroup) -> None:
        running = 0
        while True:
            for bucket in range(running, len(self._timers)):
                group.create_task(self._timers[bucket].run(), f"timer {bucket}")
            running = len(self._timers)
            self._grown.clear()
            await self._grown.wait()

    def stale(self) -> set[int]:
        """The buckets whose timer has not ticked recently."""
        before = stale_before()
        return {
            bucket
            for bucket, timer in enumerate(self._present())
            if timer.last_tick_at is None or timer.last_tick_at < before
        }

    def try_age_s(self) -> float | None:
        """Seconds since the oldest of the timers' last attempts to tick; None if one has made none yet.

        It stays small while the store is unavailable: only a timer that hangs makes it grow.
        """
        return _oldest_age_s([timer.last_try_at for timer in self._present()])

    def _tick_age_s(self) -> float | None:
        """Seconds since the oldest of the buckets' last ticks; None if one has not ticked yet."""
        return _oldest_age_s([timer.last_tick_at for timer in self._present()])

    def _present(self) -> Sequence[Timer]:
        """The timers of buckets that hold jobs."""
        return self._timers[: self._store.buckets.count]

    def _grow(self) -> None:
        for number in range(len(self._timers), len(self._store.buckets.keys)):
            bucket = self._store.bucket(number)
            self._timers.append(
                Timer(
                    bucket,
                    self._resync,
                    Scrubber(bucket).step,
                    timed_out=self._timed_out,
                    buried_retain_ms=self._buried_retain_ms,
                )
            )
        self._grown.set()

    def _arm(self, bucket: int, in_ms: int) -> None:
        self._timers[bucket].arm(in_ms)


def stale_before() -> float:
    """A loop time: a task that should run each second, and last ran before this, is stale."""
    return asyncio.get_running_loop().time() - STALE_S


def _oldest_age_s(times: Sequence[float | None]) -> float | None:
    """Seconds since the oldest of these loop times; None if one of them is None."""
    known = [at for at in times if at is not None]
    return asyncio.get_running_loop().time() - min(known) if len(known) == len(times) else None
