"""Answers that are not those of a delay-queue server: of a proxy, of a web page, of something that is broken."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from delayqueue import Worker
from delayqueue.client import AsyncClient, Client, TooLarge, TooMany, TransportError
from delayqueue.client import api_request as rules
from delayqueue.client.api_request import Answer, ApiRequest, conversation
from delayqueue.errors import Text
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.worker import worker_run
from tests.client.conftest import Caller, at_work
from tests.client.every_verb import CALLS, SCENE, Asked
from tests.partner import Answer as Said
from tests.partner import Partner
from tests.processes import LOOPBACK
from tests.waiting import until

BODIES: Final = {
    "nothing": b"",
    "a page": b"<html></html>",
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "not utf-8": b'{"code":0,"message":"\xff","data":null}',
    "no members": b"{}",
    "a code that is a list": b'{"code":[],"message":"ok","data":null}',
    "a code that is a text": b'{"code":"0","message":"ok","data":null}',
    "no message": b'{"code":0,"message":null,"data":null}',
    "brackets": b"[" * 100_000,
    "a long number": b'{"code":' + b"9" * 10_000 + b',"message":"ok","data":null}',
}
DATA: Final = ["x", {}, [7], [None], [[]], {"jobs": {}, "cursor": 7}, {"count": "1"}, 7, True]


def answered(
    request: ApiRequest[Any], body: bytes, status: int = 200, wait: str | None = None
) -> Any:
    """What becomes of the request if this is its answer."""
    talk = conversation(request, retries=0)
    next(talk)
    try:
        talk.send(Answer(status, body, wait))
    except StopIteration as end:
        return end.value
    raise AssertionError("it is repeated")


@pytest.mark.parametrize("kind", BODIES)
def test_an_answer_of_something_else_is_named_as_that(kind: str) -> None:
    for verb, make in CALLS.items():
        request = make(Asked(), SCENE)
        with pytest.raises(TransportError, match="not a delay-queue server: HTTP status 200"):
            pytest.fail(f"{verb} is {answered(request, BODIES[kind])}")


def test_a_proxy_that_finds_a_request_too_large_is_believed() -> None:
    """Repeating it would not help, as with a server that is away."""
    with pytest.raises(TooLarge, match="larger than a proxy lets through"):
        answered(ApiRequest("/push", {}, read=str), b"<html></html>", TooLarge.status)


@pytest.mark.parametrize("verb", CALLS)
def test_data_of_another_shape_is_no_result(verb: str) -> None:
    request = CALLS[verb](Asked(), SCENE)
    for data in DATA:
        body = json.dumps({"code": 0, "message": "ok", "data": data}).encode()
        try:
            result = answered(request, body)
        except TransportError:
            continue
        assert result in (None, [None]) or verb == "push"  # which is told its id by nobody


@pytest.mark.parametrize("listing", ["schedules", "subscribers"])
def test_the_list_of_a_server_without_pages_is_the_only_page(listing: str) -> None:
    """An older one passes over `limit`."""
    request = CALLS[f"{listing}_page"](Asked(), SCENE)
    [example] = next(one.answers for one in ENDPOINTS if one.path == f"/{listing}")
    listed = [example | {"name": name} for name in ("a", "b")]
    for data in (listed, {listing: listed, "cursor": ""}):
        page = answered(request, json.dumps({"code": 0, "message": "ok", "data": data}).encode())
        assert ([one.name for one in getattr(page, listing)], page.cursor) == (["a", "b"], "")


def test_a_job_whose_members_have_other_types_is_none() -> None:
    good = {"topic": "t", "id": "a", "body": "", "attempt": 1, "receipt": "r-1", "due": 1}
    request = CALLS["pop"](Asked(), SCENE)
    others: list[Any] = [{}, None, [1]]
    for name in good:
        for value in others:
            body = json.dumps({"code": 0, "message": "ok", "data": good | {name: value}})
            with pytest.raises(TransportError, match="not a delay-queue server"):
                answered(request, body.encode())
    body = json.dumps({"code": 0, "message": "ok", "data": good})
    assert answered(request, body.encode()).id == "a"


@pytest.mark.parametrize("said", ["86400", "9" * 400])
def test_no_pause_is_longer_than_a_minute_whatever_an_answer_says(said: str) -> None:
    body = json.dumps({"code": TooMany.code, "message": "no", "data": None}).encode()
    with pytest.raises(TooMany) as raised:
        answered(ApiRequest("/pop", {}, read=str), body, TooMany.status, said)
    assert raised.value.retry_after_s == 60


@asynccontextmanager
async def stranger(answer: bytes, served: list[float]) -> AsyncIterator[str]:
    """Something that gives this answer to everything, at once; notes when. Gives its URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        served.append(time.monotonic())
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, LOOPBACK) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"


