"""What the server logs of requests: one line per event, no secrets, nothing that a client can forge or flood."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.api_client import UNAUTHORIZED, Api, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

TOKEN: Final = "secret-token-0123456789"
STOLEN: Final = "guessed-token-0123456789"
BODY: Final = "a secret body"
FORGED: Final = "x%0A2026-01-31T12:00:00.000Z%20INFO%20delayqueue:%20a%20lie%1b[2J"


@pytest.fixture(scope="module")
def logging_server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server that logs everything."""
    return processes.server(
        redis_server,
        access_log="yes",
        log_level="debug",
        log_format="json",
        auth_tokens=f"admin:{TOKEN}",
    )


@pytest.fixture
async def logged_api(logging_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(logging_server.url, TOKEN) as api:
        yield api


def events(server: QueueServer) -> list[dict[str, object]]:
    return [json.loads(line) for line in server.logged().splitlines()]


def requests(server: QueueServer) -> list[dict[str, object]]:
    return [event for event in events(server) if "method" in event]


async def test_each_request_is_one_line(logging_server: QueueServer, logged_api: Api) -> None:
    before = len(requests(logging_server))
    (await logged_api.push(topic="t", id="a")).ok()
    (await logged_api.push(topic="t")).refused()
    (await logged_api.request("POST", f"/{FORGED}?token={STOLEN}")).refused(status=404)
    async with logged_api.session.get(f"{logged_api.url}/docs") as page:
        assert page.status == 200
    new = requests(logging_server)[before:]
    assert [(each["method"], each["status"], each["code"]) for each in new] == [
        ("POST", 200, 0),
        ("POST", 200, 1),
        ("POST", 404, 1),
        ("GET", 200, 0),
    ]
    assert new[0]["path"] == "/push"
    assert new[0]["client"] == LOOPBACK
    assert isinstance(new[0]["ms"], float)


async def test_no_body_and_no_token_is_logged(logging_server: QueueServer, logged_api: Api) -> None:
    (await logged_api.push(topic="secret-topic", id="secret-id", body=BODY)).ok()
    (await logged_api.pop("secret-topic")).ok()
    (await logged_api.request("POST", "/push", BODY.encode())).refused()
    async with open_api(logging_server.url, STOLEN) as stranger:
        (await stranger.get(f"/get?token={STOLEN}")).refused(UNAUTHORIZED, status=401)
    assert len(requests(logging_server)) >= 4
    log = logging_server.logged()
    for secret in (TOKEN, STOLEN, BODY, "secret-topic", "secret-id"):
        assert secret not in log


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [
        ("abc-123", "abc-123"),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("a" * 128, "a" * 128),
        ("a" * 129, None),
        ("", None),
        ("a b", None),
        ('a"b', None),
        ("a\\n", None),
        ("编号", None),
        ("\x1b[2J", None),
    ],
)
async def test_a_sane_request_id_comes_back_and_is_logged(
    logging_server: QueueServer, sent: str, echoed: str | None
) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, logging_server.port)
    head = f"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: {sent}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    answer = (await asyncio.wait_for(reader.read(), 30)).decode()
    writer.close()
    back = [line[14:] for line in answer.split("\r\n") if line.startswith("X-Request-Id: ")]
    assert back == ([] if echoed is None else [echoed])
    if "200 OK" in answer:  # aiohttp itself refuses some
        assert requests(logging_server)[-1]["request"] == (echoed or "-")


async def test_what_is_no_http_does_not_fill_the_log(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server)
    before = server.logged()
    for garbage in (
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
        writer.write(garbage)
        assert b" 400 " in await asyncio.wait_for(reader.readline(), 30)
        writer.close()
    assert server.logged() == before


async def test_a_job_that_is_buried_is_one_line(
    logging_server: QueueServer, logged_api: Api
) -> None:
    for job_id, ttr_s in (("bury", 60), ("release", 60), ("time out", 1)):
        gone = {"ttr": ttr_s, "retry": {"delays": [0]}}
        (await logged_api.push(topic="dead", id=job_id, body=BODY, **gone)).ok()
        await bury(logged_api, job_id)

        async def is_buried(job_id: str = job_id) -> bool:
            return bool((await logged_api.get(job_id)).ok()["state"] == "buried")

        await until_async(is_buried)

    def buried() -> list[str]:
        messages = [str(event["message"]) for event in events(logging_server)]
        return [message for message in messages if "is buried" in message]

    await until(lambda: len(buried()) > 2)
    assert buried() == [
        "job 'bury' is buried: its worker gave it up",
        "job 'release' is buried: it failed with no retries left",
        "job 'time out' of topic 'dead' is buried: its TTR expired with no retries left",
    ]
    assert BODY not in logging_server.logged()


async def bury(api: Api, job_id: str) -> None:
    """Have a job buried in one of three ways."""
    for _ in range(2):
        job = (await api.pop("dead", timeout=10)).ok()
        if job_id == "bury":
            (await api.call("/bury", {"id": job_id, "message": BODY})).ok()
            return
        if job_id == "release":
            (await api.call("/release", {"id": job_id, "receipt": job["receipt"]})).ok()
