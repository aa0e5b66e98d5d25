"""Brings jobs into a state, over HTTP, and proves that a topic has nothing to deliver."""

import asyncio
from itertools import count
from typing import Any, Final
from zlib import crc32

from tests.api_client import Api, Envelope, Json, push_due_in
from tests.waiting import until_async

BUCKETS: Final = 8  # a multiple of the `bucket_size` of each Setup


def neighbour(job_id: str) -> str:
    """Another id, whose bucket is the same in each setup: for a verb that takes two jobs at once."""
    ids = (f"{job_id}-{n}" for n in count())
    return next(i for i in ids if (crc32(i.encode()) - crc32(job_id.encode())) % BUCKETS == 0)


async def until_ready(api: Api, *ids: str) -> None:
    """Wait until all these jobs are ready."""

    async def all_ready() -> bool:
        jobs = (await api.call("/get", {"ids": ids})).ok()
        return all(job["state"] == "ready" for job in jobs)

    await until_async(all_ready)


async def waiting_poll(api: Api, topic: str, **options: Any) -> asyncio.Task[Envelope]:
    """A poll that the server has read: it was sent before a job went through its whole life on another connection."""
    poll = asyncio.create_task(api.pop(topic, **options))
    await asyncio.sleep(0)
    forerunner = f"{topic}/forerunner"
    (await api.push(topic=forerunner, id=forerunner, delay=0)).ok()
    (await api.pop(forerunner)).ok()
    (await api.finish(forerunner)).ok()
    return poll


async def take(api: Api, topic: str, wanted: int) -> list[Json]:
    """Pop until `wanted` jobs have come. With many buckets one pop may return fewer than are ready."""
    jobs: list[Json] = []
    while len(jobs) < wanted:
        more = (await api.pop(topic, count=wanted - len(jobs))).ok()
        assert more, f"{len(jobs)} of {wanted} jobs came"
        jobs += more
    return jobs


async def assert_nothing_comes(api: Api, *topics: str, within_s: float) -> None:
    """Prove that the topics deliver nothing within that time: a later job comes first, and nothing after it."""

    async def check(topic: str) -> None:
        sentinel = await push_due_in(api, within_s, topic=topic, id=f"{topic}/sentinel")
        assert (await api.pop(topic, timeout=within_s + 10)).ok()["id"] == sentinel.id
        assert (await api.pop(topic, timeout=0)).ok() is None
        (await api.finish(sentinel.id)).ok()

    await asyncio.gather(*map(check, set(topics)))