def http(body: bytes, first: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (
        first,
        len(body),
        body,
    )


ODD: Final = {
    **{name: http(body) for name, body in BODIES.items()},
    "data that is a text": http(b'{"code":0,"message":"ok","data":"x"}'),
    "data that is an object": http(b'{"code":0,"message":"ok","data":{}}'),
    "no job at once": http(b'{"code":0,"message":"ok","data":[]}'),
    "a wait of 400 digits": http(
        b'{"code":10,"message":"no","data":null}', b"429 No\r\nRetry-After: " + b"9" * 400
    ),
    "a length of 9,999 digits": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 9_999 + b"\r\n\r\n",
    "a chunk that goes back": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-6\r\n",
}


@pytest.mark.parametrize("kind", ODD)
async def test_a_worker_goes_on_after_an_odd_answer_and_asks_without_haste(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_run, "RETRY_S", 0.2)
    monkeypatch.setattr(rules, "EARLY_S", 60)  # however long the machine pauses
    monkeypatch.setattr(rules, "EARLY_PAUSE_S", 0.2)
    served: list[float] = []
    async with stranger(ODD[kind], served) as url:
        worker, stop = Worker(url), asyncio.Event()
        worker.on("t")(lambda _: None)
        working = asyncio.create_task(worker.work(stop))
        if kind == "a wait of 400 digits":
            await until(lambda: working.done() or "cannot fetch jobs" in caplog.text)
        else:
            await until(lambda: working.done() or len(served) > 1)
            assert served[1] - served[0] >= 0.2
        assert not working.done()
        stop.set()
        await working


@pytest.mark.parametrize(("asked_s", "pause_s"), [(7, 7), (0, 1)])
def test_a_worker_that_is_too_much_polls_again_when_the_server_says(
    asked_s: float, pause_s: float
) -> None:
    refused = TooMany(Text("", ""), retry_after_s=asked_s)
    assert worker_run._pause_s(refused) == pause_s


async def test_no_topic_of_a_worker_is_always_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_run, "RETRY_S", 0.0)
    with Partner(Said(503, '{"code":6,"message":"away","data":null}')) as away:
        worker, stop = Worker(away.url), asyncio.Event()
        worker.on("a", "b", "c")(lambda _: None)
        working = asyncio.create_task(worker.work(stop))
        await until(lambda: len(away.received) > 2)
        stop.set()
        await working
    asked = [json.loads(each)["topic"] for each in away.received[:3]]
    assert asked == ["a,b,c", "b,c,a", "c,a,b"]


@pytest.mark.parametrize(("attempt", "delay_s"), [(2, 7), (99, 8)])
async def test_a_job_that_is_tried_for_ever_comes_again_as_its_attempt_says(
    attempt: int, delay_s: int
) -> None:
    job = {"topic": "t", "id": "a", "body": "", "attempt": attempt, "receipt": "r", "due": 0}
    popped = Said(200, json.dumps({"code": 0, "message": "ok", "data": [job]}))
    with Partner(popped, Said(200, '{"code":0,"message":"ok","data":{"due":1}}')) as server:
        worker = Worker(server.url)
        worker.on("t", lambda _: 1 // 0, retry=[5, 7, 8], max_attempts=None)
        async with at_work(worker):
            await until(lambda: "/release" in [path for path, _ in server.heads])
    place = [path for path, _ in server.heads].index("/release")
    assert json.loads(server.received[place])["fallback"] == delay_s


async def test_an_empty_answer_that_did_not_wait_is_asked_again_after_a_pause(
    kind: type[Client | AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who polls in a loop would call thousands of times a second."""
    monkeypatch.setattr(rules, "EARLY_S", 60)  # however long the machine pauses
    monkeypatch.setattr(rules, "EARLY_PAUSE_S", 0.1)
    served: list[float] = []
    async with stranger(http(b'{"code":0,"message":"ok","data":null}'), served) as url:
        client = Caller(kind(url))
        assert await client.pop("t", wait=600) is None
        assert len(served) == 3
        assert served[2] - served[0] >= 0.2
        assert await client.pop("t", wait=0) is None  # which is not to wait
        assert len(served) == 4
        assert await client.get("x", wait=600) is None  # there is no such job: nothing to wait for
        assert len(served) == 5
        assert await client.pop("t") is None  # which waits as long as the server says
        assert len(served) == 8
        await client.close()
