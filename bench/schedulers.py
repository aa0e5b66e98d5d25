"""python -m bench.schedulers: bytes that a delayed job takes with each scheduler, for several spreads of the due times.

Pushes directly into a store of its own, without HTTP: a million jobs take about a minute each.
"""

import argparse
import asyncio
import random
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from redis.asyncio import Redis

from bench.processes import free_port, program
from bench.target import redis_command
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import Job
from delayqueue.store.buckets import Buckets
from delayqueue.store.scripts import ZSET, Scripts
from delayqueue.store.servers.shards import Shards
from delayqueue.store.store import Store
from delayqueue.store.verbs import PUSH

HOUR_MS: Final = 3_600_000
BATCH: Final = 500
BODY: Final = "b" * 40
SCHEDULERS: Final = {
    "zset": ZSET,
    "wheel": Scripts("wheel", 3600),
    "wheel, 14,400 slots": Scripts("wheel", 14_400),
}


class Spread(NamedTuple):
    """`jobs` jobs, shared evenly among topics, due at random within `hours`."""

    jobs: int
    topics: int
    hours: int

    def __str__(self) -> str:
        return f"{self.jobs:,} jobs, {self.topics:,} topics, {self.hours} h"


SPREADS: Final = (
    Spread(10_000, 1, 1),
    Spread(100_000, 1, 1),
    Spread(100_000, 1, 720),
    Spread(100_000, 1000, 1),
    Spread(1_000_000, 1, 1),
    Spread(1_000_000, 1, 720),
)


async def bytes_per_job(spread: Spread, scripts: Scripts) -> float:
    """How much the memory of a new store grows, per job."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, program(redis_command(port), port, Path(folder)):
        async with Redis(port=port) as redis:
            before = await _used_memory(redis)
            await _fill(redis, spread, scripts)
            return (await _used_memory(redis) - before) / spread.jobs


async def _fill(redis: Redis, spread: Spread, scripts: Scripts) -> None:
    store = Store(Shards.one(redis), Buckets("dq_bucket_%d", "dq_queue_%s"), scripts)
    dice = random.Random(1)
    # nothing falls due while the jobs are pushed
    far_ms = 24 * HOUR_MS
    for first in range(0, spread.jobs, BATCH):
        jobs = [
            Job(
                topic=f"bench-{number % spread.topics:08}",
                id=f"a1b2c3d4-0-{number}",
                body=BODY,
                ttr_ms=60_000,
                delay_ms=far_ms + dice.randrange(spread.hours * HOUR_MS),
            )
            for number in range(first, first + BATCH)
        ]
        await store.bucket(0).run_verb(PUSH, jobs, EVERYWHERE)


async def _used_memory(redis: Redis) -> int:
    return int((await redis.info("memory"))["used_memory"])


async def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedulers", description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000, help="leave out more jobs than this")
    most = parser.parse_args().most
    print("bytes a job".ljust(36), *(name.rjust(20) for name in SCHEDULERS))
    for spread in SPREADS:
        if spread.jobs <= most:
            row = [await bytes_per_job(spread, scripts) for scripts in SCHEDULERS.values()]
            print(str(spread).ljust(36), *(f"{figure:20.0f}" for figure in row), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
