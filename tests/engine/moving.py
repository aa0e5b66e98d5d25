"""A database with two buckets, whose number changes, and what its servers see."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from inspect import iscoroutinefunction
from itertools import count
from typing import Any, Final

from redis.asyncio import Redis

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import PolledTopic
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.polls import LOOK_S
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.rebalance import Rebalance
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.layout import decoded, parse
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from delayqueue.store.types import Range
from delayqueue.store.verbs import Ending
from tests.store.bucket import WHEEL_SLOTS, scripts
from tests.store.invariants import violations

BEFORE, AFTER = 2, 3  # buckets
EVER: Final = Range(0, 10**15)
LAYOUT: Final = "{dq_bucket_1}:layout"


def all_jobs(store: Store) -> Jobs:
    """The verbs on all jobs of a store, in a process of its own."""
    return DelayQueue(store).within(EVERYWHERE)


class Installation:
    """A database with two buckets, and what its servers see."""

    def __init__(self, redis: Redis, scheduler: str) -> None:
        self.redis = redis
        self.slots = WHEEL_SLOTS if scheduler == "wheel" else 0
        self._scripts = scripts(self.slots)
        self.layout = Layout(BEFORE)

    def server(self, layout: Layout | None = None) -> Store:
        """A store that knows this layout, or the one that was in force after the last change."""
        buckets = Buckets("dq_bucket_%d", "dq_queue_%s", layout or self.layout)
        return Store(Servers.one(self.redis), buckets, self._scripts)

    def change(self, size: int = AFTER) -> Rebalance:
        """A change of the number of buckets, which has not begun."""
        return Rebalance(self.server(), size)

    async def rebalance(self, size: int = AFTER) -> Rebalance:
        """Change the number of buckets, and prove that all of them are whole."""
        work = self.change(size)
        await work.run()
        stored = parse(decoded(await self.redis.hgetall(LAYOUT)), 0)
        assert (stored.layout.size, stored.change) == (size, None)
        self.layout = stored.layout
        await self.check()
        return work

    async def check(self) -> None:
        """Prove that each job is in its bucket, once, and each bucket is whole."""
        buckets = self.server().buckets
        # a change that was given up leaves fences in the buckets that it wanted
        buckets.know(max(self.layout.size, *self.layout.former_sizes, AFTER))
        for number, keys in enumerate(buckets.keys):
            found = await violations(self.redis, keys, self.slots, among=buckets.keys)
            assert found == [], found[:5]
            for kind in ("job", "ended"):
                ids: Any = await self.redis.hkeys(f"{keys.tag}:{kind}")
                assert all(buckets.of(job_id.decode()) == number for job_id in ids)
            topics: Any = await self.redis.hkeys(f"{keys.tag}:topics")
            for topic in topics:
                ready: Any = await self.redis.lrange(keys.queue_name % topic.decode(), 0, -1)
                assert len({*ready}) == len(ready)


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


def in_any_state(ids: Iterable[str]) -> list[Ending]:
    return [Ending(job_id, None, "") for job_id in ids]


async def pop_all(queue: Jobs, topic: PolledTopic) -> list[str]:
    """The ids of all ready jobs; each bucket answers for itself."""
    popped: list[str] = []
    now = asyncio.get_running_loop().time
    while True:
        began = now()
        jobs = await queue.polls.pop((topic,), 1000, 0)
        popped += [job.id for job in jobs]
        if not jobs and now() < began + LOOK_S:  # later, a bucket may not have answered
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
