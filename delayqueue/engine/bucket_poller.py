"""Reserves a bucket's jobs for waiting polls, with one call in flight."""

import asyncio
import logging
from collections.abc import Callable

from delayqueue.domain.job import Reserved
from delayqueue.engine.matcher import Matcher
from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.types import Popped

log = logging.getLogger(__name__)

RETRY_S = 0.2  # before the next try after the store has failed
SLOW_S = 0.1  # a call that takes longer no longer keeps its polls from asking other buckets


class BucketPoller:
    """Reserves jobs of its bucket for as long as the matcher wants some.

    `requeue` takes the jobs that no poll is left to take. The store's listeners are told when a topic that waits for
    its rate may go on. If a call fails, for whatever reason, its polls are told, and the bucket is asked again.
    """

    def __init__(
        self, bucket: Bucket, matcher: Matcher, requeue: Callable[[list[Reserved]], None]
    ) -> None:
        self._bucket = bucket
        self._number = bucket.number
        self._matcher = matcher
        self._requeue = requeue
        self._loop = asyncio.get_running_loop()
        self._is_awake = False  # it asks, or will
        self._call: asyncio.Future[Popped] | None = None  # in flight
        self._began_s = 0.0  # loop time
        self._watch: asyncio.TimerHandle | None = None  # looks whether a call takes long

    def wake(self) -> None:
        """Make a call for what the matcher wants, after this turn of the loop, so that it serves other polls, too."""
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._ask)

    async def close(self) -> None:
        """Wait for the call in flight; the matcher asks for nothing more."""
        if self._call is not None:
            await asyncio.wait([self._call])
        if self._watch is not None:
            self._watch.cancel()

    def _ask(self) -> None:
        demands = self._matcher.next(self._number)
        if not demands:
            self._is_awake = False
            return
        self._began_s = self._loop.time()
        if self._watch is None:
            self._watch = self._loop.call_later(SLOW_S, self._look)
        self._call = self._bucket.pop(demands)
        self._call.add_done_callback(self._answered)

    def _answered(self, call: asyncio.Future[Popped]) -> None:
        self._call = None
        try:
            popped = call.result()
            if left := self._matcher.delivered(self._number, popped.jobs, popped.complete):
                self._requeue(left)
            if popped.change.is_news:
                self._bucket.notify(popped.change)
        except Unavailable as error:
            self._fail(error)
        except Exception:
            log.exception("cannot pop jobs from bucket %d", self._number + 1)
            self._fail(Unavailable())
        else:
            self._ask()

    def _fail(self, error: Unavailable) -> None:
        self._matcher.failed(self._number, error.text)
        self._loop.call_later(RETRY_S, self._ask)

    def _look(self) -> None:
        """Tell the matcher if the call in flight takes long. One timer looks after all calls of a SLOW_S."""
        self._watch = None
        if self._call is None:
            return
        due_s = self._began_s + SLOW_S
        if due_s <= self._loop.time():
            self._matcher.slow(self._number)
        else:
            self._watch = self._loop.call_at(due_s, self._look)
