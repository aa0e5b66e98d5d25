"""The reservation of a job whose subscribers are called: extended for as long as that takes."""

import asyncio
from contextlib import suppress
from typing import Any, Self

from delayqueue.domain.job import Reserved
from delayqueue.engine.jobs import Jobs
from delayqueue.errors import NoSuchJob, StaleReceipt, Unavailable
from delayqueue.tasks import cancel_all

TOUCHES_PER_TTR = 3
RETRY_S = 0.2  # before the next try if the store has failed


class Lease:
    """Extends the reservation while the block runs, or until it is lost. Most jobs end before the first time."""

    def __init__(self, jobs: Jobs, job: Reserved) -> None:
        self._jobs = jobs
        self._job = job
        self._pause_s = job.ttr_ms / 1000 / TOUCHES_PER_TTR
        self._touching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._begin)
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._timer.cancel()
        if self._touching is not None:
            await cancel_all([self._touching])
            if not self._touching.cancelled():
                self._touching.result()  # raises what is a bug

    def _begin(self) -> None:
        self._touching = asyncio.create_task(self._touch(), name=f"lease of {self._job.topic}")

    async def _touch(self) -> None:
        with suppress(StaleReceipt, NoSuchJob):
            while True:
                try:
                    await self._jobs.touch(self._job.id, self._job.receipt, None)
                except Unavailable:
                    await asyncio.sleep(RETRY_S)
                else:
                    await asyncio.sleep(self._pause_s)
