"""Pushes that are made at the same time: one request, otherwise as if each were made alone."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from delayqueue.client import Invalid, JobExists, TransportError
from tests.client.conftest import RecordingClient
from tests.processes import LOOPBACK, QueueServer, free_port


@pytest.fixture
async def client(server: QueueServer) -> AsyncIterator[RecordingClient]:
    async with RecordingClient(server.url) as opened:
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
