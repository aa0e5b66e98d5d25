"""A master of a Cluster hangs and no replica takes over: the jobs on the other masters are not affected."""

import asyncio
import http.client
import json
import time
import urllib.request
from collections.abc import Iterator
from statistics import median
from typing import Any, Final
from zlib import crc32

import pytest

from tests.api_client import OK, UNAVAILABLE, open_api
from tests.clusters import SHARDS, UNHURRIED, StoreCluster
from tests.processes import Process, Processes, QueueServer
from tests.waiting import until, until_async

BUCKETS: Final = 12
QUICK_S: Final = 0.5
PLACE: Final = 1
SILENCE_MS: Final = 1000


@pytest.fixture(scope="module")
def mortal_cluster(processes: Processes) -> StoreCluster:
    return StoreCluster(processes, *UNHURRIED)


@pytest.fixture(scope="module")
def server(mortal_cluster: StoreCluster, processes: Processes) -> QueueServer:
    return processes.server(
        mortal_cluster,
        redis__db=PLACE,
        bucket_size=BUCKETS,
        redis__read_timeout=SILENCE_MS,
        redis__write_timeout=SILENCE_MS,
    )


@pytest.fixture(scope="module")
def frozen(mortal_cluster: StoreCluster, server: QueueServer) -> Iterator[set[int]]:
    """The buckets, from 0, of a master that hangs and has no replica any more."""
    masters = [holder_of(mortal_cluster, bucket) for bucket in range(BUCKETS)]
    master = masters[0]
    mortal_cluster.nodes[mortal_cluster.nodes.index(master) + SHARDS].kill()
    master.freeze()
    yield {bucket for bucket, holder in enumerate(masters) if holder is master}
    master.thaw()


def holder_of(cluster: StoreCluster, bucket: int) -> Any:
    return cluster.holder(f"{{place_{PLACE}_bucket_{bucket + 1}}}")


def id_in(buckets: set[int], word: str) -> str:
    return next(i for n in range(1000) if crc32((i := f"{word}-{n}").encode()) % BUCKETS in buckets)


def readiness(server: Process) -> Any:
    with urllib.request.urlopen(f"http://{server.address}/readyz", timeout=60) as answer:
        return json.load(answer)["data"]


async def test_its_own_jobs_are_refused_and_no_others(
    server: QueueServer, frozen: set[int]
) -> None:
    others = set(range(BUCKETS)) - frozen
    async with open_api(server.url) as api:

        async def are_quick() -> bool:
            """Whether most others are done long before one is refused, as they may not be on a busy machine."""
            stuck = asyncio.create_task(api.push(topic="t", id=id_in(frozen, "stuck")))
            took_s = []
            for number in range(20):
                began = time.monotonic()
                (await api.push(topic="t", id=id_in(others, f"job{number}"), delay=3600)).ok()
                took_s.append(time.monotonic() - began)
            (await stuck).refused(UNAVAILABLE, http.client.SERVICE_UNAVAILABLE)
            return median(took_s) < QUICK_S

        await until_async(are_quick)


async def test_of_an_array_only_its_jobs_are_refused(server: QueueServer, frozen: set[int]) -> None:
    good, bad = id_in(set(range(BUCKETS)) - frozen, "good"), id_in(frozen, "bad")
    async with open_api(server.url) as api:
        jobs = [{"topic": "t", "id": job_id, "delay": 3600} for job_id in (good, bad)]
        codes = {result["id"]: result["code"] for result in (await api.push_all(jobs)).ok()}
        assert codes == {good: OK, bad: UNAVAILABLE}
        results = (await api.call("/delete", {"ids": [good, bad]})).ok()
        assert [result["code"] for result in results] == [OK, UNAVAILABLE]


async def test_readyz_names_its_buckets(server: QueueServer, frozen: set[int]) -> None:
    away = [bucket + 1 for bucket in sorted(frozen)]
    await until(lambda: (readiness(server) or {}).get("away") == away)


async def test_all_is_well_when_it_goes_on(
    server: QueueServer, mortal_cluster: StoreCluster
) -> None:
    master = holder_of(mortal_cluster, 0)
    master.thaw()
    await until(lambda: readiness(server) is None)
    async with open_api(server.url) as api:
        job_id = id_in({0}, "again")
        (await api.push(topic="again", id=job_id)).ok()
        assert (await api.pop("again")).ok()["id"] == job_id
