"""State that all connections of this process share."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from delayqueue.beanstalk.commands import NAMES, is_tube
from delayqueue.beanstalk.ids import Ids, Numbers
from delayqueue.beanstalk.session import Held, Session
from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.beanstalk.tubes import Tubes
from delayqueue.domain.access import EVERYWHERE
from delayqueue.engine.queue import DelayQueue
from delayqueue.store.census import TopicView

log = logging.getLogger(__name__)

LOST: Final = "connection lost"  # the message for jobs that were reserved for it


class BeanstalkServer:
    """The queue as connections see it: by numbers."""

    def __init__(self, queue: DelayQueue, access: TubeAccess) -> None:
        self.queue = queue
        self.sessions: set[Session] = set()
        self.remote: set[asyncio.Transport] = set()  # of clients on other machines
        self.access = access
        self.use(access)
        self.loop = asyncio.get_running_loop()
        self.tubes = Tubes()
        self.numbers = Numbers(queue.store.registry.numbers)
        self.ids = Ids(self.numbers)
        self.calls: set[asyncio.Future[Any]] = set()  # that commands of all connections wait for
        self.listener: asyncio.Server | None = None  # accepts connections
        self.is_draining = False
        # since the process started:
        self.id = secrets.token_hex(8)
        self.began_s = self.loop.time()
        self.connected = 0
        self.puts = 0
        self.counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))  # of commands

    def use(self, access: TubeAccess) -> None:
        """Let clients reach what these settings say, from now on. If that has changed, waits for jobs begin anew."""
        former, self.access = self.access, access
        self.allows_all = access.scope is EVERYWHERE
        self.jobs = self.queue.within(access.scope)
        if access.loopback_only:
            for each in list(self.remote):
                each.abort()
        if access.scope != former.scope:
            for session in self.sessions:
                session.stop_waiting()

    def opened(self, session: Session) -> None:
        """Count a connection that begins."""
        self.connected += 1
        self.sessions.add(session)

    def closed(self, session: Session, untold: int | None) -> None:
        """Count a connection that ends. Its jobs are ready again at once, and the attempt does not count.

        The jobs get a message, unless we closed the connection or its client cannot have read of a job, the number
        `untold`: if a job kills its workers, its `reserves` show how often (stats.py).
        """
        self.sessions.discard(session)
        jobs = session.close(self.loop.time())
        if untold is not None and (job := jobs.pop(untold, None)) is not None:
            self.jobs.polls.requeue((job,))
        self.jobs.polls.requeue(jobs.values(), "" if self.is_draining else LOST, was_told=True)

    def allows(self, topic: str) -> bool:
        """Whether clients may reach this topic."""
        return self.allows_all or self.access.scope.allows(topic)

    def id_of(self, session: Session, number: int) -> str:
        """The id of the job that this connection knows by the number."""
        held = session.held(number)
        return self.ids.id_of(number) if held is None else held.job.id

    def keep(self, session: Session, number: int, held: Held) -> None:
        """Let the connection keep a job for which the store has failed; once it is closed, put the job back."""
        if session.is_closed:
            self.jobs.polls.requeue((held.job,), was_told=True)
        else:
            session.put_back(number, held)

    async def topics(self) -> Sequence[TopicView]:
        """The topics that clients may reach."""
        return await self.jobs.census.all(self.allows)

    def all_tubes(self, topics: Iterable[TopicView]) -> set[str]:
        """The tubes that exist: those that connections refer to, and topics that are not empty."""
        held = {topic.topic for topic in topics if topic.holds_something and is_tube(topic.topic)}
        return held.union(filter(self.allows, self.tubes.names()))

    def drain(self) -> None:
        """From now on nobody connects, no client waits for a job, and each is disconnected after its next command."""
        self.is_draining = True
        if self.listener:
            self.listener.close()

    async def close(self) -> None:
        """Wait for calls in flight."""
        while self.calls:
            await asyncio.wait(self.calls)
