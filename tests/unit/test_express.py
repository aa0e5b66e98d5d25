"""The express lane and its front, without a store: moments that a client cannot choose from outside."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import uvloop

from delayqueue.web.app import build_server
from delayqueue.web.express import Express
from delayqueue.web.head import Head, read_head
from delayqueue.web.http import HttpRequest, HttpResponse
from tests.hangups import reset
from tests.processes import LOOPBACK
from tests.shared_limits import limits
from tests.unit.test_front import front
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from .fronts import Handler

MOST_BYTES: Final = 1 << 20


@asynccontextmanager
async def lane(handler: Handler) -> AsyncIterator[tuple[Express, int]]:
    """The lane that lets `handler` answer /push and /pop, and its port."""
    loop, answering, shared = asyncio.get_running_loop(), front(handler), limits()
    aiohttp = build_server(answering, MOST_BYTES, shared)
    express = Express(answering, answering.paths("POST"), shared, aiohttp, MOST_BYTES)
    listener = await loop.create_server(express.connection, LOOPBACK, 0)
    try:
        yield express, listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await asyncio.gather(express.close(1), aiohttp.shutdown(1))


def post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def test_aiohttp_reads_on_where_the_lane_had_paused() -> None:
    """So much has arrived behind a poll that the lane stops reading; and the next request is not for the lane."""
    go_on = asyncio.Event()

    async def handler(request: HttpRequest) -> HttpResponse:
        if request.path == "/pop":
            await go_on.wait()
        return HttpResponse(b"%d" % len(await request.read()))

    async with lane(handler) as (express, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        long = post("/push", b"x" * 100_000)
        writer.write(post("/pop", b"poll"))
        await until(lambda: any(each.task for each in express.connections))
        [connection] = express.connections
        sent = 0
        while connection._transport.is_reading():
            writer.write(long[sent : sent + 10_000])
            sent += 10_000
            await asyncio.sleep(0.01)
        go_on.set()
        writer.write(long[sent:])
        async with asyncio.timeout(5):
            assert (await reader.readuntil(b"\r\n\r\n4")).startswith(b"HTTP/1.1 200")
            assert (await reader.readuntil(b"\r\n\r\n100000")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_client_that_is_found_gone_as_it_is_answered_has_got_nothing() -> None:
    """The reset has arrived, and the loop has not seen it yet."""
    undelivered: list[str] = []

    async def handler(_: HttpRequest) -> HttpResponse:
        reset(client)
        return HttpResponse(b"for nobody", undelivered=lambda: undelivered.append("told"))

    async with lane(handler) as (_, port):
        client = socket.create_connection((LOOPBACK, port))
        client.sendall(post("/pop", b"poll"))
        await until(lambda: undelivered == ["told"])


def test_nothing_behind_a_request_that_closes_is_answered() -> None:
    """Nor after its answer, too long for the client's buffers, has finally been read. The loop is the server's."""
    uvloop.run(_close_with_more_behind())


async def _close_with_more_behind() -> None:
    answered: list[bytes] = []

    async def handler(request: HttpRequest) -> HttpResponse:
        answered.append(await request.read())
        return HttpResponse(b"x" * (16 << 20))

    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        closing = post("/push", b"first").replace(b"Host: x", b"Host: x\r\nConnection: close")
        writer.write(closing + post("/push", b"second"))
        await until(lambda: bool(answered))
        async with asyncio.timeout(10):
            assert len(await reader.read()) > 16 << 20
        writer.close()
    assert answered == [b"first"]


async def test_a_head_is_read_once_however_slowly_its_body_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a client could make the server read 4 kB again for each byte that it sends."""
    reads = []

    def read(raw: bytes) -> Head | None:
        reads.append(raw)
        return read_head(raw)

    async def handler(request: HttpRequest) -> HttpResponse:
        return HttpResponse(await request.read())

    monkeypatch.setattr("delayqueue.web.express.read_head", read)
    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", b"0123456789")[:-10])
        for digit in b"0123456789":
            await asyncio.sleep(0.01)
            writer.write(bytes([digit]))
        async with asyncio.timeout(5):
            await reader.readuntil(b"0123456789")
        writer.close()
    assert len(reads) == 2
