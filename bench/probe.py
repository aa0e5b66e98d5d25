"""A probe: jobs on a topic of its own, which show what a load on other topics does to everybody else."""

import asyncio
import contextlib
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Final

from bench.measure import new_topic
from bench.processes import run_before_others
from delayqueue import AsyncClient
from delayqueue.client.api_request import TransportError
from delayqueue.errors import QueueError

EVERY_S: Final = 0.01
SOONEST_S, LATEST_S = 0.005, 0.08  # from a push to its due time
CONSUMERS: Final = 4
MOST: Final = 100  # jobs that one takes at a time
POLL_S: Final = 1
ENDS_S: Final = 30.0  # for the last jobs to arrive
ANSWER_S: Final = 60.0

_SPAWN: Final = multiprocessing.get_context("spawn")

Times = list[tuple[float, float]]  # when, and how many ms


class Probe:
    """Pushes a job each 10 ms, due 5 to 80 ms later, and takes each as it comes.

    It runs in a process of its own, beside the load, and as root before all others: it shall show what waits in the
    server and the store, and not what waits for this program.

    `pushes`: when each began, and how long it took. `arrivals`: when each was due, and how late it came. `refused`: how
    many pushes had no answer, or a refusal. All are known after `beside`.
    """

    def __init__(self, url: str) -> None:
        self.pushes: Times = []
        self.arrivals: Times = []
        self.refused = 0
        self._url = url

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Probe until the end of the block, and until the last job has arrived."""
        here, there = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_probe, args=(self._url, there), daemon=True)
        process.start()
        there.close()
        here.recv()
        try:
            yield
        finally:
            here.send(None)
            self.pushes, self.arrivals, self.refused = here.recv()
            process.join()


def _probe(url: str, bench: Connection) -> None:
    """Probe, in a process of its own, until the bench says that it is over."""
    run_before_others(os.getpid())
    bench.send(None)
    probing = _Probing(url)
    asyncio.run(probing.run(bench))
    bench.send((probing.pushes, probing.arrivals, probing.refused))


class _Probing:
    def __init__(self, url: str) -> None:
        self.pushes: Times = []
        self.arrivals: Times = []
        self.refused = 0
        self._url = url
        self._topic = new_topic()
        self._is_over = False

    async def run(self, bench: Connection) -> None:
        async with AsyncClient(self._url, timeout=ANSWER_S) as queue, asyncio.TaskGroup() as tasks:
            for _ in range(CONSUMERS):
                tasks.create_task(self._take(queue))
            while not bench.poll():
                tasks.create_task(self._push(queue))
                await asyncio.sleep(EVERY_S)
            self._is_over = True

    async def _push(self, queue: AsyncClient) -> None:
        began_at = time.time()
        due = began_at + random.uniform(SOONEST_S, LATEST_S)
        try:
            await queue.push(self._topic, str(due), due=due)
        except (QueueError, TransportError) as error:
            self.refused += 1
            print(f"  a push of the probe was refused: {error}", file=sys.stderr)
        else:
            self.pushes.append((began_at, 1000 * (time.time() - began_at)))

    async def _take(self, queue: AsyncClient) -> None:
        end = None
        while end is None or (len(self.arrivals) < len(self.pushes) and time.monotonic() < end):
            with contextlib.suppress(QueueError, TransportError):
                # more than one if they come late: the next ones must not wait for the probe itself
                jobs = await queue.pop_many(self._topic, count=MOST, wait=POLL_S)
                arrived_at = time.time()
                self.arrivals += [
                    (float(job.body), 1000 * (arrived_at - float(job.body))) for job in jobs
                ]
                if jobs:
                    await queue.finish_many(jobs)
            if end is None and self._is_over:
                end = time.monotonic() + ENDS_S


def percentile(times: Times, percent: float, since: float = 0.0) -> float:
    """That percentile of those that began at `since` or later, ms; 100 is the longest one."""
    found = sorted(ms for at, ms in times if at >= since)
    return found[min(len(found) - 1, int(len(found) * percent / 100))]
