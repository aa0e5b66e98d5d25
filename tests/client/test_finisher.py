"""Jobs that end at the same time: fewer requests, otherwise as if each were finished alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from delayqueue.client import AsyncClient, Job, NoSuchJob, ReservedJob, StaleReceipt, TransportError
from delayqueue.client.api_request import Answer, ApiRequest
from faults.proxy import Proxy
from tests.processes import QueueServer
from tests.waiting import until

TIMEOUT_S: Final = 6.0


class CountingClient(AsyncClient):
    """Records what it sends."""

    def __init__(self, url: str) -> None:
        super().__init__(url, timeout=TIMEOUT_S, retries=0)
        self.sent: list[str] = []

    async def _try(self, request: ApiRequest[Any]) -> Answer | TransportError:
        self.sent.append(request.path)
        return await super()._try(request)


@pytest.fixture
async def proxy(server: QueueServer) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as running:
        yield running


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[CountingClient]:
    opened = CountingClient(f"http://{proxy.address}")
    async with opened:
        yield opened


async def reserved(client: CountingClient, topic: str, count: int) -> list[ReservedJob]:
    """Jobs that this test holds; requests from now on are counted."""
    await client.push_many([Job(topic=topic) for _ in range(count)])
    jobs = await client.pop_many(topic, count=count, wait=20)
    assert len(jobs) == count
    client.sent.clear()
    return jobs


async def test_jobs_that_end_at_the_same_time_are_finished_in_one_request(
    client: CountingClient, topic: str
) -> None:
    jobs = await reserved(client, topic, 10)
    await asyncio.gather(*map(client.finish, jobs))
    assert client.sent == ["/finish"]
    assert await client.get_many([job.id for job in jobs]) == [None] * 10


async def test_a_request_that_hangs_holds_up_no_later_one(
    client: CountingClient, proxy: Proxy, topic: str
) -> None:
    jobs = await reserved(client, topic, 4)
    proxy.half_open()
    hanging = [asyncio.create_task(client.finish(job)) for job in jobs[:2]]
    await until(lambda: bool(client.sent))
    await asyncio.gather(*map(client.finish, jobs[2:]))
    assert client.sent == ["/finish"] * 2
    assert not any(task.done() for task in hanging)
    results = await asyncio.gather(*hanging, return_exceptions=True)
    assert [type(each) for each in results] == [TransportError] * 2


async def test_a_job_that_is_somebody_elses_spoils_no_other(
    client: CountingClient, topic: str
) -> None:
    late, ended, held = await reserved(client, topic, 3)
    await client.release(late, delay=0)
    await client.pop(topic, wait=20)
    await client.delete(ended.id)
    results = await asyncio.gather(*map(client.finish, (late, ended, held)), return_exceptions=True)
    assert [type(each) for each in results] == [StaleReceipt, NoSuchJob, type(None)]
    found = await client.get_many([late.id, held.id])
    assert [job and job.state for job in found] == ["reserved", None]


async def test_all_jobs_of_a_request_that_fails_hear_of_it(
    client: CountingClient, proxy: Proxy, topic: str
) -> None:
    jobs = await reserved(client, topic, 3)
    proxy.drop_next_answers()
    results = await asyncio.gather(*map(client.finish, jobs), return_exceptions=True)
    assert [type(each) for each in results] == [TransportError] * 3


async def test_a_job_whose_task_is_stopped_takes_no_other_along(
    client: CountingClient, topic: str
) -> None:
    jobs = await reserved(client, topic, 3)
    tasks = [asyncio.create_task(client.finish(job)) for job in jobs]
    await asyncio.sleep(0)  # they have begun, and wait for their request
    tasks[0].cancel()
    await asyncio.gather(*tasks[1:])
    assert await client.get_many([job.id for job in jobs[1:]]) == [None] * 2


async def test_a_request_that_nobody_waits_for_is_given_up(
    client: CountingClient, proxy: Proxy, topic: str
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
