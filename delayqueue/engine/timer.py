"""The timer of one bucket: ticks every second, and earlier if something is due earlier."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.types import SOON_MS
from delayqueue.tasks import at_most

log = logging.getLogger(__name__)

# As in the original; also how long a lost message between processes can delay a job.
INTERVAL_S = SOON_MS / 1000
# after a tick: one that took longer has waited, as a tick moves a limited number of jobs
MOST_REST_S = 0.01
RETRY_S = 0.2  # before the next try after the store has failed
SWEEP_AGAIN_S = 0.1  # after a sweep that had more to do, or found empty topics
SWEEP_TOPICS = 20  # that a sweep checks
MOST_SWEEP_TOPICS = 80  # after one that found empty ones: about 2 ms of the store's time
FORGOTTEN_SHARE = 0.1  # of those that were checked: with this many empty ones there is a backlog


class Timer:
    """Ticks one bucket endlessly, and sweeps it once a second.

    The store's listeners are told what each tick changed. `resync` is called once a second, for what a lost message
    left behind; so is `care`, unless ticks are behind: it repairs the store, a little at a time. `timed_out` is
    told topic, id, attempt and worker of jobs whose TTR has expired. Buried jobs are kept for
    `buried_retain_ms` unless their topic says otherwise, None = until somebody ends them.
    """

    def __init__(
        self,
        bucket: Bucket,
        resync: Callable[[int], None],
        care: Callable[[], Awaitable[None]],
        *,
        timed_out: Callable[[str, str, int, str], None],
        buried_retain_ms: int | None = None,
    ) -> None:
        self._bucket = bucket
        self._resync = resync
        self._care = care
        self._timed_out = timed_out
        self._buried_retain_ms = buried_retain_ms
        self._wake = asyncio.Event()
        self._next_at = 0.0  # loop time of the next tick
        self._rested_at = 0.0  # loop time before which it does not tick: see _tick
        self._care_at, self._sweep_at = 0.0, 0.0  # loop times of the next ones
        self._sweep_cursor = 0
        self._sweep_topics = SWEEP_TOPICS
        self.last_tick_at: float | None = None  # loop time of the last successful tick
        self.last_try_at: float | None = None  # loop time at which the last attempt to tick ended

    def arm(self, in_ms: int) -> None:
        """Something is due in `in_ms`: tick then, if that is earlier than planned."""
        at = asyncio.get_running_loop().time() + in_ms / 1000
        if in_ms > 0:
            at = max(at, self._rested_at)
        if at < self._next_at:
            self._next_at = at
            self._wake.set()

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._next_at = loop.time() + INTERVAL_S
            if self._bucket.number >= self._bucket.buckets.count:  # it no longer holds jobs
                await asyncio.sleep(INTERVAL_S)
                continue
            try:
                is_behind = await self._tick()
                if loop.time() >= self._care_at:
                    self._care_at = loop.time() + INTERVAL_S
                    self._resync(self._bucket.number)
                    if not is_behind:
                        await self._care()
                if loop.time() >= self._sweep_at:
                    await self._sweep()
            except Unavailable:
                self.arm(round(RETRY_S * 1000))
            self.last_try_at = loop.time()
            while (wait_s := self._next_at - loop.time()) > 0:
                self._wake.clear()
                async with at_most(wait_s):
                    await self._wake.wait()

    async def _tick(self) -> bool:
        """Tick once; returns whether more is already due."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        ticked = await self._bucket.tick()
        self.last_tick_at = loop.time()
        # Under load, due times come closer than calls take: half of the time for ticks is enough.
        self._rested_at = self.last_tick_at + min(self.last_tick_at - began_at, MOST_REST_S)
        self._bucket.notify(ticked.change)
        for late in ticked.timed_out:
            self._timed_out(*late)
        for topic, job_id in ticked.named:
            log.warning(
                "job %r of topic %r is buried: its TTR expired with no retries left", job_id, topic
            )
        if ticked.buried > len(ticked.named):
            log.warning(
                "%d more jobs are buried for the same reason", ticked.buried - len(ticked.named)
            )
        return ticked.change.next_due_ms == 0

    async def _sweep(self) -> None:
        self._sweep_at = asyncio.get_running_loop().time() + INTERVAL_S
        swept = await self._bucket.sweep(
            self._sweep_cursor, self._sweep_topics, self._buried_retain_ms
        )
        self._sweep_cursor = swept.cursor
        has_backlog = swept.forgotten >= self._sweep_topics * FORGOTTEN_SHARE
        self._sweep_topics = MOST_SWEEP_TOPICS if has_backlog else SWEEP_TOPICS
        if swept.is_cut_short or has_backlog:
            self._sweep_at -= INTERVAL_S - SWEEP_AGAIN_S
            self.arm(round(SWEEP_AGAIN_S * 1000))
