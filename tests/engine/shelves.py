"""A store in memory for the tests of the engine: ready jobs on shelves, calls that can hang or fail."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import count
from typing import Any

from fakeredis import FakeAsyncRedis

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import Reserved
from delayqueue.domain.receipt import nonce_of, receipt_for
from delayqueue.errors import Unavailable
from delayqueue.metrics import Metrics
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.caller import Caller
from delayqueue.store.bucket.replies import Reply
from delayqueue.store.scripts import ZSET
from delayqueue.store.servers.durability import Durability
from delayqueue.store.servers.shards import Shards
from delayqueue.store.types import Change, Demand, Popped, Swept, Ticked
from tests.waiting import until

QUIET = Ticked(Change([]), 0, 0, 0, 0)


class Shelves(BucketStore):
    """Ready jobs by bucket and topic. Like a real store, it never answers at once."""

    def __init__(self, buckets: int = 1) -> None:
        self.metrics = Metrics()
        self.shards, self.durability = Shards.one(FakeAsyncRedis()), Durability()
        self.buckets = Buckets("b%d", "q%s", Layout(buckets))
        self.ready: list[defaultdict[str, deque[str]]] = [
            defaultdict(deque) for _ in range(buckets)
        ]
        self.held: dict[str, str] = {}  # id -> topic
        self.calls: list[tuple[str, int]] = []  # (verb, bucket)
        self.demands: list[list[Demand]] = []  # of each pop
        self.down: set[int] = set()  # buckets that fail
        self.hung: set[int] = set()  # buckets that do not answer
        self.mad: set[int] = set()  # buckets whose answer cannot be read
        self.open = asyncio.Event()  # while it is clear, calls hang
        self.open.set()
        self.next_ticks: deque[Ticked] = deque()  # what the next ticks answer, then QUIET
        self.swept_topics: list[int] = []  # how many topics each sweep was told to check
        self.empty_topics = 0  # what sweeps can forget
        self.cut_short_sweeps = 0  # of the next ones
        self.tick_times_s: list[float] = []  # loop times
        self._numbers = count(1)
        self.caller = Caller(self.shards, self.buckets, ZSET, None, self.metrics, self.durability)
        self.caller.call = self.run  # type: ignore[method-assign, assignment]

    def put(self, topic: str, *ids: str) -> None:
        """Make jobs ready, without telling anybody."""
        for job_id in ids:
            self.ready[self.buckets.of(job_id)][topic].append(job_id)

    def id_in(self, bucket: int, word: str = "job") -> str:
        """An id that belongs to that bucket."""
        return next(i for n in count() if self.buckets.of(i := f"{word}-{n}") == bucket)

    async def pop(self, bucket: int, demands: Sequence[Demand]) -> Popped:
        self.demands.append(list(demands))
        await self._serve("pop", bucket)
        nonce = f"nonce-{next(self._numbers)}"
        found = [self._reserve(bucket, demand, nonce) for demand in demands]
        return Popped(found, len(demands), Change([]))

    async def tick(self, bucket: int, _limit: int = 0) -> Ticked:
        self.tick_times_s.append(asyncio.get_running_loop().time())
        await self._serve("tick", bucket)
        return self.next_ticks.popleft() if self.next_ticks else QUIET

    async def sweep(
        self, bucket: int, _cursor: int, topics: int, _buried_retain_ms: int | None = None
    ) -> Swept:
        await self._serve("sweep", bucket)
        self.swept_topics.append(topics)
        forgotten = min(topics, self.empty_topics)
        self.empty_topics -= forgotten
        self.cut_short_sweeps -= 1
        return Swept(0, 0, forgotten, 0, is_cut_short=self.cut_short_sweeps >= 0)

    def run(
        self,
        script: str,
        bucket: int,
        args: Sequence[Any],
        scope: Scope = EVERYWHERE,  # noqa: ARG002
        *,
        follows: bool | None = None,  # noqa: ARG002
    ) -> asyncio.Future[Reply]:
        return asyncio.ensure_future(self._reply(script, bucket, args))

    async def _reply(self, script: str, bucket: int, args: Sequence[Any]) -> Reply:
        """The answer to a requeue; to the scrubber's check, that it finds nothing."""
        await self._serve(script, bucket)
        if script != "requeue":
            return Reply([[], [], []], (), 0, Change([]), (), 0)
        ids = args[1::5]
        arrivals: defaultdict[str, int] = defaultdict(int)
        for job_id in ids:
            topic = self.held.pop(job_id)
            self.ready[bucket][topic].appendleft(job_id)
            arrivals[topic] += 1
        return Reply([], (), len(ids), Change(list(arrivals.items())), (), 0)

    async def _serve(self, verb: str, bucket: int) -> None:
        self.calls.append((verb, bucket))
        await asyncio.sleep(0)
        await self.open.wait()
        await until(lambda: bucket not in self.hung)
        if bucket in self.down:
            raise Unavailable
        if bucket in self.mad:
            raise ValueError

    def _reserve(self, bucket: int, demand: Demand, nonce: str) -> list[Reserved]:
        found: list[Reserved] = []
        for topic in demand.topics:
            shelf = self.ready[bucket][topic]
            while shelf and len(found) < demand.wanted:
                job_id = shelf.popleft()
                self.held[job_id] = topic
                receipt = receipt_for(nonce, job_id)
                assert nonce_of(receipt, job_id) == nonce
                found.append(Reserved(topic, job_id, "", 1, receipt, 0, 60_000, None))
        return found
