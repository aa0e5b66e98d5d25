"""A store in memory for the tests of the engine: ready jobs on shelves, calls that can hang or fail."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import count

from fakeredis import FakeAsyncRedis

from delayqueue.domain.job import Reserved
from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.call import Reply, ScriptCall
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from delayqueue.store.types import Change, Demand, Popped, Swept, Ticked
from tests.store.between import WORK
from tests.waiting import until

QUIET = Ticked(Change([]), 0, 0, 0, 0)


class Shelves(Store):
    """Ready jobs by bucket and topic. Like a real store, it never answers at once."""

    def __init__(self, buckets: int = 1, shelf: "type[Shelf] | None" = None) -> None:
        super().__init__(Servers.one(FakeAsyncRedis()), Buckets("b%d", "q%s", Layout(buckets)))
        self._buckets = [(shelf or Shelf)(number, self) for number in range(buckets)]
        self.ready: list[defaultdict[str, deque[str]]] = [
            defaultdict(deque) for _ in range(buckets)
        ]
        self.held: dict[str, str] = {}  # id -> topic
        self.calls: list[tuple[str, int]] = []  # (verb, bucket)
        self.demands: list[list[Demand]] = []  # of each pop
        self.down: set[int] = set()  # buckets that fail
        self.hung: set[int] = set()  # buckets that do not answer
        self.mad: set[int] = set()  # buckets whose answer cannot be read
        self.is_open = asyncio.Event()  # while it is clear, calls hang
        self.is_open.set()
        self.in_flight = 0  # calls that are not answered
        self.next_ticks: deque[Ticked] = deque()  # what the next ticks answer, then QUIET
        self.swept_topics: list[int] = []  # how many topics each sweep was told to check
        self.empty_topics = 0  # what sweeps can forget
        self.cut_short_sweeps = 0  # of the next ones
        self.tick_times_s: list[float] = []  # loop times
        self.numbers = count(1)

    def put(self, topic: str, *ids: str) -> None:
        """Make jobs ready, without telling anybody."""
        for job_id in ids:
            self.ready[self.buckets.of(job_id)][topic].append(job_id)

    def id_in(self, bucket: int, word: str = "job") -> str:
        """An id that belongs to that bucket."""
        return next(i for n in count() if self.buckets.of(i := f"{word}-{n}") == bucket)

    async def serve(self, verb: str, bucket: int) -> None:
        self.calls.append((verb, bucket))
        self.in_flight += 1
        try:
            await asyncio.sleep(0)
            await self.is_open.wait()
            await until(lambda: bucket not in self.hung)
        finally:
            self.in_flight -= 1
        if bucket in self.down:
            raise Unavailable
        if bucket in self.mad:
            raise ValueError

    def reserve(self, bucket: int, demand: Demand, nonce: str) -> list[Reserved]:
        found: list[Reserved] = []
        for topic in map(str, demand.topics):
            shelf = self.ready[bucket][topic]
            while shelf and len(found) < demand.wanted:
                job_id = shelf.popleft()
                self.held[job_id] = topic
                found.append(Reserved(topic, job_id, b"", 1, nonce, 0, 60_000, None))
        return found


class Shelf(Bucket):
    """A bucket of the Shelves."""

    def __init__(self, number: int, shelves: Shelves) -> None:
        super().__init__(number, shelves)
        self._shelves = shelves

    def pop(self, demands: Sequence[Demand]) -> asyncio.Future[Popped]:
        return asyncio.ensure_future(self._pop(demands))

    async def _pop(self, demands: Sequence[Demand]) -> Popped:
        shelves = self._shelves
        shelves.demands.append(list(demands))
        await shelves.serve("pop", self.number)
        nonce = f"nonce-{next(shelves.numbers)}"
        found = [shelves.reserve(self.number, demand, nonce) for demand in demands]
        return Popped(found, len(demands), Change([]))

    async def tick(self, _limit: int = 0) -> Ticked:
        shelves = self._shelves
        shelves.tick_times_s.append(asyncio.get_running_loop().time())
        await shelves.serve("tick", self.number)
        return shelves.next_ticks.popleft() if shelves.next_ticks else QUIET

    async def sweep(self, _cursor: int, topics: int, _retain_ms: int | None = None) -> Swept:
        shelves = self._shelves
        await shelves.serve("sweep", self.number)
        shelves.swept_topics.append(topics)
        forgotten = min(topics, shelves.empty_topics)
        shelves.empty_topics -= forgotten
        shelves.cut_short_sweeps -= 1
        return Swept(0, 0, forgotten, 0, is_cut_short=shelves.cut_short_sweeps >= 0)

    def send(self, call: ScriptCall) -> None:
        WORK.add(task := asyncio.ensure_future(self._answer(call)))
        task.add_done_callback(WORK.discard)

    async def _answer(self, call: ScriptCall) -> None:
        """The answer to a requeue; to the scrubber's check, that it finds nothing."""
        script, shelves = call.function.head.name, self._shelves
        try:
            await shelves.serve(script, self.number)
        except Exception as error:
            call.end(error)
            return
        if script != "requeue":
            call.end(Reply([[], [], []], (), 0, Change([]), (), 0))
            return
        ids = call._args[1::6]
        arrivals: defaultdict[str, int] = defaultdict(int)
        for job_id in ids:
            topic = shelves.held.pop(job_id)
            shelves.ready[self.number][topic].appendleft(job_id)
            arrivals[topic] += 1
        call.end(Reply([], (), len(ids), Change(list(arrivals.items())), (), 0))
