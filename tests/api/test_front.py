"""What comes in at the door: paths, methods, and clients that wait to be told to send."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

import pytest

from tests.processes import LOOPBACK

if TYPE_CHECKING:
    from tests.api_client import Api
    from tests.processes import QueueServer

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def test_a_client_that_waits_to_be_told_is_told_to_send(
    server: QueueServer, topic: str
) -> None:
    """curl does so with a body of more than a megabyte, PHP's curl with one of more than 1,024 bytes."""
    job = json.dumps({"topic": topic, "id": topic, "ttr": 60}).encode()
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    head = f"POST /push HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(job)}\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(10):
        assert await reader.readexactly(len(CONTINUE)) == CONTINUE
        writer.write(job)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
    writer.close()


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/get?again=1", "a query is passed over"), ("/%67et", "escapes are read")],
)
async def test_a_path_is_read_as_the_web_does(api: Api, path: str, reason: str) -> None:
    assert (await api.request("POST", path, b'{"id":"x"}')).ok() is None, reason


@pytest.mark.parametrize("path", ["/get/", "//get", "/GET", "/", "*", "/admin/js"])
async def test_any_other_path_is_unknown(api: Api, path: str) -> None:
    (await api.request("POST", path if path != "*" else "/*", b"{}")).refused(status=404)


async def test_a_wrong_method_is_told_the_right_ones(api: Api) -> None:
    answer = await api.request("PUT", "/topics", b"{}")
    answer.refused(status=405)
    assert answer.headers["Allow"] == "GET, POST"


async def test_the_page_answers_head_as_get_without_its_body(api: Api) -> None:
    async with api.session.get(f"{api.url}/admin") as whole:
        length = len(await whole.read())
    async with api.session.head(f"{api.url}/admin") as answer:
        assert (answer.status, await answer.read()) == (200, b"")
        assert answer.headers["Content-Length"] == str(length)
