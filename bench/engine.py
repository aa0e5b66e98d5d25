"""python -m bench.engine: what engine and store take of the processor for a push, a pop, a finish, without HTTP.

Callers of one process work at once, each with one job after the other, on a Redis of its own; figures are µs a job
of this process and of Redis, from /proc. `--profile` shows where the time of this process goes.
"""

import argparse
import asyncio
import cProfile
import pstats
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Final

import uvloop

from bench.processes import cpu_seconds, free_port, program
from bench.target import redis_command
from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import Job
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.server.store import open_store
from delayqueue.store.servers.connect import connect
from delayqueue.tasks import cancel_all
from tests.processes import LOOPBACK

TOPIC: Final = "engine"
BODY: Final = "b" * 40
DAY_MS: Final = 86_400_000


def main() -> None:
    """Measure and print the table."""
    asked = _parser().parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, program(redis_command(port), port, Path(folder)):
        uvloop.run(_measure(port, asked))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--jobs", type=int, default=30_000, metavar="N")
    parser.add_argument("--callers", type=int, default=32, metavar="N", help="at once")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--profile", action="store_true")
    return parser


async def _measure(port: int, asked: argparse.Namespace) -> None:
    config = Config(redis_host=Address(LOOPBACK, port))
    async with connect(config, None) as shards:
        queue = DelayQueue(await open_store(shards, config))
        loops = [asyncio.create_task(run()) for run in queue.background().values()]
        [redis] = shards.servers().values()
        store_pid = int((await redis.info())["process_id"])
        print("| | µs of this process | µs of Redis | jobs/s |\n| --- | --- | --- | --- |")
        for _ in range(asked.rounds):
            for name, work in _works(queue.within(EVERYWHERE)).items():
                print(f"| {name} | {await _timed(work, asked, store_pid)} |", flush=True)
        await queue.aclose()
        await cancel_all(loops)


def _works(jobs: Jobs) -> dict[str, Callable[[], Awaitable[object]]]:
    """What each caller does repeatedly."""
    numbers, ids = count(), count()
    reserved: list[tuple[str, str]] = []

    async def push() -> None:
        await jobs.push(_job(f"sleeping-{next(numbers)}", DAY_MS))

    async def push_ready() -> None:
        await jobs.push(_job(f"ready-{next(ids)}", 0))

    async def pop() -> None:
        [job] = await jobs.polls.pop((TOPIC,), 1, 10)
        reserved.append((job.id, job.receipt))

    async def finish() -> None:
        job_id, receipt = reserved.pop()
        await jobs.finish([job_id], [receipt])

    return {"push, due tomorrow": push, "push, due now": push_ready, "pop": pop, "finish": finish}


def _job(job_id: str, delay_ms: int) -> Job:
    return Job(topic=TOPIC, id=job_id, body=BODY, ttr_ms=DAY_MS, delay_ms=delay_ms)


async def _timed(
    work: Callable[[], Awaitable[object]], asked: argparse.Namespace, store_pid: int
) -> str:
    left = asked.jobs

    async def call() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await work()

    profile = cProfile.Profile() if asked.profile else None
    began_s, store_began_s, at_s = time.process_time(), cpu_seconds([store_pid]), time.monotonic()
    if profile:
        profile.enable()
    await asyncio.gather(*(call() for _ in range(asked.callers)))
    if profile:
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    ours_us = (time.process_time() - began_s) * 1e6 / asked.jobs
    store_us = (cpu_seconds([store_pid]) - store_began_s) * 1e6 / asked.jobs
    return f"{ours_us:.1f} | {store_us:.1f} | {asked.jobs / (time.monotonic() - at_s):,.0f}"


if __name__ == "__main__":
    main()
