"""Whatever the target of a webhook sends, the call ends soon, and the server's loop goes on meanwhile."""

import asyncio
import gzip
import re
import socket
import ssl
import threading
from contextlib import suppress
from ipaddress import ip_network
from typing import Any, Final

import pytest
from aiohttp import connector
from aiohttp.abc import ResolveResult

from delayqueue.delivery import connector as ours
from delayqueue.delivery import webhook
from delayqueue.delivery.addresses import AddressGuard, Resolver
from delayqueue.delivery.connector import CALL_BYTES, EARLY_ANSWERS
from delayqueue.delivery.outcome import Event, WebhookOutcome
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.subscriber import Subscriber
from tests import certificates
from tests.processes import LOOPBACK
from tests.waiting import until

from .receiver import Receiver
from .strangers import (
    BEFORE_A_HEAD,
    CHUNKED,
    ENDLESS,
    IN_A_BODY,
    IN_A_HEAD,
    LASTS_S,
    Endless,
    sending,
    serving,
)

NAME: Final = "localhost"  # one that has to be looked up
HERE: Final = ip_network("127.0.0.1/32")
TOO_MUCH: Final = f"sent more than {CALL_BYTES} bytes during a call"
TOO_MANY: Final = f"sent more than {EARLY_ANSWERS} early answers"
SCHEMES: Final = pytest.mark.parametrize("scheme", ["http", "https"])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> certificates.Pair:
    return certificates.make(tmp_path_factory.mktemp("tls"), "target")


