"""A call on a connection that its receiver is just closing is repeated once, on a fresh one; no other call is."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import pytest
from aiohttp import connector

from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.outcome import Event, WebhookOutcome
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.subscriber import Method, Subscriber
from tests import certificates
from tests.processes import LOOPBACK

from .conftest import Shop

HERE: Final = ip_network("127.0.0.1/32")
ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
METHODS: Final = pytest.mark.parametrize("method", Method)


class Closing:
    """Answers the first request of each of the first `answering` connections; to the next one it says `then`, and ends.

    With `hangs` it does not end, except that the first connection ends after `holds_s`, if given.
    """

    def __init__(
        self,
        then: bytes = b"",
        *,
        answering: int = 1000,
        hangs: bool = False,
        holds_s: float = 0,
    ) -> None:
        self.port = 0
        self.is_tls = False
        self.seen: list[list[str]] = []  # for each connection the ids of its requests
        self.bodies: list[bytes] = []
        self.hung_s = 0.0
        self.handling: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._then = then
        self._answering = answering  # connections
        self._hangs = hangs
        self._holds_s = holds_s

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.handling[task] = writer
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._serve(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ids: list[str] = []
        self.seen.append(ids)
        served = int(len(self.seen) <= self._answering)
        while len(ids) <= served:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = head.partition("content-length: ")[2].partition("\r\n")[0]
            self.bodies.append(await reader.readexactly(int(length or 0)))
            ids.append(head.partition("webhook-id: ")[2].partition("\r\n")[0])
            if len(ids) <= served:
                writer.write(ANSWER)
        await self._end(reader)
        writer.write(self._then)

    async def _end(self, reader: asyncio.StreamReader) -> None:
        if self._holds_s and len(self.seen) == 1:
            await asyncio.sleep(self._holds_s)
        elif self._hangs:
            began_at = asyncio.get_running_loop().time()
            await reader.read()
            self.hung_s = asyncio.get_running_loop().time() - began_at


@asynccontextmanager
async def serving(receiver: Closing, tls: ssl.SSLContext | None = None) -> AsyncIterator[Closing]:
    server = await asyncio.start_server(receiver.handle, LOOPBACK, 0, ssl=tls)
    receiver.port, receiver.is_tls = server.sockets[0].getsockname()[1], tls is not None
    async with server:
        yield receiver
        for writer in receiver.handling.values():
            writer.transport.abort()
        if receiver.handling:
            await asyncio.wait(receiver.handling)


@METHODS
async def test_what_no_byte_answered_on_a_used_connection_goes_out_again_on_a_fresh_one(
    method: Method,
) -> None:
    async with serving(Closing()) as receiver:
        outcomes = await calls(receiver, ["a", "b", "c"], method)
    assert [outcome.message for outcome in outcomes] == ["200 ok"] * 3
    assert receiver.seen == [["a", "b"], ["b", "c"], ["c"]]
    assert receiver.bodies == [b"{}"] * 5, "a repetition has the body, too"


@METHODS
async def test_what_no_byte_answered_on_a_fresh_connection_is_a_failure(method: Method) -> None:
    async with serving(Closing(answering=0)) as receiver:
        (outcome,) = await calls(receiver, ["a"], method)
    assert outcome == WebhookOutcome(succeeded=False, message="Server disconnected")
    assert receiver.seen == [["a"]]


async def test_it_is_repeated_once() -> None:
    async with serving(Closing(answering=1)) as receiver:
        first, second = await calls(receiver, ["a", "b"])
    assert first.succeeded
    assert second == WebhookOutcome(succeeded=False, message="Server disconnected")
    assert receiver.seen == [["a", "b"], ["b"]]


@METHODS
async def test_what_was_answered_in_part_is_a_failure(method: Method) -> None:
    async with serving(Closing(then=b"HTTP/1.1 2")) as receiver:
        first, second = await calls(receiver, ["a", "b"], method)
    assert first.succeeded
    assert second == WebhookOutcome(succeeded=False, message="Server disconnected")
    assert receiver.seen == [["a", "b"]]


async def test_who_hangs_on_a_used_connection_is_not_called_again() -> None:
    async with serving(Closing(hangs=True)) as receiver:
        first, second = await calls(receiver, ["a", "b"], last_ms=2000)
    assert first.succeeded
    assert second == WebhookOutcome(succeeded=False, message="timeout: 2 s")
    assert receiver.seen == [["a", "b"]]


async def test_a_repetition_takes_what_is_left_of_the_calls_time() -> None:
    async with serving(Closing(answering=1, hangs=True, holds_s=5)) as receiver:
        first, second = await calls(receiver, ["a", "b"], last_ms=8000)
    assert first.succeeded
    assert second == WebhookOutcome(succeeded=False, message="timeout: 8 s")
    assert receiver.seen == [["a", "b"], ["b"]]
    assert receiver.hung_s < 7.5, "not as long again"


async def test_tls_that_ends_with_a_goodbye_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = certificates.make(tmp_path, "target")
    monkeypatch.setattr(connector, "_SSL_CONTEXT_VERIFIED", pair.context())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    async with serving(Closing(), context) as receiver:
        outcomes = await calls(receiver, ["a", "b"])
    assert [outcome.message for outcome in outcomes] == ["200 ok"] * 2
    assert receiver.seen == [["a", "b"], ["b"]]


async def test_a_jobs_call_and_a_subscriber_fail_by_no_such_connection(shop: Shop) -> None:
    async with serving(Closing()) as receiver:
        url, ids = f"http://{LOOPBACK}:{receiver.port}/", [f"{shop.topic}-{i}" for i in range(3)]
        for one in ids:
            await shop.push(one, call={"url": url}, retry={"delays": []})
            await shop.becomes("finished", one)
        await shop.subscribe("closing", url=url)
        await shop.push(f"{ids[0]}s", retry={"delays": []})
        assert (await shop.becomes("finished", f"{ids[0]}s"))["results"][0]["attempts"] == 1
    # two servers may run in the process of the tests' servers: each has connections of its own
    assert {each for seen in receiver.seen for each in seen} == {*ids, f"{ids[0]}s"}
    assert any(len(seen) > 1 for seen in receiver.seen)


async def calls(
    receiver: Closing, ids: list[str], method: Method = Method.POST, last_ms: int = 60_000
) -> list[WebhookOutcome]:
    """The outcomes of calls one after the other, over the connections of one server; the last one ends in `last_ms`."""
    scheme = "https" if receiver.is_tls else "http"
    async with Webhooks.open(AddressGuard([HERE])) as webhooks:
        one = Subscriber(
            name="s",
            topic="t",
            url=f"{scheme}://{LOOPBACK}:{receiver.port}/",
            method=method,
            timeout_ms=60_000,
        )
        last = replace(one, timeout_ms=last_ms)
        return [
            await webhooks.call(
                last if each == ids[-1] else one, Event("t", each, b"{}", 1, "", 0, 1000, None)
            )
            for each in ids
        ]
