"""All loads at once, for half an hour: what grows, what others' jobs feel, and whether each job was delivered."""

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final, TypeVar

from aiohttp import web

from bench.measure import Figure, Figures, Measure, Scale, new_topic
from bench.probe import Probe, percentile
from bench.processes import BenchError, listeners, open_files, resident_bytes
from bench.target import Server
from delayqueue import AsyncClient
from delayqueue.client import Job, ReservedJob
from delayqueue.client.api_request import TransportError
from delayqueue.errors import Code, QueueError, Unavailable

EVERY_S: Final = 5.0  # each load, its next jobs
WARM_SHARE: Final = 0.2  # of the time: growth is what comes after it
TOPICS: Final = 1_024  # with jobs that are due together
LISTED: Final = 64  # topics of a consumer's list
STEP: Final = 32  # by which the next consumer's list begins later: each topic is in two
TTR_JOBS: Final = 300
TTR_S: Final = 1
RETRIES_S: Final = (1, 1)
EXPIRING: Final = 500
EXPIRE_S: Final = 1
TAGGED: Final = 2_000
ASLEEP_S: Final = 3_600
HOOKS: Final = 200
CALLS_AT_ONCE: Final = 20
BATCH: Final = 1_000  # jobs of a push
COUNT: Final = 100  # of a pop
POLL_S: Final = 2
ENDS_S: Final = 300.0  # from the last push until the last job, at most
ANSWER_S: Final = 60.0
AGAIN_S: Final = 1.0  # before a refused call is repeated

T = TypeVar("T")
Load = Callable[[], Awaitable[None]]


class Receiver:
    """Answers each webhook with 200 at once. `ids` are those of the jobs that came."""

    def __init__(self) -> None:
        self.ids = set[str]()
        self.url = ""

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen while the block runs."""
        runner = web.ServerRunner(web.Server(self._answer))
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        await request.read()
        self.ids.add(request.headers["webhook-id"])
        return web.Response()


class Soak:
    """The loads on one server. Each job that was pushed to be delivered is in `missing` until a consumer ends it.

    A call that the server refuses, or does not answer, is counted in `refused` and repeated: jobs keep their ids.
    """

    def __init__(self, queue: AsyncClient, receiver: Receiver) -> None:
        self.pushed = self.lost_endings = self.refused = 0
        self.missing: set[str] = set()
        self.hooks: set[str] = set()  # jobs with a webhook
        self._queue, self._receiver = queue, receiver
        self._prefix = new_topic()
        self._ids = (f"{self._prefix}-{number}" for number in itertools.count())
        self._topics = [self._name(f"due-{number}") for number in range(TOPICS)]
        self._bulks = itertools.count()
        self._ended = asyncio.Event()

    async def run(self, length_s: float) -> None:
        """All loads for that long, until their last jobs have come."""
        name = self._name("hook")
        await self._insist(
            lambda: self._queue.subscribe(
                name, name, self._receiver.url, concurrency=CALLS_AT_ONCE, if_exists="replace"
            )
        )
        lists = [
            [self._topics[(start + place) % TOPICS] for place in range(LISTED)]
            for start in range(0, TOPICS, STEP)
        ]
        loads = (
            self._push_due,
            self._push_short,
            self._push_expiring,
            self._push_hooks,
            self._bulk,
        )
        async with asyncio.TaskGroup() as tasks:
            for listed in lists:
                tasks.create_task(self._consume(listed, 1))
            tasks.create_task(self._consume([self._name("ttr")], 2))
            async with asyncio.TaskGroup() as pushes:
                for load in loads:
                    pushes.create_task(_again_and_again(load, length_s))
            end = time.monotonic() + ENDS_S
            while self._is_open():
                if time.monotonic() > end:
                    break
                await asyncio.sleep(0.1)
            self._ended.set()

    async def left(self) -> int:
        """Jobs that the store still has, of topics that should be empty."""
        found = await self._insist(lambda: self._queue.topics(match=self._prefix))
        return sum(topic.delayed + topic.ready + topic.reserved + topic.buried for topic in found)

    def hooks_missing(self) -> int:
        """Webhooks that were not called."""
        return len(self.hooks - self._receiver.ids)

    def _is_open(self) -> bool:
        return bool(self.missing) or self.hooks_missing() > 0

    def _name(self, kind: str) -> str:
        return f"{self._prefix}-{kind}"

    async def _push(self, jobs: Iterable[Job], *, is_delivered: bool = True) -> None:
        pushed = list(jobs)
        if is_delivered:
            self.missing.update(job.id for job in pushed)
        for at in range(0, len(pushed), BATCH):
            await self._push_batch(pushed[at : at + BATCH])
        self.pushed += len(pushed)

    async def _push_batch(self, left: list[Job]) -> None:
        async def push() -> None:
            nonlocal left
            outcomes = await self._queue.push_many(left)
            left = [job for job, outcome in zip(left, outcomes, strict=True) if outcome.code]
            if left:
                raise Unavailable

        await self._insist(push)

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer, however often the call is refused. Raises BenchError if that does not end."""
        end = time.monotonic() + ENDS_S
        while True:
            try:
                return await call()
            except (QueueError, TransportError) as error:
                self.refused += 1
                print(f"  a call was refused: {error!r}", file=sys.stderr, flush=True)
                if time.monotonic() > end:
                    raise BenchError(f"refused for {ENDS_S:.0f} s: {error!r}") from error
            await asyncio.sleep(AGAIN_S)

    async def _push_due(self) -> None:
        """A job in each of many topics, all due at once."""
        due = time.time() + EVERY_S / 2
        await self._push(Job(topic=topic, id=next(self._ids), due=due) for topic in self._topics)

    async def _push_short(self) -> None:
        """Jobs whose TTR ends once, and whose schedule delays them then."""
        topic = self._name("ttr")
        await self._push(
            Job(topic=topic, id=next(self._ids), ttr=TTR_S, retry=RETRIES_S)
            for _ in range(TTR_JOBS)
        )

    async def _push_expiring(self) -> None:
        topic = self._name("expire")
        jobs = [Job(topic=topic, id=next(self._ids), expire=EXPIRE_S) for _ in range(EXPIRING)]
        await self._push(jobs, is_delivered=False)

    async def _push_hooks(self) -> None:
        jobs = [Job(topic=self._name("hook"), id=next(self._ids)) for _ in range(HOOKS)]
        await self._push(jobs, is_delivered=False)
        self.hooks.update(job.id for job in jobs)

    async def _bulk(self) -> None:
        """Jobs of a tag that are moved, made ready, and dropped by their tag or their topic."""
        tag, topic = self._name("tag"), self._name("bulk")
        jobs = [
            Job(topic=topic, id=next(self._ids), delay=ASLEEP_S, tags=(tag,)) for _ in range(TAGGED)
        ]
        await self._push(jobs, is_delivered=False)
        await self._insist(lambda: self._queue.reschedule_tag(tag, by=60))
        await self._insist(lambda: self._queue.kick_tag(tag, topic=topic, state="delayed"))
        if next(self._bulks) % 2:
            await self._insist(lambda: self._queue.cancel(tag))
        else:
            await self._insist(lambda: self._queue.purge(topic))

    async def _consume(self, topics: list[str], attempt: int) -> None:
        """End each job of the topics at that attempt; those before it are left to their TTR."""
        while not self._ended.is_set():
            popped = await self._insist(
                lambda: self._queue.pop_many(*topics, count=COUNT, wait=POLL_S)
            )
            done = [job for job in popped if job.attempt >= attempt]
            if done:
                await self._finish(done)

    async def _finish(self, jobs: list[ReservedJob]) -> None:
        outcomes = await self._insist(lambda: self._queue.finish_many(jobs))
        for job, outcome in zip(jobs, outcomes, strict=True):
            if outcome.code in (Code.OK, Code.NO_SUCH_JOB):  # a call before this one has ended it
                self.missing.discard(job.id)
            else:
                self.lost_endings += 1  # its TTR was over, or nobody answered: it comes again