@pytest.fixture
def tls(pair: certificates.Pair, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of targets whose certificate webhooks accept."""
    monkeypatch.setattr(connector, "_SSL_CONTEXT_VERIFIED", pair.context())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


async def call(
    scheme: str, port: int, body: bytes = b"{}", *, timeout_s: float = 60
) -> WebhookOutcome:
    """The outcome of one call."""
    async with Webhooks.open(AddressGuard([HERE])) as webhooks:
        return await webhooks.call(target(scheme, port, timeout_s), job(body))


def target(scheme: str, port: int, timeout_s: float = 60, *, host: str = LOOPBACK) -> Subscriber:
    url = f"{scheme}://{host}:{port}/"
    return Subscriber(name="s", topic="t", url=url, timeout_ms=round(timeout_s * 1000))


def job(body: bytes = b"{}") -> Event:
    return Event("t", "j", body, 1, "", 0, 1000, None)


@SCHEMES
@pytest.mark.parametrize("name", ENDLESS)
async def test_what_has_no_end_is_cut_off(tls: ssl.SSLContext, scheme: str, name: str) -> None:
    with sending(ENDLESS[name], tls if scheme == "https" else None) as stranger:
        outcome = await call(scheme, stranger.port)
        await until(stranger.is_cut_off.is_set)
    if name in IN_A_BODY:
        assert outcome.message.startswith("200")  # the status counts
    elif name in BEFORE_A_HEAD:
        assert outcome == WebhookOutcome(succeeded=False, message=TOO_MANY)
    elif name in IN_A_HEAD:
        assert outcome.message.startswith("no valid answer: ")


async def test_tickets_without_end_are_cut_off(tls: ssl.SSLContext) -> None:
    """A server of TLS 1.3 sends them after the handshake; nothing of them reaches HTTP."""
    tls.num_tickets = 10_000
    with sending(Endless(b"HTTP/1.1 204 No Content\r\n\r\n", b""), tls) as stranger:
        outcome = await call("https", stranger.port)
    assert outcome == WebhookOutcome(succeeded=False, message=TOO_MUCH)


NO_HTTP: Final = {
    "another protocol": b"SSH-2.0-hush\r\n",
    "a broken header": b"HTTP/1.1 200 OK\r\nSet Cookie: hush\r\n\r\n",
    "a zero byte": b"HTTP/1.1 200 OK\r\nSet-Cookie: \0hush\r\n\r\n",
    "a long line": b"HTTP/1.1 200 OK\r\nSet-Cookie: hush" + b"x" * 9000 + b"\r\n\r\n",
    "a half head": b"HTTP/1.1 200 OK\r\nSet-Cookie: hush\r\n",
    "a length in words": b"HTTP/1.1 200 OK\r\nContent-Length: hush\r\n\r\n",
    "a chunk's size in words": CHUNKED + b"hush\r\n",
}


@pytest.mark.parametrize("said", NO_HTTP.values(), ids=NO_HTTP)
async def test_of_what_is_no_answer_nothing_is_told(said: bytes) -> None:
    """The log has the message of a call without a status."""

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            connection.sendall(said)

    with serving(answer) as port:
        outcome = await call("http", port)
    assert (outcome.succeeded, outcome.status) == (False, 0)
    assert re.fullmatch("no valid answer: [a-zA-Z0-9 -]+|Server disconnected", outcome.message)
    assert "hush" not in outcome.message


async def test_a_compressed_answer_stays_as_it_is() -> None:
    """A megabyte of it could be a gigabyte."""
    compressed = gzip.compress(bytes(10_000_000))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(compressed)}\r\n\r\n"

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            connection.sendall(head.encode() + compressed)

    with serving(answer) as port:
        outcome = await call("http", port)
    assert (outcome.succeeded, outcome.lacks) == (True, "")
    assert len(outcome.message) < 3 * len(compressed)


async def test_aiohttp_makes_connections_with_our_protocol(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ours.MeteredAnswers] = []
    begin = ours.MeteredAnswers.connection_made

    def note(self: ours.MeteredAnswers, transport: asyncio.BaseTransport) -> None:
        made.append(self)
        begin(self, transport)

    monkeypatch.setattr(ours.MeteredAnswers, "connection_made", note)
    async with Webhooks.open(AddressGuard([HERE])) as webhooks:
        subscriber = Subscriber(name="s", topic="t", url=receiver.url("x"))
        assert (await webhooks.call(subscriber, job())).succeeded
    assert made, "aiohttp makes them in another way: see MeteredConnector, which sets `_factory`"


async def test_what_follows_an_answer_is_limited() -> None:
    """The connection waits for the next call, so nobody reads what comes."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    async with Webhooks.open(AddressGuard([HERE])) as webhooks:
        with sending(Endless(answer, answer)) as stranger:
            assert (await webhooks.call(target("http", stranger.port), job())).succeeded
            await until(stranger.is_cut_off.is_set)


@pytest.mark.filterwarnings("ignore:Sending a large body")  # more than the kernel takes
async def test_who_does_not_read_a_request_keeps_nothing_of_it() -> None:
    body = b"x" * 20_000_000
    read, ended, call_is_over = bytearray(), threading.Event(), threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(ConnectionResetError):
            call_is_over.wait()
            while came := connection.recv(65536):
                read.extend(came)
        ended.set()

    with serving(answer) as port:
        assert (await call("http", port, body, timeout_s=0.2)).message == "timeout: 0.2 s"
        call_is_over.set()
        await until(ended.is_set)
    assert len(read) < len(body)


async def test_a_call_does_not_run_in_the_loop_of_the_server() -> None:
    """What takes long there, a handshake with huge keys for example, does not delay ticks and polls."""
    has_begun, goes_on = threading.Event(), threading.Event()

    class Slow(Resolver):
        async def resolve(self, *args: Any, **more: Any) -> list[ResolveResult]:
            has_begun.set()
            assert goes_on.wait(LASTS_S)  # blocks the loop of the call
            return await super().resolve(*args, **more)

    async with Webhooks.open(AddressGuard([HERE]), Slow()) as webhooks:
        calling = asyncio.create_task(webhooks.call(target("http", 9, host=NAME), job()))
        await until(has_begun.is_set)
        goes_on.set()
        assert "Cannot connect" in (await calling).message


async def test_a_call_whose_loop_is_blocked_ends_at_its_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook, "LATE_S", 0.0)
    goes_on = threading.Event()

    class Hanging(Resolver):
        async def resolve(self, *_: Any, **__: Any) -> list[ResolveResult]:
            goes_on.wait(LASTS_S)
            return []

    async with Webhooks.open(AddressGuard([HERE]), Hanging()) as webhooks:
        outcome = await webhooks.call(target("http", 9, 0.1, host=NAME), job())
        assert not goes_on.is_set()
        goes_on.set()
    assert outcome.message == "timeout: 0.1 s"


async def test_a_host_that_moves_is_followed_though_calls_are_steady(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = 0

    class Counting(Resolver):
        async def resolve(self, *args: Any, **more: Any) -> list[ResolveResult]:
            nonlocal lookups
            lookups += 1
            return await super().resolve(*args, **more)

    one = target("http", receiver.port, host=NAME)
    async with Webhooks.open(AddressGuard([HERE, ip_network("::1/128")]), Counting()) as webhooks:
        for _ in range(3):
            assert (await webhooks.call(one, job())).succeeded
        assert lookups == 1, "a young connection is used again"
        monkeypatch.setattr(ours, "AGE_S", 0.0)
        for _ in range(3):
            assert (await webhooks.call(one, job())).succeeded
        assert lookups == 4
