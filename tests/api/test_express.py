"""The express lane: plain requests as they arrive over a socket: in pieces, pipelined, and mixed with others."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest

from tests.api_client import OK, TOO_LARGE, Api, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer

from .conftest import AIOHTTP, EXPRESS
from .dialogue import ANSWER_S, answer, post

MOST_TAKEN_BYTES: Final = 16 << 20  # more than the sockets hold


def push(topic: str, job_id: str) -> bytes:
    return post("/push", {"topic": topic, "id": job_id, "ttr": 60})


async def test_all_that_came_before_the_end_is_answered_in_its_order(
    server: QueueServer, topic: str
) -> None:
    """aiohttp answers the odd one between the plain ones, and all that follow."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    gets = [post("/get", {"id": f"{topic}/{n}"}) for n in range(10)]
    gets[7] = post("/get", {"id": f"{topic}/7"}, AIOHTTP)
    writer.write(b"".join(push(topic, f"{topic}/{n}") for n in range(10)) + b"".join(gets))
    writer.write_eof()
    for _ in range(10):
        assert (await answer(reader))[1]["code"] == OK
    for n in range(10):
        assert (await answer(reader))[1]["data"]["id"] == f"{topic}/{n}"
    async with asyncio.timeout(ANSWER_S):
        assert await reader.read() == b""
    writer.close()


async def test_a_poll_behind_a_push_on_one_connection_gives_back_what_its_client_left(
    server: QueueServer, api: Api, topic: str
) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(push(topic, topic) + post("/pop", {"topic": f"{topic}/other"}))
    await answer(reader)
    writer.close()
    await writer.wait_closed()
    (await api.push(topic=f"{topic}/other", id=f"{topic}/other")).ok()
    job = (await api.pop(f"{topic}/other")).ok()
    assert (job["id"], job["attempt"]) == (f"{topic}/other", 1)


@pytest.mark.parametrize("pause_s", [0, 0.3], ids=["at once", "once its first answer waits"])
async def test_a_client_that_reads_nothing_gets_no_more_than_it_can_hold(
    server: QueueServer, api: Api, name: Callable[[str], str], pause_s: float
) -> None:
    """Its requests wait in its own socket: the server keeps a few answers, and takes no more requests."""
    job_id = name("large")
    (await api.push(topic=job_id, id=job_id, body="b" * 900_000)).ok()
    request, loop = post("/get", {"id": job_id}) * 1000, asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((LOOPBACK, server.port))
        connection.setblocking(False)
        await loop.sock_sendall(connection, post("/get", {"ids": [job_id] * 6}))
        await asyncio.sleep(pause_s)
        sent_bytes = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(3):
                while sent_bytes < MOST_TAKEN_BYTES:
                    await loop.sock_sendall(connection, request)
                    sent_bytes += len(request)
        assert sent_bytes < MOST_TAKEN_BYTES
        assert (await api.get(job_id)).ok() is not None, "others are served"


async def test_a_request_is_as_large_as_max_body_allows_whichever_way_it_comes(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    jobs = [
        {"topic": topic, "id": f"{topic}/{n}", "ttr": 60, "body": "b" * 1000} for n in range(20)
    ]
    server = processes.server(redis_server, max_body=1024)
    for headers in (EXPRESS, AIOHTTP):
        async with open_api(server.url, headers=headers) as api:
            (await api.push_all(jobs)).refused(TOO_LARGE, status=413)
            assert [result["code"] for result in (await api.push_all(jobs[:5])).ok()] == [OK] * 5
