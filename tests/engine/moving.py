"""A database with two buckets, whose number changes, and what its servers see."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from itertools import count
from typing import Any, Final

from redis.asyncio import Redis

from delayqueue.domain.access import EVERYWHERE
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.rebalance import Rebalance
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.transfers import Transfers
from delayqueue.store.servers.shards import Shards
from delayqueue.store.store import Store
from delayqueue.store.types import Change, Range
from tests.store.bucket import WHEEL_SLOTS, scripts
from tests.store.invariants import violations

BEFORE, AFTER = 2, 3  # buckets
EVER: Final = Range(0, 10**15)


def all_jobs(store: Store) -> Jobs:
    """The verbs on all jobs of a store, in a process of its own."""
    return DelayQueue(store).within(EVERYWHERE)


def nobody(bucket: int, change: Change) -> None:
    """Waits."""


class Installation:
    """A database with two buckets, and what its servers see."""

    def __init__(self, redis: Redis, scheduler: str) -> None:
        self.redis = redis
        self.slots = WHEEL_SLOTS if scheduler == "wheel" else 0
        self._scripts = scripts(self.slots)
        self.mover = self.server().by_bucket

    def server(self) -> Store:
        """A store that knows the initial layout."""
        buckets = Buckets("dq_bucket_%d", "dq_queue_%s", Layout(BEFORE))
        return Store(BucketStore(Shards.one(self.redis), buckets, self._scripts))

    async def begin(self, size: int = AFTER) -> None:
        await self.redis.hset("{dq_bucket_1}:layout", "bucket_size", str(BEFORE))
        await Rebalance(self.mover, size).begin()

    async def finish(self) -> Rebalance:
        """Move all jobs to the buckets where they belong, and prove that these are whole."""
        work = Rebalance(self.mover, self.mover.buckets.layout.size)
        await work.run()
        buckets = self.mover.buckets
        for number, keys in enumerate(buckets.keys):
            found = await violations(self.redis, keys, self.slots, among=buckets.keys)
            assert found == []
            for kind in ("job", "ended"):
                ids: Any = await self.redis.hkeys(f"{keys.tag}:{kind}")
                assert all(buckets.of(job_id.decode()) == number for job_id in ids)
        return work

    async def export(self, job_id: str) -> Any:
        """Take a job out, and die."""
        return await Transfers(self.mover).export(source(job_id), target(job_id), [job_id])

    async def import_(self, job_id: str, transfer: Any) -> None:
        """Bring a transfer, and die."""
        await Transfers(self.mover).import_(source(job_id), target(job_id), transfer)


def source(job_id: str) -> int:
    return Buckets("%d", "%s", Layout(BEFORE)).of(job_id)


def target(job_id: str) -> int:
    return Buckets("%d", "%s", Layout(AFTER)).of(job_id)


def ids(number: int) -> list[str]:
    """This many ids that all move the same way, from the first bucket to the last."""
    names = (f"job-{n}" for n in count())
    mine = (name for name in names if (source(name), target(name)) == (0, 2))
    return [next(mine) for _ in range(number)]


A, B = ids(2)


async def pop_all(queue: Jobs, topic: str) -> list[str]:
    """The ids of all ready jobs; each bucket answers for itself."""
    popped: list[str] = []
    while jobs := await queue.pop((topic,), 1000, 0):
        popped += [job.id for job in jobs]
    return popped


def before_call(place: Any, name: str, number: int, do: Callable[[], Awaitable[Any]]) -> None:
    """Do something else just before that call of a method."""
    method, calls = getattr(place, name), 0

    async def late(*args: Any, **named: Any) -> Any:
        await do()
        return await method(*args, **named)

    def call(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            work = late(*args, **named)
            return work if iscoroutinefunction(method) else asyncio.ensure_future(work)
        return method(*args, **named)

    setattr(place, name, call)
