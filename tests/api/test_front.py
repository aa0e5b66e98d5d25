"""Paths, methods, and clients that wait for "100 Continue"."""

import asyncio
import json
import re
from http import HTTPStatus
from typing import Any, Final

import pytest

from tests.api_client import FORBIDDEN, INVALID, OK, Api
from tests.processes import LOOPBACK, QueueServer

from .dialogue import post

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def test_a_client_that_waits_to_be_told_is_told_to_send(
    server: QueueServer, topic: str
) -> None:
    """curl does so with a body of more than a megabyte, PHP's curl with one of more than 1,024 bytes."""
    job = json.dumps({"topic": topic, "id": topic, "ttr": 60}).encode()
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    head = f"POST /push HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(job)}\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(30):
        assert await reader.readexactly(len(CONTINUE)) == CONTINUE
        writer.write(job)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    writer.close()


@pytest.mark.parametrize("expect", ["", "Expect: 100-continue\r\n"])
async def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(
    server: QueueServer, expect: str
) -> None:
    """Who was not told to send it may not send it, so what comes next has no known meaning."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(
        f"POST /push HTTP/1.1\r\nHost: x\r\n{expect}Content-Length: {10**10}\r\n\r\n".encode()
    )
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert (b"Connection: close" in head) == bool(expect)
    writer.close()


@pytest.mark.parametrize(
    "path", ["//get/", "//topics", "/GET", "/*", "/admin/js", "/%ff", "/<script>"]
)
async def test_any_other_path_is_unknown(api: Api, path: str) -> None:
    assert path not in (await api.request("POST", path, b"{}")).refused(status=404)


async def test_a_wrong_method_is_told_the_right_ones(api: Api) -> None:
    answer = await api.request("PUT", "/topics", b"{}")
    answer.refused(status=405)
    assert answer.headers["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_the_originals_endpoints_take_any_method_with_a_body(
    api: Api, topic: str, method: str
) -> None:
    async def ask(path: str, **payload: object) -> Any:
        return (await api.request(method, path, json.dumps(payload).encode())).ok()

    await ask("/push", topic=topic, id=topic, ttr=60, body="x")
    assert (await ask("/get", id=topic))["body"] == "x"
    assert (await ask("/pop", topic=topic))["id"] == topic
    await ask("/finish", id=topic)
    await ask("/delete", id=topic)
    page = {"Origin": "https://elsewhere.example"}
    (await api.request(method, "/delete", b'{"id":"x"}', page)).refused(FORBIDDEN, status=403)


@pytest.mark.parametrize(
    "path",
    ["/healthz", "/readyz", "/topics", "/stats", "/metrics", "/openapi.json", "/docs", "/admin"],
)
async def test_head_is_answered_as_get_without_the_body(api: Api, path: str) -> None:
    async with api.session.head(f"{api.url}{path}") as answer:
        assert (answer.status, await answer.read()) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 0


async def test_the_root_leads_to_the_page(api: Api) -> None:
    async with api.session.get(f"{api.url}/") as answer:
        assert (answer.status, answer.url.path) == (200, "/admin")


@pytest.mark.parametrize(
    ("path", "kept"), [("/readyz", "no-store"), ("/topics", "no-store"), ("/admin", "no-cache")]
)
async def test_no_cache_answers_in_the_servers_place(api: Api, path: str, kept: str) -> None:
    async with api.session.get(f"{api.url}{path}") as answer:
        assert answer.headers.getall("Cache-Control") == [kept]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("known", ["{}", "W/{}", '"former", {}', "*"])
async def test_a_browser_that_has_the_pages_file_is_not_sent_it_again(
    api: Api, method: str, known: str
) -> None:
    url = f"{api.url}/admin/style.css"
    async with api.session.get(url) as whole:
        tag = whole.headers["ETag"]
    async with api.session.request(
        method, url, headers={"If-None-Match": known.format(tag)}
    ) as answer:
        assert (answer.status, await answer.read()) == (HTTPStatus.NOT_MODIFIED, b"")
        assert (answer.headers["ETag"], answer.headers.get("Content-Length")) == (tag, None)
    async with api.session.request(method, url, headers={"If-None-Match": '"former"'}) as answer:
        assert (answer.status, len(await answer.read()) > 0) == (HTTPStatus.OK, method == "GET")


async def answers(server: QueueServer, sent: bytes, *, ends: bool = True) -> list[tuple[int, Any]]:
    """Status and content of all answers up to the end. `ends`: half-close after the request, as `nc -N` does."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(sent)
    if ends:
        writer.write_eof()
    async with asyncio.timeout(30):
        raw = await reader.read()
    writer.close()
    found = []
    while raw:
        head, _, raw = raw.partition(b"\r\n\r\n")
        headers = head.lower().split(b"\r\n")
        (length,) = (int(line[15:]) for line in headers if line.startswith(b"content-length:"))
        found.append((int(head.split()[1]), json.loads(raw[:length])))
        raw = raw[length:]
    return found


