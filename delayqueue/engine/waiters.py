"""The polls that wait for jobs.

A poll leaves a future in the line of those that wait for the same topics. Each bucket has one dispatcher
(dispatcher.py), which reserves as many jobs as the lines want; they are handed out first come, first served. A line
hears that a bucket may have something from a poll's own arrival, the timer, a push, or another process's message.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import count, islice

from delayqueue.engine.deadlines import Deadlines
from delayqueue.engine.dispatcher import Dispatcher
from delayqueue.engine.line import Line, Poll
from delayqueue.engine.migration import Migration
from delayqueue.engine.spread import Spread
from delayqueue.errors import Text, TooMany, Unavailable
from delayqueue.job import Reserved
from delayqueue.receipt import nonce_of
from delayqueue.store.caller import LayoutChanged
from delayqueue.store.store import Store
from delayqueue.store.types import Return, Stir

log = logging.getLogger(__name__)

RESYNC_LINES = 500  # lines that one resync asks for
LOOK_S = 1.0  # that a poll may take, however short its wait, to hear of each bucket whether a job is ready
RETRY_AFTER_S = 5.0  # for a poll that is one too many
TOO_MANY_POLLS = Text(
    "等待中的pop过多, 请稍后再试",
    "too many polls wait already (max_polls); try again later",
)


class Waiters:
    """All waiting polls of this process; its dispatchers run as tasks of the loop.

    `stir(bucket, stir)` hears when there may be more for polls that got nothing.
    """

    def __init__(
        self,
        store: Store,
        migration: Migration,
        stir: Callable[[int, Stir], None],
        max_polls: int = 0,
    ) -> None:
        self._store = store
        self._stir = stir
        self._max_polls = max_polls
        self.waiting = 0  # polls that wait
        self._lines: dict[tuple[str, ...], Line] = {}
        self._by_topic: dict[str, dict[Line, None]] = {}
        self._dispatchers: list[Dispatcher] = []
        self._deadlines = Deadlines()
        self._numbers = count(1)
        self._returns = Spread(migration, self._return, "putback")
        self._putbacks: set[asyncio.Task[None]] = set()
        self._resync_at: list[int] = []
        self._closing = False
        self.grow()

    def grow(self) -> None:
        """There may be more buckets: ask them too."""
        for bucket in range(len(self._dispatchers), len(self._store.buckets.keys)):
            asker = Dispatcher(bucket, self._store, self._hand_out, self._free, self._stir)
            self._dispatchers.append(asker)
            self._resync_at.append(0)
            for line in self._lines.values():
                line.hints.append(0)
                asker.hint(line, line.wanted)

    async def pop(self, topics: tuple[str, ...], wanted: int, wait_s: float) -> list[Reserved]:
        """Reserve up to `wanted` jobs; where nothing is ready wait up to `wait_s` for the first. [] = nothing came.

        A job that is ready is found however short the wait is.
        Unavailable where the store fails before it has once said that nothing is ready; later failures are waited
        out, unless `wait_s` is 0. A caller that is cancelled takes nothing: what was reserved for it goes back.
        TooMany where as many wait already as may.
        """
        if self._closing:
            return []
        if wait_s > 0 and 0 < self._max_polls <= self.waiting:
            raise TooMany(TOO_MANY_POLLS, retry_after_s=RETRY_AFTER_S)
        poll = Poll(next(self._numbers), wanted, max(wait_s, LOOK_S) if wait_s > 0 else 0)
        self.waiting += 1
        line = self._join(topics, poll)
        del topics  # the line's are the same
        hurry = None
        if poll.patient:
            self._deadlines.add(poll, self.waiting)
            if wait_s < LOOK_S:
                hurry = asyncio.get_running_loop().call_later(wait_s, line.expire, poll)
        for dispatcher in self._dispatchers:
            dispatcher.hint(line, wanted)
        try:
            return await poll.future
        except asyncio.CancelledError:
            self.put_back(poll.taken())
            raise
        finally:
            self.waiting -= 1
            if hurry is not None:
                hurry.cancel()
            line.drop(poll)
            self._remove_if_empty(line)

    def wake(self, bucket: int, topic: str, arrived: int) -> None:
        """`bucket` has `arrived` more ready jobs of `topic`."""
        for line in self._by_topic.get(topic, ()):
            self._dispatchers[bucket].hint(line, arrived)

    def resync(self, bucket: int) -> None:
        """Ask the bucket for some of the lines, in turn, without a hint: heals a message that was lost."""
        at = self._resync_at[bucket]
        lines = list(islice(self._lines.values(), at, at + RESYNC_LINES))
        self._resync_at[bucket] = at + RESYNC_LINES if len(lines) == RESYNC_LINES else 0
        for line in lines:
            self._dispatchers[bucket].hint(line, line.wanted)

    def put_back(self, jobs: Iterable[Reserved]) -> None:
        """Undo reservations whose client is gone, in the background."""
        returns = [Return(job.id, nonce_of(job.receipt, job.id)) for job in jobs]
        if returns:
            task = asyncio.create_task(self._put_back(returns), name="putback")
            self._putbacks.add(task)
            task.add_done_callback(self._putbacks.discard)

    async def close(self) -> None:
        """Answer every poll with nothing, now and from now on; wait for what is in flight and give it back."""
        self._closing = True
        self._deadlines.close()
        for line in self._lines.values():
            for poll in line.polls:
                poll.answer([])
        for dispatcher in self._dispatchers:
            await dispatcher.close()
        while self._putbacks:
            await asyncio.wait(self._putbacks)

    async def _put_back(self, returns: list[Return]) -> None:
        lost = await self._returns.many([each.id for each in returns], returns)
        if count := sum(lost):
            log.warning("%d jobs of vanished clients come again after their TTR", count)

    async def _return(self, bucket: int, returns: list[Return]) -> list[bool]:
        """Whether each is lost."""
        try:
            stir = await self._store.putback(bucket, returns)
        except LayoutChanged:
            raise
        except Unavailable:
            return [True] * len(returns)
        for topic, arrived in stir.ready:
            self.wake(bucket, topic, arrived)
        return [False] * len(returns)

    def _join(self, topics: tuple[str, ...], poll: Poll) -> Line:
        line = self._lines.get(topics)
        if line is None:
            line = self._lines[topics] = Line(topics, len(self._dispatchers))
            for topic in topics:
                self._by_topic.setdefault(topic, {})[line] = None
        line.add(poll)
        return line

    def _remove_if_empty(self, line: Line) -> None:
        if line.polls or self._lines.get(line.topics) is not line:
            return
        del self._lines[line.topics]
        for topic in line.topics:
            lines = self._by_topic[topic]
            del lines[line]
            if not lines:
                del self._by_topic[topic]

    def _hand_out(self, line: Line, jobs: list[Reserved]) -> None:
        left = line.hand_out(jobs)
        if left:
            self.put_back(left)

    def _free(self, line: Line) -> None:
        """A call for this line is over, so other buckets may be asked for it."""
        for dispatcher in self._dispatchers:
            dispatcher.hint(line, 0)
