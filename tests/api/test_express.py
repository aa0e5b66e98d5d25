"""The express lane: plain requests as they arrive over a socket: in pieces, pipelined, and mixed with others."""

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest

from tests.api_client import OK, TOO_LARGE, Api, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer

from .conftest import AIOHTTP, EXPRESS

ANSWER_S: Final = 30.0
MOST_TAKEN_BYTES: Final = 16 << 20  # more than the sockets hold


def post(path: str, payload: object, *lines: str) -> bytes:
    body = json.dumps(payload).encode()
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def push(topic: str, job_id: str, *lines: str) -> bytes:
    return post("/push", {"topic": topic, "id": job_id, "ttr": 60}, *lines)


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next answer."""
    async with asyncio.timeout(ANSWER_S):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        return (
            int(head[0].split()[1]),
            headers,
            await reader.readexactly(int(headers["Content-Length"])),
        )


@pytest.mark.parametrize("size", [1, 2, 7, 64])
async def test_a_request_may_come_in_pieces(server: QueueServer, topic: str, size: int) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    request = push(topic, topic)
    for at in range(0, len(request), size):
        writer.write(request[at : at + size])
        await asyncio.sleep(0)
    status, headers, body = await answer(reader)
    assert (status, json.loads(body)["code"]) == (200, 0)
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert "GMT" in headers["Date"]
    assert headers["Server"] == "delay-queue"
    writer.close()


async def test_requests_without_waiting_are_answered_in_their_order(
    server: QueueServer, topic: str
) -> None:
    """aiohttp answers the odd ones between the plain ones, and all that follow."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    gets = [post("/get", {"id": f"{topic}/{n}"}) for n in range(20)]
    gets[15] = post("/get", {"id": f"{topic}/15"}, "TE: trailers")
    writer.write(b"".join(push(topic, f"{topic}/{n}") for n in range(20)) + b"".join(gets))
    for _ in range(20):
        assert json.loads((await answer(reader))[2])["code"] == 0
    for n in range(20):
        assert json.loads((await answer(reader))[2])["data"]["id"] == f"{topic}/{n}"
    writer.close()


async def test_a_connection_is_closed_if_the_client_asks_for_it(
    server: QueueServer, topic: str
) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(push(topic, topic, "Connection: close") + push(topic, f"{topic}/not"))
    _, headers, _ = await answer(reader)
    assert headers["Connection"] == "close"
    async with asyncio.timeout(ANSWER_S):
        assert await reader.read() == b""
    writer.close()


async def test_all_that_came_before_the_end_is_answered(
    server: QueueServer, api: Api, topic: str
) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    gets = [post("/get", {"id": f"{topic}/{n}"}) for n in range(10)]
    gets[7] = post("/get", {"id": f"{topic}/7"}, "TE: trailers")
    writer.write(b"".join(push(topic, f"{topic}/{n}") for n in range(10)) + b"".join(gets))
    writer.write_eof()
    for _ in range(20):
        assert json.loads((await answer(reader))[2])["code"] == 0
    async with asyncio.timeout(ANSWER_S):
        assert await reader.read() == b""
    writer.close()


async def test_an_error_is_answered_as_aiohttp_would(server: QueueServer) -> None:
    answers = []
    for lines in ((), ("TE: trailers",)):
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
        writer.write(post("/push", [], "X-Request-Id: abc", "Accept-Language: en", *lines))
        status, headers, body = await answer(reader)
        answers.append((status, headers["X-Request-Id"], headers["Content-Type"], body))
        writer.close()
    assert answers[0] == answers[1]


async def test_a_long_body_is_aiohttps(server: QueueServer, api: Api, topic: str) -> None:
    body = "b" * 200_000
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    request = {"topic": topic, "id": topic, "ttr": 60, "body": body}
    writer.write(post("/push", request))
    assert json.loads((await answer(reader))[2])["code"] == 0
    writer.close()
    assert (await api.get(topic)).ok()["body"] == body


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
    server.close()
