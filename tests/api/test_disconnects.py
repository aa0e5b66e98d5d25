"""A client that disconnects while it waits takes no job with it."""

import asyncio
import random
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from tests.api.jobs import assert_nothing_comes, take
from tests.api_client import Api
from tests.hangups import close, half_close, reset
from tests.processes import LOOPBACK, QueueServer

from .conftest import AIOHTTP, EXPRESS
from .dialogue import post

CLIENTS: Final = 60

WAYS_TO_GO: Final = [
    pytest.param(close, {}, id="close"),
    pytest.param(reset, {}, id="reset"),
    pytest.param(half_close, {}, id="half close"),
    pytest.param(reset, {"count": 10}, id="reset, with count"),
]
ways_to_go = pytest.mark.parametrize(("go", "option"), WAYS_TO_GO)


async def poll_and_go(
    server: QueueServer, request: dict[str, Any], go: Callable[[socket.socket], None]
) -> None:
    """Send a /pop and disconnect at a random moment: before it is read, while it is read, while it waits."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, (LOOPBACK, server.port))
        headers = random.choice([EXPRESS, AIOHTTP])
        await loop.sock_sendall(connection, post("/pop", request, headers))
        await asyncio.sleep(random.uniform(0, 0.3))
        go(connection)
        if go is half_close:
            # the server closes its side, so that nothing of the poll is left
            while await loop.sock_recv(connection, 4096):
                pass


@ways_to_go
async def test_polls_whose_clients_have_gone_take_nothing(
    api: Api,
    server: QueueServer,
    topic: str,
    go: Callable[[socket.socket], None],
    option: dict[str, int],
) -> None:
    request = {"topic": topic, "timeout": 60} | option
    await asyncio.gather(*(poll_and_go(server, request, go) for _ in range(CLIENTS)))
    ids = [f"{topic}/{n}" for n in range(CLIENTS)]
    (await api.push_all([{"topic": topic, "id": job_id, "ttr": 3600} for job_id in ids])).ok()
    jobs = await take(api, topic, CLIENTS)
    assert sorted(job["id"] for job in jobs) == sorted(ids)
    assert {job["attempt"] for job in jobs} == {1}


@ways_to_go
async def test_polls_whose_clients_go_while_jobs_come_lose_nothing(
    api: Api,
    server: QueueServer,
    topic: str,
    go: Callable[[socket.socket], None],
    option: dict[str, int],
) -> None:
    """A job whose answer was on its way when the client disconnected is delivered again after the TTR."""
    request = {"topic": topic, "timeout": 60} | option
    ids = [f"{topic}/{n}" for n in range(CLIENTS)]

    async def push(job_id: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.3))
        (await api.push(topic=topic, id=job_id, ttr=1)).ok()

    async with asyncio.TaskGroup() as group:
        for job_id in ids:
            group.create_task(poll_and_go(server, request, go))
            group.create_task(push(job_id))
    missing = set(ids)
    while missing:
        jobs = (await api.pop(topic, count=1000)).ok()
        assert jobs, f"{len(missing)} jobs are lost"
        taken = [job["id"] for job in jobs]
        (await api.call("/finish", {"ids": taken})).ok()
        missing.difference_update(taken)
    await assert_nothing_comes(api, topic, within_s=0.1)


@pytest.mark.parametrize("headers", [EXPRESS, AIOHTTP], ids=["express", "aiohttp"])
async def test_a_client_that_goes_while_it_reads_a_long_answer_has_got_nothing(
    ordered_api: Api, ordered_server: QueueServer, topic: str, headers: Mapping[str, str]
) -> None:
    jobs = [{"topic": topic, "id": f"{topic}/{n}", "body": "b" * 900_000} for n in range(8)]
    for job in jobs:
        (await ordered_api.push(**job, ttr=3600)).ok()
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the rest is the server's
        connection.setblocking(False)
        await loop.sock_connect(connection, (LOOPBACK, ordered_server.port))
        request = {"topic": topic, "count": len(jobs), "timeout": 0}
        await loop.sock_sendall(connection, post("/pop", request, headers))
        assert (await loop.sock_recv(connection, 100)).startswith(b"HTTP/1.1 200")
        taken = (await ordered_api.call("/topics", {"topics": [topic]})).ok()[0]["reserved"]
        assert taken > 2
        reset(connection)
    again = await take(ordered_api, topic, len(jobs))
    assert sorted(job["id"] for job in again) == [job["id"] for job in jobs]
    assert {job["attempt"] for job in again} == {1}
