"""The timer of one bucket: ticks every second, and earlier when something is due earlier."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from delayqueue.errors import Unavailable
from delayqueue.store.store import Store, Ticked

log = logging.getLogger(__name__)

INTERVAL_S = (
    1.0  # as the original; also the longest that a message lost between processes can delay a job
)
RETRY_S = 0.2  # until the next try when the store has failed


class Timer:
    """Ticks one bucket for ever. `ticked` hears what each tick did."""

    def __init__(self, bucket: int, store: Store, ticked: Callable[[int, Ticked], None]) -> None:
        self._bucket = bucket
        self._store = store
        self._ticked = ticked
        self._wake = asyncio.Event()
        self._next_at = 0.0  # loop time of the next tick
        self.last_tick_at: float | None = None  # loop time of the last tick that succeeded

    def arm(self, in_ms: int) -> None:
        """Something is due in `in_ms`: tick then, if that is earlier than planned."""
        at = asyncio.get_running_loop().time() + in_ms / 1000
        if at < self._next_at:
            self._next_at = at
            self._wake.set()

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._next_at = loop.time() + INTERVAL_S
            await self._tick()
            while (wait_s := self._next_at - loop.time()) > 0:
                self._wake.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), wait_s)

    async def _tick(self) -> None:
        try:
            ticked = await self._store.tick(self._bucket)
        except Unavailable:
            self.arm(round(RETRY_S * 1000))
            return
        self.last_tick_at = asyncio.get_running_loop().time()
        if ticked.next_due_ms is not None:
            self.arm(ticked.next_due_ms)
        self._ticked(self._bucket, ticked)
