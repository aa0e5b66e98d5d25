"""What was given goes out byte for byte: URL, headers, body. A receiver that signs its URLs counts on that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Final

import pytest

from delayqueue.config.values import hosts
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.outcome import Event
from delayqueue.delivery.urls import host_of
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.call import check_url
from delayqueue.domain.subscriber import Subscriber
from tests.processes import LOOPBACK
from tests.waiting import until

from .conftest import Shop

HERE: Final = ip_network("127.0.0.1/32")


class RawReceiver:
    """Keeps each request as it came, and answers 200."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[bytes] = []

    @property
    def targets(self) -> list[str]:
        """What stood in the request lines between method and version."""
        return [
            line.removeprefix("POST ").removesuffix(" HTTP/1.1")
            for line in (request.partition(b"\r\n")[0].decode() for request in self.requests)
        ]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        self.requests.append(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def raw_receiving() -> AsyncIterator[RawReceiver]:
    raw = RawReceiver()
    server = await asyncio.start_server(raw.handle, LOOPBACK, 0)
    raw.port = server.sockets[0].getsockname()[1]
    async with server:
        yield raw


@pytest.fixture
async def raw() -> AsyncIterator[RawReceiver]:
    async with raw_receiving() as it:
        yield it


TARGETS: Final = [
    ("/x?mail=ann%40example.org", "an encoded @"),
    ("/x?next=%2Forders%2F1%3A2&list=1%2C2&who=%7Eann%27s", "other characters that need no code"),
    ("/x?ids[]=1&ids[0][a]=2", "brackets"),
    ("/x?a=%2f%e6%8e%92", "small hexadecimal digits"),
    ("/%70ath/%2e%2e", "codes in the path"),
    ("/a/../b/./c//d", "dots and two slashes"),
    ("/x?", "a question mark that nothing follows"),
    ("/x?a=1?b=2??", "several of them"),
    ("/x;v=1?a=1;b=2", "semicolons"),
    ("/x|y?a=b|c", "a bar"),
    ("/x?a={b}`\\^\"<>'!$()*+,", "what curl sends as it is, too"),
    ("/x?a=100%&b=%zz", "a percent sign that is none of a code"),
    ("//x", "a path that looks like a host"),
    ("/http://other.example/y", "a URL in the path"),
    ("/x?a=b+c&&d&=e", "an odd query"),
    ("/", "the root"),
]


@pytest.mark.parametrize(
    ("given", "sent", "_why"),
    [
        *((target, target, why) for target, why in TARGETS),
        ("", "/", "HTTP has no empty target"),
        ("?a=%40", "/?a=%40", "nor one without a path"),
        (
            "/提醒/%e6?名=王%40",
            "/%E6%8F%90%E9%86%92/%e6?%E5%90%8D=%E7%8E%8B%40",
            "nor beyond ASCII",
        ),
    ],
)
async def test_the_target_of_a_request_is_what_was_given_but_for_what_http_cannot_hold(
    raw: RawReceiver, given: str, sent: str, _why: str
) -> None:
    await call(check_url(f"http://{LOOPBACK}:{raw.port}{given}"))
    assert raw.targets == [sent]


async def test_a_user_and_password_of_a_subscriber_are_sent_decoded_and_change_no_url(
    raw: RawReceiver,
) -> None:
    await call(f"http://ann%40x:p%3aw@{LOOPBACK}:{raw.port}/x?a=%40")
    (request,) = raw.requests
    assert request.startswith(b"POST /x?a=%40 HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Basic YW5uQHg6cDp3\r\n" in request


@pytest.mark.parametrize(
    "given", ["http://h/a b", "http://h/\x00", "http://h/\u3000", "http://h/#a"]
)
def test_what_no_request_holds_is_refused_where_it_is_given(given: str) -> None:
    with pytest.raises(ValueError, match="which a request cannot hold: write it percent-encoded"):
        check_url(given)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("HTTP://Shop.Example.:80/x", "shop.example"),
        ("http://api.partner.com?@evil.com/", "api.partner.com"),
        ("http://api.partner.com/@evil.com/", "api.partner.com"),
        ("http://u:p@evil.com:80?@api.partner.com", "evil.com"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://127。0。0。1/", "127.0.0.1"),
        ("http://[::1]:8080/", "::1"),
    ],
)
def test_the_host_that_is_judged_is_the_one_that_is_called(url: str, host: str) -> None:
    assert host_of(url) == host
    if host != "api.partner.com":
        with pytest.raises(ValueError, match=r"call_allow does not list|not a public address"):
            CallGuard(hosts("api.partner.com")).check_url(url)


@pytest.mark.parametrize(
    "url",
    ["http://a\\b/", "http:///x", "http://:80/", "http://a\u2100b/", "http://h:x/", "ftp://h/"],
)
def test_a_url_without_a_clear_host_is_not_called(url: str) -> None:
    with pytest.raises(ValueError, match="has no host"):
        host_of(url)


async def test_headers_and_body_of_a_jobs_call_go_out_as_they_were_pushed(
    shop: Shop, raw: RawReceiver
) -> None:
    headers = {"X-sIgned": 'a=%2f;  b="c"', "aUTHORIZATION": "Bearer  a,b=", "Cookie": "a=b; c"}
    body = ' {"a": 1.0, "b":"\\u00e9\\/"}\t\n'
    url = f"http://{LOOPBACK}:{raw.port}/x?signature=%2fa%3D"
    await shop.push(body=body, call={"url": url, "headers": headers})
    assert (await shop.becomes("finished"))["call"]["url"] == url
    (request,) = raw.requests
    head, _, came = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /x?signature=%2fa%3D HTTP/1.1"
    assert {f"{name}: {value}" for name, value in headers.items()} <= set(lines)
    assert came == body.encode()


async def test_subscribers_and_trials_call_the_same_bytes(shop: Shop, raw: RawReceiver) -> None:
    target = "/hook?next=%2Fa%2f&ids[]=1&"
    url = f"http://{LOOPBACK}:{raw.port}{target}"
    name = await shop.subscribe("raw", url=url)
    (shown,) = (await shop.api.call("/subscribers", {"topic": shop.topic})).ok()
    assert shown["url"] == url
    (await shop.api.call("/try-subscriber", {"name": name})).ok()
    await shop.push()
    await until(lambda: len(raw.requests) == 2)
    assert raw.targets == [target, target]


async def call(url: str) -> None:
    async with Webhooks.open(AddressGuard([HERE])) as webhooks:
        subscriber = Subscriber(name="s", topic="t", url=url, timeout_ms=60_000)
        outcome = await webhooks.call(subscriber, Event("t", "j", b"{}", 1, "", 0, 1000, None))
    assert outcome.succeeded, outcome.message
