"""What all connections of this process share."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from delayqueue.beanstalk.access import Access
from delayqueue.beanstalk.commands import NAMES, is_tube
from delayqueue.beanstalk.ids import Ids, Numbers
from delayqueue.beanstalk.lane import Lane
from delayqueue.beanstalk.session import Held, Session
from delayqueue.beanstalk.tubes import Tubes
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import Job
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import Code, Unavailable
from delayqueue.store.topics import TopicView

log = logging.getLogger(__name__)

LOST: Final = "connection lost"  # what is said of jobs that were reserved for it
# To find a number that is nobody's id: each goes twice as far as the one before.
MOST_TRIES: Final = 30


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
        """A command has come, "" = none that is known."""
        if command:
            self.counts[command] += 1

    def came(self, session: Session) -> None:
        """A connection begins."""
        self.connected += 1
        self.sessions.add(session)

    def left(self, session: Session, untold: int | None) -> None:
        """It has ended: what it has reserved is ready again at once, and no attempt is counted.

        It is said of the jobs, unless we have ended the connection, or its client cannot have read of a job, the number
        `untold`: a worker that dies of its job finds in `reserves` how often that was (stats.py).
        """
        self.sessions.discard(session)
        jobs = session.close(self.loop.time())
        if untold is not None and (job := jobs.pop(untold, None)) is not None:
            self.queue.requeue((job,))
        self.queue.requeue(jobs.values(), "" if self.is_draining else LOST)

    def allows(self, topic: str) -> bool:
        """Whether this topic can be."""
        return self.scope is EVERYWHERE or self.scope.allows(topic)

    def reachable(self, tubes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the tubes that can be."""
        if self.scope is EVERYWHERE:
            return tubes
        return tuple(filter(self.scope.allows, tubes))

    def keep(self, session: Session, number: int, held: Held) -> None:
        """The store has not done what was to be done with a job: it is still the connection's, or goes back."""
        if session.is_closed:
            self.queue.requeue((held.job,))
        else:
            session.put_back(number, held)

    async def topics(self) -> list[TopicView]:
        """The topics that can be reached."""
        return await self.queue.topics.all(self.allows)

    def all_tubes(self, topics: Iterable[TopicView]) -> set[str]:
        """The tubes that there are: those that connections refer to, and of the topics those that are not empty."""
        held = {topic.topic for topic in topics if topic.holds_something and is_tube(topic.topic)}
        return held.union(filter(self.allows, self.tubes.names()))

    @asynccontextmanager
    async def draining(self) -> AsyncIterator[None]:
        """At the end of the block no job is taken in any more, and nobody waits for one."""
        try:
            yield
        finally:
            self.is_draining = True

    async def close(self) -> None:
        """Wait for the calls under way."""
        await self.put.close()
        await self.finish.close()

    async def _put(self, jobs: list[Job]) -> Sequence[int | Exception]:
        """Push jobs under new numbers; the number of each."""
        for job in jobs:
            job.id = str(await self._numbers.next())
        codes = await self.queue.push_many(jobs, self.scope)
        return [
            self._was_put(job) if code == Code.OK else await self._put_elsewhere(job, code)
            for job, code in zip(jobs, codes, strict=True)
        ]

    def _was_put(self, job: Job) -> int:
        self.puts += 1
        self.tubes.count(job.topic).puts += 1
        return int(job.id)

    async def _put_elsewhere(self, job: Job, code: int) -> int | Exception:
        """Push a job whose number was somebody's id: such ids may be many in a row."""
        tries = 0
        while code == Code.JOB_EXISTS and tries < MOST_TRIES:
            try:
                job.id = str(await self._numbers.beyond(tries))
                [code] = await self.queue.push_many((job,), self.scope)
            except Unavailable as error:
                return error
            tries += 1
        return self._was_put(job) if code == Code.OK else Unavailable()

    async def _finish(self, jobs: list[Held]) -> Sequence[int | Exception]:
        return await self.queue.finish(
            [held.job.id for held in jobs], [held.job.receipt for held in jobs], scope=self.scope
        )


def _bytes_of(job: Job) -> int:
    return len(job.body)
