"""python -m bench.webhooks: 10,000 webhooks to an endpoint that fails at times, while another one hangs.

Reports what happened to each, how often one was repeated after its success, and how late the calls of a third, healthy
endpoint are with and without the one that hangs. With --kill the server is killed in the middle and restarted.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from aiohttp import web

from bench.processes import BenchError, free_port, listeners, listens, program, wait_until
from bench.target import own_server, redis_command

FAILING = 0.05  # of the calls of the flaky endpoint
HOPELESS = 20  # jobs that always fail there, and so are buried
RETRIES = ["200ms"] * 5
CONCURRENCY = 50
HANGING_JOBS = 100
PROBES_PER_S = 20
BATCH = 500
DRAIN_S = 300
KILL_S = 5
KILL_AFTER = 0.4  # of the jobs


@dataclass
class Receiver:
    """The endpoints. `succeeded` counts the 2xx answers of each job."""

    calls: Counter[str] = field(default_factory=Counter)
    succeeded: Counter[str] = field(default_factory=Counter)
    late_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    port: int = 0
    _goal: int = 0
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def reached(self, jobs: int) -> None:
        """Wait until `jobs` jobs have succeeded."""
        self._goal = jobs
        await self._reached.wait()

    async def flaky(self, request: web.Request) -> web.Response:
        """Fails for one call in twenty, and always for some jobs."""
        job_id = request.headers["webhook-id"]
        await request.read()
        self.calls[job_id] += 1
        if job_id.startswith("hopeless") or random.random() < FAILING:
            return web.Response(status=500)
        self.succeeded[job_id] += 1
        if len(self.succeeded) == self._goal:
            self._reached.set()
        return web.Response()

    async def probe(self, request: web.Request) -> web.Response:
        """Records how late it is called: the body is `phase due`."""
        phase, _, due = (await request.text()).rpartition(" ")
        self.late_s[phase].append(time.time() - float(due))
        return web.Response()

    async def hang(self, request: web.Request) -> web.Response:
        """Never answers."""
        await request.read()
        await asyncio.sleep(3600)
        return web.Response()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen while the block runs."""
        app = web.Application()
        for handler in (self.flaky, self.probe, self.hang):
            app.router.add_post(f"/{handler.__name__}", handler)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.port = runner.addresses[0][1]
            yield
        finally:
            await runner.cleanup()


class Queue:
    """The server under load, and calls to it."""

    def __init__(self, folder: Path, session: aiohttp.ClientSession) -> None:
        self._folder = folder
        self._session = session
        self._port, self._store_port = free_port(), free_port()

    @contextlib.contextmanager
    def store(self) -> Iterator[None]:
        """Its Redis."""
        with program(redis_command(self._store_port), self._store_port, self._folder):
            yield

    @contextlib.contextmanager
    def server(self) -> Iterator[None]:
        """The server process."""
        options = {"webhook_allow": "127.0.0.1/32"}
        with own_server(self._folder, self._port, self._store_port, options):
            yield

    def kill(self) -> None:
        """kill -9, and wait until it is dead."""
        for pid in listeners(self._port):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not listens(self._port), "the end of the server", KILL_S)

    async def ask(self, path: str, payload: object) -> Any:
        """The data of an answer. Raises BenchError if it is an error."""
        url = f"http://127.0.0.1:{self._port}{path}"
        async with self._session.post(url, json=payload) as response:
            answer = await response.json()
        if answer["code"] != 0:
            raise BenchError(f"{path}: {answer['message']}")
        return answer["data"]

    async def counts(self, topic: str) -> dict[str, int]:
        """The jobs of a topic by state."""
        found = [each for each in await self.ask("/topics", {}) if each["topic"] == topic]
        return found[0] if found else {"delayed": 0, "ready": 0, "reserved": 0, "buried": 0}


async def subscribe(queue: Queue, receiver: Receiver) -> None:
    """A topic for each endpoint."""
    for topic in ("flaky", "probe", "hang"):
        url = f"http://127.0.0.1:{receiver.port}/{topic}"
        payload = {"name": topic, "topic": topic, "url": url, "concurrency": CONCURRENCY}
        await queue.ask("/subscribe", payload | {"retry": {"delays": RETRIES}, "timeout": 300})


