"""The polls that wait for jobs, and the clients that wait for the end of one (end_waits.py).

The matcher (matcher.py) knows all polls and what they want. Each bucket has one poller (bucket_poller.py), which
reserves as many jobs as the matcher wants from it; they are handed out first come, first served. That a bucket may have
something, the matcher hears from a poll's own arrival, the timer, a push, or another process's message.
"""

import asyncio
import logging
from collections.abc import Iterable
from itertools import count
from typing import Final

from delayqueue.domain.job import PolledTopic, Reserved
from delayqueue.engine.bucket_poller import BucketPoller
from delayqueue.engine.deadlines import Deadlines
from delayqueue.engine.end_waits import EndWaits
from delayqueue.engine.matcher import Matcher
from delayqueue.engine.undo import undo
from delayqueue.engine.wait_queue import Poll, StandingPoll
from delayqueue.errors import Text, TooMany
from delayqueue.store.store import Store
from delayqueue.store.verbs import REQUEUE, Requeue
from delayqueue.tasks import Tasks

log = logging.getLogger(__name__)

LOOK_S = 1.0  # even without a wait, a poll has this long to ask each bucket for a ready job
RETRY_AFTER_S = 5.0  # for a poll that is one too many
TOO_MANY_POLLS = Text(
    "等待中的 pop 过多（max_polls），请稍后再试",
    "too many polls wait already (max_polls); try again later",
)


class Polls:
    """All waiting polls of this process; `ends` are those for the end of a job, and count as polls."""

    def __init__(self, store: Store, max_polls: int = 0) -> None:
        self._store = store
        self._max_polls = max_polls
        self.matcher: Final = Matcher()
        self._pollers: list[BucketPoller] = []
        self._deadlines = Deadlines(self._expire)
        self._numbers = count(1)
        self._requeuing = Tasks("requeue")
        self._closing = False
        self._ends_undo = asyncio.Event()  # set with _closing, which polls read without a call
        self.ends = EndWaits(store, self._check_room)
        self.grow()

    @property
    def waiting(self) -> int:
        """How many polls of clients are waiting, without those of this server's own deliveries."""
        return self.matcher.waiting + self.ends.waiting

    def grow(self) -> None:
        """Ask buckets that were added, too."""
        for bucket in range(len(self._pollers), len(self._store.buckets.keys)):
            poller = BucketPoller(self._store.bucket(bucket), self.matcher, self.requeue)
            self._pollers.append(poller)
            self.matcher.grow(poller.wake)

    async def pop(
        self,
        topics: tuple[PolledTopic, ...],
        wanted: int,
        wait_s: float,
        *,
        by_priority: bool = False,
    ) -> list[Reserved]:
        """Reserve up to `wanted` jobs; if none is ready, wait up to `wait_s` for the first. [] = none came.

        Raises what begin() and its future raise. If the caller is cancelled, it takes nothing: what was reserved for it
        is put back.
        """
        poll = self.begin(topics, wanted, wait_s, by_priority=by_priority)
        del topics  # the queue has its own copy
        try:
            await poll.future
        except asyncio.CancelledError:
            self.leave(poll)
            raise
        return poll.take()

    def begin(
        self,
        topics: tuple[PolledTopic, ...],
        wanted: int,
        wait_s: float,
        *,
        by_priority: bool = False,
    ) -> Poll:
        """Begin to wait for up to `wanted` jobs. Whoever calls it takes the answer, or leaves.

        They come from the first topics first, or by priority across all. A job that is ready is found however short the
        wait is. The poll's future raises Unavailable if the store fails before it has once said that nothing is ready;
        later failures are waited out, unless `wait_s` is 0. Raises TooMany if as many clients are waiting as may.
        """
        poll = Poll(next(self._numbers), wanted, wait_s, max(0, LOOK_S - wait_s))
        if self._closing:
            poll.answer([])
            return poll
        # _check_room written out: one call less for each poll
        if poll.patient and 0 < self._max_polls <= self.matcher.waiting + self.ends.waiting:
            raise TooMany(TOO_MANY_POLLS, retry_after_s=RETRY_AFTER_S)
        self.matcher.add(topics, poll, by_priority=by_priority)
        if poll.patient:
            self._deadlines.add(poll, self.matcher.waiting)
        return poll

    def consume(self, topics: tuple[PolledTopic, ...], wanted: int) -> StandingPoll:
        """Begin to take jobs as they become ready, up to `wanted` and one more for each widen(), until leave().

        This is for the server's own work: it needs no room among the polls of clients, and takes none. The poll's
        future raises what that of a long poll raises; nothing comes after that.
        """
        poll = StandingPoll(next(self._numbers), wanted, topics)
        if not self._closing:
            self.matcher.add(topics, poll)
        return poll

    def widen(self, poll: StandingPoll) -> None:
        """Let the poll take one job more."""
        if poll.queue is not None:
            self.matcher.widen(poll)
        elif not self._closing:
            poll.number = next(self._numbers)
            poll.wanted += 1
            self.matcher.add(poll.topics, poll)

    def leave(self, poll: Poll) -> None:
        """Remove the poll of a client that no longer waits; jobs that were reserved for it are put back."""
        self.matcher.remove(poll)
        poll.future.cancel()
        self.requeue(poll.take())

    def requeue(
        self,
        jobs: Iterable[Reserved],
        message: str = "",
        *,
        was_told: bool = False,
        delay_ms: int | None = None,
    ) -> None:
        """Undo reservations whose client is gone, in the background: the jobs are ready again, no attempt counts.

        With `delay_ms` they are delayed for that long. One that was reserved by its id before it was due goes back to
        its time, a buried one is buried again. A message is kept with the jobs, among the remarks of no attempt. If the
        client `was_told` of them, they count for their topics' limits, and others of a strict group wait for them.
        """
        returns = [
            Requeue(job.id, job.nonce, message, was_told, job.was_buried, delay_ms) for job in jobs
        ]
        returns.reverse()  # each goes before the last one
        if returns:
            self._requeuing.start(self._requeue_all(returns))

    async def close(self) -> None:
        """Answer every poll with nothing from now on; wait for calls in flight and put back what they bring."""
        self._closing = True
        self._ends_undo.set()
        self._deadlines.close()
        self.matcher.close()
        for poller in self._pollers:
            await poller.close()
        await self.ends.close()
        await self._requeuing.ended()

    def _check_room(self) -> None:
        if 0 < self._max_polls <= self.matcher.waiting + self.ends.waiting:
            raise TooMany(TOO_MANY_POLLS, retry_after_s=RETRY_AFTER_S)

    def _expire(self, poll: Poll) -> None:
        """The poll's wait is over, but each bucket is asked once, if that does not take too long."""
        if poll.grace_s:
            self.matcher.hurry(poll)
        else:
            self.matcher.expire(poll)
        if poll.queue is not None:
            poll.deadline += poll.grace_s
            poll.grace_s = 0
            self._deadlines.add(poll, self.matcher.waiting)

    async def _requeue_all(self, returns: list[Requeue]) -> None:
        if lost := await undo(self._store, REQUEUE, returns, self._ends_undo):
            log.warning("%d jobs whose clients are gone are delivered again after their TTR", lost)