async def test_who_half_closes_after_its_request_is_answered(
    server: QueueServer, topic: str
) -> None:
    job = {"topic": topic, "id": topic, "ttr": 60, "body": "x"}
    assert await codes(server, post("/push", job)) == [(200, OK)]
    [(_, found)] = await answers(server, post("/get", {"id": topic}))
    assert found["data"]["body"] == "x"
    assert await codes(server, b"GET /healthz HTTP/1.0\r\n\r\n") == [(200, OK)]
    chunked = b"POST /get HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert await codes(server, chunked + b'a\r\n{"id":"x"}\r\n0\r\n\r\n') == [(200, OK)]


async def codes(server: QueueServer, sent: bytes) -> list[tuple[int, int]]:
    return [(status, content["code"]) for status, content in await answers(server, sent)]


@pytest.mark.parametrize("path", ["/pop", "//pop", "/%70op"])
async def test_a_poll_whose_client_half_closes_counts_as_gone(
    api: Api, server: QueueServer, topic: str, path: str
) -> None:
    """A process that dies sends the same, so it is given no job."""
    assert await answers(server, post(path, {"topic": topic, "timeout": 60})) == []
    (await api.push(topic=topic, id=topic)).ok()
    assert (await api.pop(topic, timeout=10)).ok()["attempt"] == 1


INSIDE: Final = re.compile(
    r"Traceback|File \"|\.py\b|line \d+|<script|aiohttp|Python|aaa", re.IGNORECASE
)
# beside the shapes of test_both_ways.py
NOT_HTTP: Final = {
    "a TLS client": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a header without colon": b"GET /healthz HTTP/1.1\r\nHost: x\r\nfoo bar\r\n\r\n",
    "a header with a blank": b"GET /healthz HTTP/1.1\r\nHost: x\r\na b: c\r\n\r\n",
    "a length that is none": b"POST /push HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
    "a negative length": b"POST /push HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "a bad chunk": b"POST /push HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n",
    "a long path": b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a long header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
    "many headers": b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 300 + b"\r\n",
    "HTTP/9": b"GET / HTTP/9.9\r\n\r\n",
    "an unknown method": b"BREW /push HTTP/1.1\r\nHost: x\r\n\r\n",
    "NUL in the path": b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a path that is no text": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("end", [b"ZZ\r\n", b"0\n\n"])
async def test_a_bad_chunk_that_comes_later_is_answered_at_once_and_ends_the_connection(
    server: QueueServer, end: bytes
) -> None:
    """It cannot come with the head, as the client waits to be told. The client leaves its side open."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    lines = b"Host: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue"
    writer.write(b"POST /push HTTP/1.1\r\n" + lines + b"\r\n\r\n")
    async with asyncio.timeout(30):
        assert await reader.readexactly(len(CONTINUE)) == CONTINUE
        writer.write(b"1\r\n{\r\n" * 63 + end)
        head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(content)["code"] == INVALID
    assert json.loads(content)["message"].startswith("不是有效的HTTP请求：")


@pytest.mark.parametrize(
    ("start", "framing"),
    [("CONNECT /push HTTP/1.1", ""), ("POST /get HTTP/1.0", "Transfer-Encoding: chunked\r\n")],
    ids=["CONNECT", "chunks that HTTP/1.0 does not know"],
)
async def test_what_comes_behind_a_body_that_a_proxy_may_read_otherwise_is_no_request(
    server: QueueServer, topic: str, start: str, framing: str
) -> None:
    hidden = post("/push", {"topic": topic, "id": topic, "ttr": 60})
    framing = framing or f"Content-Length: {len(hidden)}\r\n"
    head = f"{start}\r\nHost: x\r\nConnection: keep-alive\r\n{framing}\r\n".encode()
    body = b"0\r\n\r\n" if "chunked" in framing else b""
    assert len(await answers(server, head + body + hidden)) == 1


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP)
async def test_what_is_not_http_is_answered_in_the_envelope(
    server: QueueServer, sent: bytes
) -> None:
    [(status, content)] = await answers(server, sent, ends=False)
    assert (status, list(content)) == (400, ["code", "message", "data"])
    assert (content["code"], content["data"]) == (INVALID, None)
    assert content["message"].startswith("不是有效的HTTP请求：")
    assert not INSIDE.search(str(content))
    assert server.probe("/healthz") == HTTPStatus.OK
