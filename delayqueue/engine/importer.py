"""Imports the jobs of an installation of the original. Nothing is lost, nothing repeated.

The two stores share no transaction, so each job moves in three steps, a batch at a time:

- 1. It is *staged* in the destination: a delayed job whose due time never comes, which every verb can reach all the
  same.
- 2. It is removed from the original, unless it has changed since it was read: finished, deleted, popped or moved.
- 3. Staged jobs that were removed there get their due time; the others are dropped again.

The original's Redis holds a note of what is being moved from before the first step until the second, so an import that
was killed in between is completed by the next one.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from delayqueue.config.startup import StartupError
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import IfExists, Job
from delayqueue.domain.limit import WhenFull
from delayqueue.errors import Code, Unavailable
from delayqueue.store.original import CLOCKS_S, Packed, Place, Standing, standing, unpack
from delayqueue.store.original.source import PAGE, AnotherImport, Original, StoredId, Take
from delayqueue.store.record import text
from delayqueue.store.store import Store
from delayqueue.store.topics import FIRST, limits_in
from delayqueue.store.verbs import PUSH, SETTLE, STAGED_DUE_MS, Settlement

log = logging.getLogger(__name__)

# between two looks at what the old server still works on: its timer's interval
PAUSE_S: Final = 1.0
EXISTS: Final = "the destination has another job of this id"

Page = Callable[[int], Awaitable[list[bytes]]]


class _Plan(NamedTuple):
    """A job that can be moved now."""

    look: StoredId
    job: Packed
    standing: Standing


class Importer:
    """One import. Raises Unavailable if the destination fails, RedisError if the original's Redis does."""

    def __init__(self, original: Original, store: Store, destination: str) -> None:
        """`destination` is a name that no other store's data has."""
        self._original = original
        self._store = store
        self._destination = destination
        self._queues: set[bytes] = set()
        self._strays: set[bytes] = set()
        self._lost_since_s: dict[bytes, int] = {}
        # whether nothing was waiting when strays were last looked for; None = not looked for since something moved
        self._searched_idle: bool | None = None
        self.imported: Counter[Place] = Counter()
        self.set_aside = 0
        self.dropped_entries = 0  # of jobs that had ended
        self._dropping: set[str] = set()  # topics in which one more job would end another
        self._left: dict[bytes, str] = {}  # jobs for which their topics, the values, have no room
        self.waiting: Counter[Place] = Counter()  # what the old server is working on
        self.server_runs = True  # as far as is known

    async def run(self) -> None:
        """Import everything; while an old server runs, until it holds no more jobs.

        Jobs of topics with too small a `max_jobs` are left.
        """
        async with self._original.locked():
            await self._complete()
            self._queues = await self._original.queues()
            more = True
            while more:
                more = await self._round()
                await asyncio.sleep(PAUSE_S if self.waiting else 0)
            await self._original.claim()

    async def _complete(self) -> None:
        """Complete an import that was killed. Raises StartupError if it had another destination."""
        moving = await self._original.moving()
        if not moving.staged and not moving.taken:
            return
        if moving.destination != self._destination:
            raise StartupError(
                "an import of these jobs into another store was interrupted: finish that import first"
            )
        await self._settle({**dict.fromkeys(moving.staged), **moving.taken})

    async def _round(self) -> bool:
        """Go through everything once. Returns whether something is, or may be, left."""
        before = self._progress()
        await self._original.claim()
        buckets = await self._original.buckets()
        self.server_runs = await self._original.probe_server()
        self.waiting.clear()
        self._left.clear()
        limits = await limits_in(self._store.bucket(FIRST))
        self._dropping = {
            topic for topic, limit in limits.items() if limit.when_full == WhenFull.DROP_OLDEST
        }
        for queue in sorted(self._queues):
            await self._drain(partial(self._original.in_queue, queue), queue)
        for bucket in buckets:
            await self._drain(partial(self._original.in_bucket, bucket))
        await self._take_strays()
        if self._progress() != before:
            self._searched_idle = None
            return True
        idle, searched_idle = not self.waiting, self._searched_idle
        self._searched_idle = idle
        if searched_idle is None or (idle and not searched_idle):
            # the old timer may have moved a job from a bucket that was not read yet to a list that was: look again
            self._strays = await self._original.strays()
            return True
        return not idle

    @property
    def left(self) -> Counter[str]:
        """How many jobs are left, by topic, because it has no room for them."""
        return Counter(self._left.values())

    def _leave(self, plans: Iterable[_Plan]) -> None:
        self._left |= {plan.look.id: plan.job.topic for plan in plans}

    def _progress(self) -> int:
        return self.imported.total() + self.set_aside + self.dropped_entries

    async def _drain(self, page: Page, queue: bytes | None = None) -> None:
        """Move what can be moved from a bucket or a ready list; the rest stays at its front."""
        left = 0
        while ids := await page(left):
            left += len(ids) - await self._take(ids, queue)

    async def _take_strays(self) -> None:
        """Move records that are in no index. A record that is in one again is moved with that."""
        await self._take(sorted(self._strays - self._left.keys()))  # those are in their lists
        self._strays &= self._lost_since_s.keys()

    async def _take(self, ids: Iterable[bytes], queue: bytes | None = None) -> int:
        """Move what can be moved of these ids; returns how many entries are gone."""
        todo = [job_id for job_id in dict.fromkeys(ids) if job_id != self._original.probe]
        gone = 0
        while todo:
            now_s, looks = await self._original.look(todo[:PAGE])
            gone += await self._move(looks, now_s, queue)
            del todo[: len(looks)]
        return gone

    async def _move(self, looks: list[StoredId], now_s: int, queue: bytes | None) -> int:
        """Move what can be moved of one batch; returns how many entries are gone."""
        plans: list[_Plan] = []
        takes: list[Take] = []
        for look in looks:
            plan = self._plan(look, now_s, listed=queue is not None)
            if isinstance(plan, _Plan):
                plans.append(plan)
            elif plan:
                takes.append(plan)
        if plans:
            takes += await self._stage(plans)
        if not takes:
            return 0
        dues = {take.look.id: take.due_ms for take in takes if take.due_ms is not None}
        try:
            taken = await self._original.take(takes, queue)
        except AnotherImport:
            await self._settle(dict.fromkeys(dues))
            raise
        results = list(zip(takes, taken, strict=True))
        left = {take.look.id: None for take, done in results if take.look.id in dues and not done}
        await self._settle({**dues, **left})
        places = {plan.look.id: plan.standing.place for plan in plans}
        for take, done in results:
            self._count(take, places.get(take.look.id), done=done)
        return sum(taken)

    def _plan(self, look: StoredId, now_s: int, *, listed: bool) -> _Plan | Take | None:
        """What to do with an id; None = the old server has it for now."""
        since_s = self._lost_since_s.pop(look.id, now_s)
        if look.record is None:
            return Take(look)
        try:
            job = unpack(look.record, look.id)
        except ValueError as error:
            return Take(look, reason=str(error))
        self._queues.add(self._original.names.queue(job.topic))
        found = standing(job, look.times_s, now_s, listed=listed)
        if found.free or not self.server_runs:
            return _Plan(look, job, found)
        if found.place is Place.LOST:
            self._lost_since_s[look.id] = since_s
            if now_s > since_s + job.ttr_s + CLOCKS_S:  # no worker can still have it
                return _Plan(look, job, found._replace(due_s=job.due_s))
        self.waiting[found.place] += 1
        return None

    async def _stage(self, plans: list[_Plan]) -> list[Take]:
        """Put jobs into the destination, not yet deliverable; returns how to remove them from the original.

        A topic that is full, or would drop another job for each, gets none.
        """
        self._leave(plan for plan in plans if plan.job.topic in self._dropping)
        plans = [plan for plan in plans if plan.job.topic not in self._dropping]
        await self._original.claim([plan.look.id for plan in plans], self._destination)
        jobs = [_staged(plan.job) for plan in plans]
        pushed = await self._store.run(PUSH, jobs, EVERYWHERE)
        if {one.code for one in pushed} - {Code.OK, Code.JOB_EXISTS, Code.TOPIC_FULL}:
            await self._settle(dict.fromkeys(plan.look.id for plan in plans))
            raise Unavailable
        takes: list[Take] = []
        for plan, one in zip(plans, pushed, strict=True):
            if one.code == Code.TOPIC_FULL:
                self._leave([plan])
            elif one.code == Code.JOB_EXISTS:
                takes.append(Take(plan.look, reason=EXISTS))
            else:
                takes.append(Take(plan.look, due_ms=plan.standing.due_s * 1000))
        return takes

    async def _settle(self, dues_ms: Mapping[bytes, int | None]) -> None:
        """Give staged jobs their due times, and drop those without one: they were not removed from the original.

        Raises Unavailable if the store refuses that for one of them.
        """
        settled = await self._store.run(
            SETTLE, [Settlement(text(one), due) for one, due in dues_ms.items()], EVERYWHERE
        )
        if Code.UNAVAILABLE in settled:
            raise Unavailable

    def _count(self, take: Take, place: Place | None, *, done: bool) -> None:
        if not done:  # it has changed since it was read
            self.waiting[place or Place.DUE] += 1
        elif take.reason:
            self.set_aside += 1
            log.warning("set aside %s: %s", text(take.look.id), take.reason)
        elif place:
            self._lost_since_s.pop(take.look.id, None)
            self.imported[place] += 1
        else:
            self.dropped_entries += 1


def _staged(job: Packed) -> Job:
    return Job(
        topic=job.topic,
        id=job.id,
        body=job.body,
        ttr_ms=job.ttr_s * 1000,
        due_ms=STAGED_DUE_MS,
        if_exists=IfExists.FAIL,
    )
