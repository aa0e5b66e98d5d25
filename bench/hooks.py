"""What a webhook costs at a steady rate: processor time, and calls of the store, for each job."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Final

import aiohttp
import uvloop
from aiohttp import web

from bench.measure import Figure, Measure, Outcome, Scale, new_topic
from bench.processes import BenchError, cpu_seconds, listeners
from bench.target import Server

RATES: Final = (50, 300, 1000)  # jobs/s, each pushed by a request of its own
BURST_JOBS: Final = 5000
BATCH: Final = 500  # jobs of a burst in a request
CONCURRENCY: Final = 50  # of the subscriber
BODY: Final = '{"order": 1001, "user": 7, "kind": "bench"}'
KNOWN_S: Final = 1.5  # until the server has begun to serve a new subscriber
DRAIN_S: Final = 60


class Receiver:
    """Answers each webhook with 200 at once. `ids` are those of the jobs that came."""

    def __init__(self) -> None:
        self.calls = 0
        self.ids = set[str]()
        self.url = ""

    async def reached(self, calls: int) -> None:
        """Wait for that many calls in all. Raises BenchError if they do not come."""
        end_s = time.monotonic() + DRAIN_S
        while self.calls < calls:
            if time.monotonic() > end_s:
                raise BenchError(f"{calls - self.calls} webhooks did not come in {DRAIN_S} s")
            await asyncio.sleep(0.02)

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
        self.calls += 1
        self.ids.add(request.headers["webhook-id"])
        return web.Response()


class Client:
    """Pushes jobs of one topic."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self._url = server.url
        self._session = session
        self._topic = new_topic()
        self._ids = itertools.count()

    async def subscribe(self, url: str) -> None:
        """Subscribe this URL to the topic. Raises BenchError if the server refuses it."""
        asked = {"name": self._topic, "topic": self._topic, "url": url}
        await self._ask("/subscribe", asked | {"concurrency": CONCURRENCY})

    async def push_at(self, rate: int, jobs: int) -> None:
        """Push jobs at this rate, one a request."""
        began_s = time.monotonic()
        pushes = []
        for number in range(jobs):
            await asyncio.sleep(began_s + number / rate - time.monotonic())
            pushes.append(asyncio.create_task(self._ask("/push", self._job())))
        await asyncio.gather(*pushes)

    async def push_burst(self, jobs: int) -> None:
        """Push jobs in arrays, one after the other."""
        for _ in range(0, jobs, BATCH):
            await self._ask("/push", [self._job() for _ in range(BATCH)])

    def _job(self) -> dict[str, object]:
        job_id = f"{self._topic}-{next(self._ids)}"
        return {"topic": self._topic, "id": job_id, "ttr": 60, "body": BODY}

    async def _ask(self, path: str, asked: object) -> None:
        async with self._session.post(self._url + path, json=asked) as response:
            answer = await response.json()
        if answer["code"] != 0:
            raise BenchError(f"{path}: {answer['message']}")


def hooks(server: Server, scale: Scale) -> Outcome:
    """Each rate, and a burst."""
    return Outcome(uvloop.run(_measured(server, scale)))


async def _measured(server: Server, scale: Scale) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    receiver = Receiver()
    async with receiver.listening(), aiohttp.ClientSession() as session:
        client = Client(server, session)
        await client.subscribe(receiver.url)
        await asyncio.sleep(KNOWN_S)
        for rate in RATES:
            jobs = rate * scale.hook_seconds
            load = client.push_at(rate, jobs)
            figures |= await _cost(server, receiver, f"{rate}/s", jobs, load)
        load = client.push_burst(BURST_JOBS)
        figures |= await _cost(server, receiver, "burst", BURST_JOBS, load)
    return figures


async def _cost(
    server: Server, receiver: Receiver, name: str, jobs: int, load: Awaitable[None]
) -> dict[str, Figure]:
    """What the load costs, until its last webhook has come."""
    store = server.seen()
    pids = {"server": listeners(server.port), "Redis": [int(store.info("process_id"))]}
    before = {name: cpu_seconds(them) for name, them in pids.items()}
    calls, goal = store.script_calls(), receiver.calls + jobs
    await load
    await receiver.reached(goal)
    await asyncio.sleep(0.2)  # the last jobs end
    figures = {
        f"{name}: {who}": Figure(1e6 * (cpu_seconds(them) - before[who]) / jobs, "µs/job")
        for who, them in pids.items()
    }
    return figures | {
        f"{name}: store calls": Figure((store.script_calls() - calls) / jobs, "calls/job")
    }


MEASURES: Final = (
    Measure("webhooks", "a subscriber's jobs at three rates: costs", hooks, by_default=False),
)
