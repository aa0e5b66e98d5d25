"""What all clients of a process may take together: connections, and requests that are not answered."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import pytest

from tests.api_client import TOO_MANY, open_api
from tests.beanstalk.conftest import Served, opened
from tests.figures import scrape
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

MAX_BODY_BYTES: Final = 20_000
LONGEST_BYTES: Final = 8 * MAX_BODY_BYTES
TOGETHER_BYTES: Final = 16 * LONGEST_BYTES


class Client:
    """A connection, and all that it gets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._reading = asyncio.create_task(self._read())
        self.got = b""
        self.has_ended = False

    async def _read(self) -> None:
        while more := await self._reader.read(1 << 16):
            self.got += more
        self.has_ended = True

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def aclose(self) -> None:
        self._reading.cancel()
        self._writer.transport.abort()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    def answer(self) -> tuple[int, Any]:
        """Status and envelope."""
        head, _, body = self.got.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)


@asynccontextmanager
async def clients(
    port: int, count: int, address: str = LOOPBACK, tls: ssl.SSLContext | None = None
) -> AsyncIterator[list[Client]]:
    found: list[Client] = []
    try:
        for _ in range(count):
            found.append(Client(*await asyncio.open_connection(address, port, ssl=tls)))  # noqa: PERF401  # one may fail
        yield found
    finally:
        for each in found:
            await each.aclose()


def post(path: str, body: bytes, *more: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*head, "", ""]).encode() + body


def push(size_bytes: int) -> bytes:
    """A push of so many bytes, most of them blanks."""
    job = b'{"topic":"together","id":"*","ttr":60,"delay":3600}'
    return post("/push", job + b" " * (size_bytes - len(job)))


async def refused(server: QueueServer, limit: str) -> float:
    """How often something was refused because of this limit."""
    async with open_api(server.url) as api:
        return (await scrape(api)).sum("delayqueue_refused_total", limit=limit)


async def waits(server: QueueServer, polls: int) -> bool:
    async with open_api(server.url) as api:
        return (await scrape(api)).sum("delayqueue_waiting_polls") == polls


async def refuses(server: QueueServer, limit: str, before: float) -> bool:
    return await refused(server, limit) > before


@pytest.fixture(scope="module")
def listening(processes: Processes, redis_server: StoreServer) -> Served:
    return opened(
        processes,
        redis_server,
        max_body=MAX_BODY_BYTES,
        beanstalk_max_job_size=MAX_BODY_BYTES,
        language="en",
    )


@pytest.mark.parametrize("size_bytes", [60_000, 150_000], ids=["express", "aiohttp"])
async def test_incomplete_requests_are_refused_when_all_of_them_are_too_long_together(
    listening: Served, size_bytes: int
) -> None:
    before = await refused(listening.server, "unanswered")
    count = 2 * TOGETHER_BYTES // size_bytes
    request = push(size_bytes)
    async with (
        clients(listening.server.port, count) as stalled,
        clients(listening.server.port, 2) as new,
    ):
        for each in stalled:
            await each.send(request[:-10])
        await until(lambda: sum(bool(each.got) for each in stalled) >= count // 4)
        told = [each for each in stalled if each.got]
        for each in told:
            status, answer = each.answer()
            assert (status, answer["code"]) == (429, TOO_MANY), each.got
            assert b"\r\nRetry-After: 1\r\n" in each.got
        assert len(told) < count
        assert await refused(listening.server, "unanswered") >= before + len(told)
        # who sends all of it at once comes through, short or long
        await new[0].send(push(100))
        await new[1].send(push(LONGEST_BYTES))
        await until(lambda: all(each.got for each in new))
        assert [each.answer()[1]["code"] for each in new] == [0, 0]
        # and so do those that were not refused
        patient = [each for each in stalled if not each.got]
        for each in patient:
            await each.send(request[-10:])
        await until(lambda: all(each.got for each in patient))
        assert {each.answer()[1]["code"] for each in patient} <= {0, TOO_MANY}


async def test_what_comes_behind_a_poll_counts_and_its_own_body_does_not(listening: Served) -> None:
    poll = {"topic": "nothing", "timeout": 60}
    own = json.dumps(poll).encode() + b" " * (LONGEST_BYTES - 200)
    count = 2 * TOGETHER_BYTES // LONGEST_BYTES
    async with (
        clients(listening.server.port, count) as polls,
        clients(listening.server.port, 1) as new,
    ):
        for number, each in enumerate(polls, start=1):
            await each.send(post("/pop", own))
            # one by one: so many that are half there are too many bytes
            await until_async(partial(waits, listening.server, number))
        await new[0].send(push(LONGEST_BYTES))
        await until(lambda: bool(new[0].got))
        assert new[0].answer()[1]["code"] == 0
        before = await refused(listening.server, "unanswered")
        for each in polls:
            await each.send(push(LONGEST_BYTES)[:-10])
        await until_async(lambda: refuses(listening.server, "unanswered", before))
        assert not any(each.got or each.has_ended for each in polls)


async def test_incomplete_puts_are_refused_and_their_connections_go_on(listening: Served) -> None:
    before = await refused(listening.server, "unanswered")
    count = 2 * TOGETHER_BYTES // MAX_BODY_BYTES
    async with clients(listening.port, count) as stalled:
        for each in stalled:
            await each.send(b"put 0 60 60 %d\r\n" % MAX_BODY_BYTES + b"x" * (MAX_BODY_BYTES - 10))
        await until_async(lambda: refuses(listening.server, "unanswered", before))
        for each in stalled:
            await each.send(b"x" * 10 + b"\r\nuse other\r\n")
        await until(lambda: all(each.got.endswith(b"USING other\r\n") for each in stalled))
        answers = {each.got.split()[0] for each in stalled}
        assert answers == {b"INSERTED", b"OUT_OF_MEMORY"}
