"""Pushes and ends of jobs that are made at the same time: fewer requests, otherwise each as if it were alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from delayqueue.client import (
    Invalid,
    Job,
    JobExists,
    NoSuchJob,
    ReservedJob,
    StaleReceipt,
    TransportError,
)
from faults.proxy import Proxy
from tests.client.conftest import RecordingClient
from tests.processes import LOOPBACK, free_port
from tests.waiting import until

TIMEOUT_S: Final = 6.0


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[RecordingClient]:
    async with RecordingClient(f"http://{proxy.address}", timeout=TIMEOUT_S) as opened:
        yield opened


def sent(client: RecordingClient) -> list[int]:
    """How many jobs each request had."""
    return [len(request.json) if isinstance(request.json, list) else 1 for request in client.sent]


async def bodies(client: RecordingClient, topic: str) -> dict[str, str]:
    return {job.id: job.body for job in (await client.list_jobs(topic, limit=1000)).jobs}


async def test_pushes_of_the_same_moment_are_one_request(
    client: RecordingClient, topic: str
) -> None:
    pushes = (client.push(topic, str(number), delay=60) for number in range(50))
    ids = await asyncio.gather(*pushes)
    assert sent(client) == [50]
    assert await bodies(client, topic) == {job_id: str(at) for at, job_id in enumerate(ids)}


async def test_a_push_alone_is_sent_alone(client: RecordingClient, topic: str) -> None:
    for _ in range(2):
        await client.push(topic)
    assert sent(client) == [1, 1]


async def test_many_and_large_ones_are_several_requests(
    client: RecordingClient, topic: str
) -> None:
    await asyncio.gather(*(client.push(topic, delay=60) for _ in range(1001)))
    await asyncio.gather(*(client.push(topic, "x" * 400_000, delay=60) for _ in range(5)))
    assert sorted(sent(client)[:2]) == [1, 1000]
    assert sorted(sent(client)[2:]) == [1, 2, 2]
    await client.purge(topic)


async def test_a_bad_one_spoils_only_itself(client: RecordingClient, topic: str) -> None:
    taken = await client.push(topic, delay=60)
    results = await asyncio.gather(
        client.push(topic, "good", delay=60),
        client.push("a,b", "bad"),
        client.push(topic, id=taken, if_exists="fail"),
        client.push(topic, "good, too", delay=60),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [str, Invalid, JobExists, str]
    assert sorted((await bodies(client, topic)).values()) == ["", "good", "good, too"]


async def test_one_that_is_cancelled_takes_no_other_along(
    client: RecordingClient, topic: str
) -> None:
    first, second, third = (asyncio.ensure_future(client.push(topic, delay=60)) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    second.cancel()
    assert await third in await bodies(client, topic)


async def test_where_no_server_is_each_says_so() -> None:
    async with RecordingClient(f"http://{LOOPBACK}:{free_port()}") as client:
        results = await asyncio.gather(
            *(client.push("t") for _ in range(3)), return_exceptions=True
        )
    assert [type(result) for result in results] == [TransportError] * 3


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


async def test_a_request_that_nobody_waits_for_is_given_up(proxy: Proxy, topic: str) -> None:
    async with RecordingClient(f"http://{proxy.address}", timeout=3600) as client:
        jobs = await reserved(client, topic, 2)
        proxy.half_open()
        tasks = [asyncio.create_task(client.finish(job)) for job in jobs]
        await until(lambda: bool(client.sent))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await until(lambda: {each.get_name() for each in asyncio.all_tasks()}.isdisjoint({"batch"}))
