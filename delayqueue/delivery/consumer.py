"""Reserves the jobs of topics as they become ready, for the server's own work on them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from delayqueue.domain.job import PolledTopic, Reserved
from delayqueue.engine.jobs import Jobs
from delayqueue.errors import Unavailable

if TYPE_CHECKING:
    from delayqueue.engine.wait_queue import StandingPoll

RETRY_S = 0.2  # before the next try if the store has failed
TOGETHER = 20  # jobs that begin before others have their turn: about 5 ms

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
Work = Callable[[Reserved], Coroutine[Any, Any, None]]


class Consumer:
    """Consumes topics like any worker: `work` is done on each job, in a task of its own."""

    def __init__(
        self, jobs: Jobs, topics: tuple[PolledTopic, ...], *, name: str, work: Work, spawn: Spawn
    ) -> None:
        self._jobs = jobs
        self._topics = topics
        self._name = name
        self._work = work
        self._spawn = spawn
        self._limit = 0
        self.in_hand: set[asyncio.Task[None]] = set()  # the work on its jobs
        self._reserving: asyncio.Task[None] | None = None
        self._poll: StandingPoll | None = None  # wants as many jobs as there is room for
        self._room = asyncio.Event()

    def reserve(self, limit: int) -> None:
        """Have at most `limit` jobs in hand from now on; 0 = reserve nothing more."""
        self._limit = limit
        if self._reserving is not None:  # its poll may ask for more than the new limit
            self._reserving.cancel()
            self._reserving = None
        if limit:
            self._reserving = self._spawn(self._reserve(), self._name)

    async def _reserve(self) -> None:
        while True:
            self._room.clear()
            room = self._limit - len(self.in_hand)
            if room <= 0:
                await self._room.wait()
                continue
            try:
                await self._consume(room)
            except Unavailable:
                await asyncio.sleep(RETRY_S)

    async def _consume(self, room: int) -> None:
        """Begin jobs as they become ready, endlessly, at most `room` of them before others end."""
        poll = self._poll = self._jobs.polls.consume(self._topics, room)
        try:
            while True:
                await poll.future
                await self._begin_all(poll.take())
        finally:
            self._poll = None
            self._jobs.polls.leave(poll)

    async def _begin_all(self, jobs: list[Reserved]) -> None:
        """Begin these jobs; others have their turns in between. If cancelled, gives back those that have not begun."""
        begun = 0
        try:
            for job in jobs:
                if begun and begun % TOGETHER == 0:
                    await asyncio.sleep(0)
                self._begin(job)
                begun += 1
        finally:
            self._jobs.polls.requeue(jobs[begun:])

    def _begin(self, job: Reserved) -> None:
        task = self._spawn(self._work(job), f"job of {job.topic}")
        self.in_hand.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.in_hand.discard(task)
        self._room.set()
        if self._poll is not None:
            self._jobs.polls.widen(self._poll)