async def push_flaky(queue: Queue, jobs: int) -> None:
    """All at once, in batches."""
    ids = [f"hopeless-{n}" for n in range(HOPELESS)] + [f"job-{n}" for n in range(jobs - HOPELESS)]
    for at in range(0, jobs, BATCH):
        batch = [
            {"topic": "flaky", "id": job_id, "ttr": 5, "body": '{"n": 1}'}
            for job_id in ids[at : at + BATCH]
        ]
        await queue.ask("/push", batch)


async def probe(queue: Queue, phase: str, seconds: float) -> None:
    """Jobs that are due half a second later, at a steady pace."""
    for n in range(round(seconds * PROBES_PER_S)):
        due = time.time() + 0.5
        job = {"topic": "probe", "id": f"{phase}-{n}", "ttr": 60, "due": due}
        await queue.ask("/push", job | {"body": f"{phase} {due}"})
        await asyncio.sleep(1 / PROBES_PER_S)
    await asyncio.sleep(1.5)


async def drained(queue: Queue) -> None:
    """Wait until every flaky job is finished or buried. Raises BenchError."""
    end = time.monotonic() + DRAIN_S
    while True:
        counts = await queue.counts("flaky")
        if counts["delayed"] + counts["ready"] + counts["reserved"] == 0:
            return
        if time.monotonic() > end:
            raise BenchError(f"not all jobs came to an end in {DRAIN_S} s")
        await asyncio.sleep(0.1)


async def kill_midway(
    queue: Queue, receiver: Receiver, jobs: int, stack: contextlib.ExitStack
) -> None:
    """Kill the server when that many jobs have succeeded, and start another one."""
    await receiver.reached(round(KILL_AFTER * jobs))
    queue.kill()
    await asyncio.to_thread(stack.enter_context, queue.server())


async def measure(jobs: int, probe_s: float, *, kill: bool) -> None:
    """The whole run, in order; prints the figures."""
    receiver = Receiver()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, contextlib.ExitStack() as stack:
        # a connection for each call: those to a killed server are broken
        connector = aiohttp.TCPConnector(force_close=True)
        async with receiver.listening(), aiohttp.ClientSession(connector=connector) as session:
            queue = Queue(Path(folder), session)
            stack.enter_context(queue.store())
            stack.enter_context(queue.server())
            await subscribe(queue, receiver)
            await probe(queue, "alone", probe_s)
            hanging = [{"topic": "hang", "id": f"hang-{n}", "ttr": 60} for n in range(HANGING_JOBS)]
            await queue.ask("/push", hanging)
            await probe(queue, "beside the one that hangs", probe_s)
            began = time.monotonic()
            await push_flaky(queue, jobs)
            if kill:
                await kill_midway(queue, receiver, jobs, stack)
            await drained(queue)
            took_s = time.monotonic() - began
            buried = (await queue.counts("flaky"))["buried"]
    report(receiver, jobs, took_s, buried)


def report(receiver: Receiver, jobs: int, took_s: float, buried: int) -> None:
    """The figures as lines of a table."""
    repeated = sum(number - 1 for number in receiver.succeeded.values())
    rows = {
        "jobs": f"{jobs:,}",
        "calls": f"{receiver.calls.total():,}",
        "jobs with a 2xx": f"{len(receiver.succeeded):,}",
        "buried": f"{buried:,}",
        "in neither state": f"{jobs - len(receiver.succeeded) - buried:,}",
        "repeated after their 2xx": f"{repeated:,}",
        "calls/s": f"{receiver.calls.total() / took_s:,.0f}",
    }
    for phase, late_s in receiver.late_s.items():
        late_ms = sorted(1000 * late for late in late_s)
        middle, high = late_ms[len(late_ms) // 2], late_ms[int(len(late_ms) * 0.99)]
        rows[f"healthy endpoint {phase}: lateness p50 / p99"] = f"{middle:.1f} / {high:.1f} ms"
    for name, value in rows.items():
        print(f"| {name} | {value} |")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.webhooks", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--probe", type=float, default=10, metavar="S", help="length of a phase")
    parser.add_argument("--kill", action="store_true", help="kill the server in the middle")
    asked = parser.parse_args()
    try:
        uvloop.run(measure(asked.jobs, asked.probe, kill=asked.kill))
    except BenchError as error:
        sys.exit(f"bench.webhooks: {error}")


if __name__ == "__main__":
    main()
