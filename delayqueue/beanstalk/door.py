"""State that all connections of this process share."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from delayqueue.beanstalk.access import Access
from delayqueue.beanstalk.commands import NAMES, is_tube
from delayqueue.beanstalk.ids import BLOCK, Ids, Numbers
from delayqueue.beanstalk.lane import Lane
from delayqueue.beanstalk.session import Held, Session
from delayqueue.beanstalk.tubes import Tubes
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import Job
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import Code, Unavailable
from delayqueue.store.topics import TopicView

log = logging.getLogger(__name__)

LOST: Final = "connection lost"  # the message for jobs that were reserved for it
# Steps over numbers that are somebody's ids: each is twice as far as the one before, the last one half a billion.
MOST_TRIES: Final = 20


class Door:
    """The queue as connections see it: by numbers, with calls that they share."""

    def __init__(self, queue: DelayQueue, access: Access) -> None:
        self.queue = queue
        self.access = access
        self.loop = asyncio.get_running_loop()
        self.tubes = Tubes()
        self._numbers = Numbers(queue.numbers)
        self.ids = Ids(self._numbers)
        self.sessions: set[Session] = set()
        self.is_draining = False
        # since the process started:
        self.id = secrets.token_hex(8)
        self.began_s = self.loop.time()
        self.connected = 0
        self.puts = 0
        self.counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self.put: Lane[Job, int] = Lane(self._put, "beanstalk put", _bytes_of)
        self.finish: Lane[Held, int] = Lane(self._finish, "beanstalk delete")

    @property
    def scope(self) -> Scope:
        """The topics that can be reached."""
        return self.access.scope

    def count(self, command: str) -> None:
        """Count a command, "" = an unknown one."""
        if command:
            self.counts[command] += 1

    def came(self, session: Session) -> None:
        """Count a connection that begins."""
        self.connected += 1
        self.sessions.add(session)

    def left(self, session: Session, untold: int | None) -> None:
        """Count a connection that ends. Its jobs are ready again at once, and the attempt does not count.

        The jobs get a message, unless we closed the connection or its client cannot have read of a job, the number
        `untold`: if a job kills its workers, its `reserves` show how often (stats.py).
        """
        self.sessions.discard(session)
        jobs = session.close(self.loop.time())
        if untold is not None and (job := jobs.pop(untold, None)) is not None:
            self.queue.requeue((job,))
        self.queue.requeue(jobs.values(), "" if self.is_draining else LOST)

    def allows(self, topic: str) -> bool:
        """Whether clients may reach this topic."""
        return self.scope is EVERYWHERE or self.scope.allows(topic)

    def reachable(self, tubes: tuple[str, ...]) -> tuple[str, ...]:
        """The tubes that clients may reach."""
        if self.scope is EVERYWHERE:
            return tubes
        return tuple(filter(self.scope.allows, tubes))

    def keep(self, session: Session, number: int, held: Held) -> None:
        """The store has not done what a job needed: the connection keeps it, or it is put back."""
        if session.is_closed:
            self.queue.requeue((held.job,))
        else:
            session.put_back(number, held)

    async def topics(self) -> list[TopicView]:
        """The topics that clients may reach."""
        return await self.queue.topics.all(self.allows)

    def all_tubes(self, topics: Iterable[TopicView]) -> set[str]:
        """The tubes that exist: those that connections refer to, and topics that are not empty."""
        held = {topic.topic for topic in topics if topic.holds_something and is_tube(topic.topic)}
        return held.union(filter(self.allows, self.tubes.names()))

    @asynccontextmanager
    async def draining(self) -> AsyncIterator[None]:
        """From the end of the block on, no job is accepted, and no client waits for one."""
        try:
            yield
        finally:
            self.is_draining = True

    async def close(self) -> None:
        """Wait for calls in flight."""
        await self.put.close()
        await self.finish.close()

    async def _put(self, jobs: list[Job]) -> Sequence[int | Exception]:
        """Push jobs under new numbers. Returns the number of each, or why it was not pushed.

        Numbers can be somebody's ids, such as those of orders, and there may be many in a row: then the numbers go on
        behind them, for all jobs that follow.
        """
        codes = await self._push(jobs)
        for tries in range(MOST_TRIES):
            left = [at for at, code in enumerate(codes) if code == Code.JOB_EXISTS]
            if not left:
                break
            self._numbers.leave(int(jobs[left[-1]].id), BLOCK * (2**tries - 1))
            try:
                again = await self._push([jobs[at] for at in left])
            except Unavailable:  # the other jobs are there
                break
            for at, code in zip(left, again, strict=True):
                codes[at] = code
        return [self._was_put(job, code) for job, code in zip(jobs, codes, strict=True)]

    async def _push(self, jobs: list[Job]) -> list[int]:
        for job in jobs:
            job.id = str(await self._numbers.next())
        return await self.queue.push_many(jobs, self.scope)

    def _was_put(self, job: Job, code: int) -> int | Exception:
        if code != Code.OK:
            return Unavailable()
        self.puts += 1
        self.tubes.count(job.topic).puts += 1
        return int(job.id)

    async def _finish(self, jobs: list[Held]) -> Sequence[int | Exception]:
        return await self.queue.finish(
            [held.job.id for held in jobs], [held.job.receipt for held in jobs], scope=self.scope
        )


def _bytes_of(job: Job) -> int:
    return len(job.body)