async def _again_and_again(load: Load, length_s: float) -> None:
    end = time.monotonic() + length_s
    while time.monotonic() < end:
        next_at = time.monotonic() + EVERY_S
        await load()
        await asyncio.sleep(max(0.0, next_at - time.monotonic()))


def soak(server: Server, scale: Scale) -> Figures:
    """All loads beside a probe, for `scale.soak_minutes`."""
    return asyncio.run(_soaked(server, 60 * scale.soak_minutes))


async def _soaked(server: Server, length_s: float) -> dict[str, Figure]:
    pids = {"server": listeners(server.port), "Redis": [int(server.store.info("process_id"))]}

    def sizes() -> dict[str, tuple[float, int]]:
        return {who: (resident_bytes(them) / 2**20, open_files(them)) for who, them in pids.items()}

    probe, receiver = Probe(server.url), Receiver()
    async with receiver.listening(), AsyncClient(server.url, timeout=ANSWER_S) as queue:
        loads = Soak(queue, receiver)
        with probe.beside():
            running = asyncio.create_task(loads.run(length_s))
            await asyncio.sleep(WARM_SHARE * length_s)
            before = sizes()
            await running
        after, left = sizes(), await loads.left()
    figures = {
        "jobs": Figure(loads.pushed, "jobs"),
        "not delivered": Figure(len(loads.missing) + loads.hooks_missing(), "jobs"),
        "left in the store": Figure(left, "jobs"),
        "ended after their TTR": Figure(loads.lost_endings, "jobs"),
        "refused, and repeated": Figure(loads.refused, "calls"),
        "probe: not delivered": Figure(max(0, len(probe.pushes) - len(probe.arrivals)), "jobs"),
        "probe: refused": Figure(probe.refused, "pushes"),
        "probe: push p99.9": Figure(percentile(probe.pushes, 99.9), "ms"),
        "probe: late p99.9": Figure(percentile(probe.arrivals, 99.9), "ms"),
        "probe: late max": Figure(percentile(probe.arrivals, 100), "ms"),
    }
    for who, (mib, files) in after.items():
        figures[f"{who}: memory"] = Figure(mib, "MiB")
        figures[f"{who}: memory since the warm-up"] = Figure(mib - before[who][0], "MiB")
        figures[f"{who}: open files since the warm-up"] = Figure(files - before[who][1], "files")
    return figures


MEASURES: Final = (
    Measure(
        "soak",
        "all loads at once for half an hour (--minutes): memory, open files, p99.9, lost jobs",
        soak,
        repeated=False,
        by_default=False,
    ),
)
