"""Jobs that end at the same time: fewer requests, otherwise each as if it were alone (see test_push_batcher.py)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from delayqueue.client import Job, NoSuchJob, ReservedJob, StaleReceipt, TransportError
from faults.proxy import Proxy
from tests.client.conftest import RecordingClient
from tests.waiting import until

TIMEOUT_S: Final = 6.0


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[RecordingClient]:
    async with RecordingClient(f"http://{proxy.address}", timeout=TIMEOUT_S) as opened:
        yield opened


async def reserved(client: RecordingClient, topic: str, count: int) -> list[ReservedJob]:
    """Jobs that this test holds; requests from now on are counted."""
    await client.push_many([Job(topic=topic) for _ in range(count)])
    jobs = await client.pop_many(topic, count=count, wait=20)
    assert len(jobs) == count
    client.sent.clear()
    return jobs


async def test_jobs_that_end_at_the_same_time_are_finished_in_one_request(
    client: RecordingClient, topic: str
) -> None:
    jobs = await reserved(client, topic, 10)
    await asyncio.gather(*map(client.finish, jobs))
    assert [request.path for request in client.sent] == ["/finish"]
    assert await client.get_many([job.id for job in jobs]) == [None] * 10


async def test_a_request_that_hangs_holds_up_no_later_one(
    client: RecordingClient, proxy: Proxy, topic: str
) -> None:
    jobs = await reserved(client, topic, 4)
    proxy.half_open()
    hanging = [asyncio.create_task(client.finish(job)) for job in jobs[:2]]
    await until(lambda: bool(client.sent))
    await asyncio.gather(*map(client.finish, jobs[2:]))
    assert [request.path for request in client.sent] == ["/finish"] * 2
    assert not any(task.done() for task in hanging)
    results = await asyncio.gather(*hanging, return_exceptions=True)
    assert [type(each) for each in results] == [TransportError] * 2


async def test_a_job_that_is_somebody_elses_spoils_no_other(
    client: RecordingClient, topic: str
) -> None:
    late, ended, held = await reserved(client, topic, 3)
    await client.release(late, delay=0)
    await client.pop(topic, wait=20)
    await client.delete(ended.id)
    results = await asyncio.gather(*map(client.finish, (late, ended, held)), return_exceptions=True)
    assert [type(each) for each in results] == [StaleReceipt, NoSuchJob, type(None)]
    found = await client.get_many([late.id, held.id])
    assert [job and job.state for job in found] == ["reserved", None]


async def test_a_request_that_nobody_waits_for_is_given_up(
    client: RecordingClient, proxy: Proxy, topic: str
) -> None:
    jobs = await reserved(client, topic, 2)
    proxy.half_open()
    tasks = [asyncio.create_task(client.finish(job)) for job in jobs]
    await until(lambda: bool(client.sent))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    async with asyncio.timeout(TIMEOUT_S / 2):
        await until(lambda: {each.get_name() for each in asyncio.all_tasks()}.isdisjoint({"batch"}))
