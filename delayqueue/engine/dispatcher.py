"""Reserves a bucket's jobs for waiting polls, with one call in flight."""

import asyncio
import logging
from collections.abc import Callable

from delayqueue.domain.job import Reserved
from delayqueue.engine.books import Books
from delayqueue.errors import Unavailable
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.types import Change, Demand

log = logging.getLogger(__name__)

RETRY_S = 0.2  # before the next try after the store has failed
SLOW_S = 0.1  # a call that takes longer no longer keeps its polls from asking other buckets


class Dispatcher:
    """Asks its bucket for what the books want, as long as they want something.

    `requeue` takes the jobs that no poll is left to take. `notify` is called when a topic that waits for its rate may
    go on. If a call fails, for whatever reason, its polls are told, and the bucket is asked again.
    """

    def __init__(
        self,
        bucket: int,
        store: BucketStore,
        books: Books,
        requeue: Callable[[list[Reserved]], None],
        notify: Callable[[int, Change], None],
    ) -> None:
        self._bucket = bucket
        self._store = store
        self._books = books
        self._requeue = requeue
        self._notify = notify
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """The books have something to ask for."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"dispatcher {self._bucket}")

    async def close(self) -> None:
        """Wait for the call in flight."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while demands := self._books.next(self._bucket):
                await self._ask(demands)
        finally:
            self._task = None

    async def _ask(self, demands: list[Demand]) -> None:
        slow = asyncio.get_running_loop().call_later(SLOW_S, self._books.slow, self._bucket)
        try:
            popped = await self._store.pop(self._bucket, demands)
            if left := self._books.delivered(self._bucket, popped.jobs, popped.complete):
                self._requeue(left)
            self._notify(self._bucket, popped.change)
        except Exception as error:
            if not isinstance(error, Unavailable):
                log.exception("cannot pop jobs from bucket %d", self._bucket + 1)
            self._books.failed(self._bucket)
            await asyncio.sleep(RETRY_S)
        finally:
            slow.cancel()
