"""python -m bench.scaling: the processor time of a job with more shards, and with more servers.

On a machine with two cores three masters are not three times as fast. What can be seen is whether each of them takes as
little work for its jobs as a single one: then the work grows with the jobs alone, so machines can be added.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvloop

from bench.processes import cpu_seconds
from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.domain.job import Job
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.connect import connect
from delayqueue.store.store import Store
from delayqueue.store.types import Demand
from delayqueue.store.verbs import FINISH, PUSH, Ending
from tests.api_client import open_api
from tests.clusters import StoreCluster
from tests.processes import LOOPBACK, Processes

COUNTS: Final = (1, 2, 3)
BUCKETS: Final = 64
JOBS: Final = 32_000
BATCH: Final = 100
AT_ONCE: Final = 8
REQUESTS: Final = 12_000
CLIENTS: Final = 32  # of each server
TOPIC: Final = "scaling"
SOON_MS: Final = 3_000


def main() -> None:
    """Measure and print both tables."""
    print("| masters | push µs | tick µs | pop µs | finish µs | share of the fullest |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shards in COUNTS:
        with _cluster(shards) as (_, cluster):
            print(f"| {shards} | {uvloop.run(_shard_costs(cluster))} |", flush=True)
    print("\n| servers | push request: server µs | store µs |\n| --- | --- | --- |")
    for servers in COUNTS:
        with _cluster(1) as (processes, cluster):
            print(f"| {servers} | {uvloop.run(_server_costs(processes, cluster, servers))} |")


@contextmanager
def _cluster(shards: int) -> Iterator[tuple[Processes, StoreCluster]]:
    with tempfile.TemporaryDirectory(prefix="delayqueue-bench-") as folder:
        processes = Processes(Path(folder))
        try:
            yield processes, StoreCluster(processes, shards=shards, replicas=0)
        finally:
            processes.close()


async def _shard_costs(cluster: StoreCluster) -> str:
    """The masters' time per job, by verb; and the share of the fullest one as a multiple of a fair share."""
    config = Config(
        redis_cluster=tuple(Address(LOOPBACK, node.port) for node in cluster.nodes),
        bucket_size=BUCKETS,
        redis_max_active=BUCKETS,
    )
    async with connect(config, None) as servers:
        store = Store(servers, Buckets(config.bucket_name, config.queue_name, Layout(BUCKETS)))
        ids: list[list[str]] = [[] for _ in range(BUCKETS)]
        for number in range(JOBS):
            ids[store.buckets.of(f"job-{number}")].append(f"job-{number}")
        principals = servers.groups(keys.tag for keys in store.buckets.keys)
        fullest = max(len(tags) for tags in principals.values()) / (BUCKETS / cluster.shards)
        costs = [await _cost(cluster, _each(ids, lambda bucket, part: _push(store, bucket, part)))]
        await asyncio.sleep(SOON_MS / 1000)
        costs.append(await _cost(cluster, _each(ids, lambda bucket, _: _tick(store, bucket), JOBS)))
        costs.append(
            await _cost(cluster, _each(ids, lambda bucket, part: _pop(store, bucket, part)))
        )
        costs.append(
            await _cost(cluster, _each(ids, lambda bucket, part: _finish(store, bucket, part)))
        )
    return " | ".join(f"{cost:.1f}" for cost in costs) + f" | {fullest:.2f}"


async def _each(
    ids: Sequence[list[str]], call: Callable[[int, list[str]], Awaitable[Any]], size: int = BATCH
) -> None:
    """Call for all ids of all buckets, a bucket's batches one after another, as the server does."""

    slots = asyncio.Semaphore(AT_ONCE)

    async def of_bucket(bucket: int, mine: list[str]) -> None:
        for at in range(0, len(mine), size):
            async with slots:
                await call(bucket, mine[at : at + size])

    await asyncio.gather(*(of_bucket(bucket, mine) for bucket, mine in enumerate(ids)))


async def _push(store: Store, bucket: int, part: list[str]) -> None:
    jobs = [Job(TOPIC, job_id, "x" * 40, 60_000, delay_ms=SOON_MS) for job_id in part]
    await store.bucket(bucket).run_all(PUSH, jobs)


async def _tick(store: Store, bucket: int) -> None:
    while (await store.bucket(bucket).tick()).change.next_due_ms == 0:
        pass


async def _pop(store: Store, bucket: int, part: list[str]) -> None:
    await store.bucket(bucket).pop([Demand((TOPIC,), len(part))])


async def _finish(store: Store, bucket: int, part: list[str]) -> None:
    endings = [Ending(job_id, None, "") for job_id in part]
    await store.bucket(bucket).run_all(FINISH, endings)


async def _cost(cluster: StoreCluster, work: Awaitable[None]) -> float:
    """µs of the masters' time per job."""
    pids = [node.pid for node in cluster.nodes]
    before_s = cpu_seconds(pids)
    await work
    return (cpu_seconds(pids) - before_s) * 1e6 / JOBS


async def _server_costs(processes: Processes, cluster: StoreCluster, count: int) -> str:
    """Processor time of all servers, and of the store, for a request that pushes one job."""
    place = cluster.new_database()
    servers = [processes.server(cluster, redis__db=place) for _ in range(count)]
    numbers = iter(range(REQUESTS))

    async def client(url: str) -> None:
        async with open_api(url) as api:
            for number in numbers:
                (await api.push(topic=TOPIC, id=f"job-{number}", delay=86_400, body="x" * 40)).ok()

    pids, stores = [server.pid for server in servers], [node.pid for node in cluster.nodes]
    before_s = cpu_seconds(pids), cpu_seconds(stores)
    await asyncio.gather(*(client(servers[n % count].url) for n in range(CLIENTS * count)))
    spent_s = cpu_seconds(pids) - before_s[0], cpu_seconds(stores) - before_s[1]
    return " | ".join(f"{each * 1e6 / REQUESTS:.0f}" for each in spent_s)


if __name__ == "__main__":
    main()
