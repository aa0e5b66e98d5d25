"""How requests find their endpoint, and how errors are answered."""

import asyncio
import gc
import logging
import weakref
from types import SimpleNamespace
from typing import Any, Final

import pytest
from aiohttp import ClientConnectionError, ClientSession

from delayqueue import tasks
from delayqueue.answers.jobs import TakenJob
from delayqueue.config.config import Config
from delayqueue.domain.job import Reserved
from delayqueue.engine.wait_queue import Poll
from delayqueue.errors import QueueError, TooLarge
from delayqueue.web.api import Api
from delayqueue.web.app import build_server
from delayqueue.web.endpoint import OPEN, Large, Returnable, endpoint
from delayqueue.web.endpoints.reservations import AT_ONCE_CHARS, PopRequest, pop
from delayqueue.web.envelope import answer, envelope
from delayqueue.web.front import Front
from delayqueue.web.http import HttpRequest, HttpResponse
from tests.processes import LOOPBACK
from tests.shared_limits import limits
from tests.waiting import Turns, until

from .fronts import Handler, Server, front_of

LIST: Final = [{"id": n, "body": "\x01排"} for n in range(100)]


def front(handler: Handler) -> Front:
    """A front with one endpoint at two paths."""

    async def run(api: Api, request: HttpRequest) -> object:  # it needs none
        return await handler(request)

    return front_of(*(endpoint(path, OPEN)(run) for path in ("/pop", "/push")))


class Reader:
    """A client that reads what it is sent."""

    def __init__(self) -> None:
        self.read: list[HttpResponse] = []

    async def send(self, response: HttpResponse) -> None:
        self.read.append(response)


def request(path: str) -> HttpRequest:
    return HttpRequest("POST", path, {}, "127.0.0.1", b"{}")


async def test_a_client_that_is_gone_is_no_error_of_ours_and_the_answer_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Over a real connection, because aiohttp logs what a handler raises."""
    undelivered: list[str] = []

    async def handler(_: HttpRequest) -> Returnable[HttpResponse]:
        [connection] = server.connections
        assert connection.transport is not None
        connection.transport.abort()
        return Returnable(HttpResponse(b"for nobody"), lambda: undelivered.append("told"))

    server = build_server(Server(front(handler)), 1 << 20, limits())
    listener = await asyncio.get_running_loop().create_server(server, LOOPBACK, 0)
    async with listener:
        url = f"http://{LOOPBACK}:{listener.sockets[0].getsockname()[1]}/pop"
        with caplog.at_level(logging.DEBUG), pytest.raises(ClientConnectionError):
            async with ClientSession() as session, session.post(url):
                pass
        await until(lambda: undelivered == ["told"])
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_a_connection_that_is_lost_while_it_is_answered_holds_nothing() -> None:
    held_bytes: list[int] = []

    async def handler(_: HttpRequest) -> HttpResponse:
        [connection] = server.connections
        assert connection.transport is not None
        await until(lambda: shared.unanswered.bytes > len(request))
        held_bytes.append(shared.unanswered.bytes)
        connection.transport.abort()
        await asyncio.sleep(60)
        return HttpResponse(b"for nobody")

    shared = limits()
    server = build_server(Server(front(handler)), 1 << 20, shared)
    listener = await asyncio.get_running_loop().create_server(server, LOOPBACK, 0)
    body = b"{}" + b" " * 40_000
    head = f"POST /pop HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    async with listener:
        _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(request * 3)
        await until(lambda: bool(held_bytes) and not server.connections)
        for _ in range(10):
            await asyncio.sleep(0)
        writer.close()
    assert shared.unanswered.bytes == 0


async def test_a_defect_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_: HttpRequest) -> HttpResponse:
        raise KeyError("a secret")

    client = Reader()
    await front(handler).handle(request("/pop"), client)
    [answer] = client.read
    assert answer.status == 503
    assert b"secret" not in answer.body
    assert f"POST /pop failed, request {answer.headers['X-Request-Id']}" in caplog.text


async def test_an_error_that_was_answered_holds_no_memory() -> None:
    raised: list[weakref.ref[QueueError]] = []

    async def handler(_: HttpRequest) -> HttpResponse:
        error = TooLarge()
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.disable()
    try:
        await front(handler).handle(request("/push"), Reader())
        [error] = raised
        assert error() is None
    finally:
        gc.enable()


def front_with(data: object) -> Front:
    """A front with one endpoint, /pop, that answers this."""

    async def run(api: Api) -> object:  # it has no queue
        return data

    return front_of(endpoint("/pop", OPEN)(run))


@pytest.mark.parametrize(
    ("returned", "data"),
    [
        (Large(LIST), LIST),
        (Large({"jobs": LIST, "cursor": ""}), {"jobs": LIST, "cursor": ""}),
        (Returnable(Large(LIST), None), LIST),
    ],
    ids=["a list", "a list in an object", "a list to be given back"],
)
async def test_a_long_answer_lets_others_have_their_turn(
    returned: object, data: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "TURN_S", 0)
    client = Reader()
    async with Turns() as turns:
        await front_with(returned).handle(request("/pop"), client)
    assert turns.count > len(LIST) // 2
    [got] = client.read
    assert got.body == answer(envelope(0, "ok", data)).body


@pytest.mark.parametrize(
    ("body", "kind"), [("small", list), ("x" * AT_ONCE_CHARS, Large)], ids=["few bytes", "many"]
)
async def test_jobs_of_many_bytes_are_popped_by_turns(body: str, kind: type) -> None:
    """Small arrays are not: most polls for several jobs get small ones, and writing by turns takes longer."""

    poll = Poll(1, 10, 0)
    poll.answer([Reserved("t", "1001", body + "y", 1, "receipt", 0, 5000, None)])
    jobs = SimpleNamespace(polls=SimpleNamespace(begin=lambda *_: poll, requeue=list))
    asked = PopRequest.model_validate({"topic": "t", "count": 10})
    api = SimpleNamespace(jobs=jobs, config=Config())
    popped: Any = await pop.run(api, asked, request(""))
    assert isinstance(popped.data, kind)


@pytest.mark.parametrize("empty", [[], {}, {"jobs": []}], ids=str)
async def test_an_answer_in_pieces_is_json_when_it_is_empty(empty: Any) -> None:
    client = Reader()
    await front_with(Large(empty)).handle(request("/pop"), client)
    assert client.read[0].body == answer(envelope(0, "ok", empty)).body


JOB: Final = TakenJob("t", "a", "", 0)


@pytest.mark.parametrize(
    "data", [None, JOB, [JOB], Large([JOB])], ids=["nothing", "one", "many", "large"]
)
async def test_what_was_fetched_while_tokens_were_read_anew_is_answered(data: object) -> None:
    returned: list[str] = []

    async def run(api: Api) -> object:
        api.guard.revision += 1
        return Returnable(data, lambda: returned.append("it"))

    client = Reader()
    await front_of(endpoint("/pop", OPEN)(run)).handle(request("/pop"), client)
    assert [response.status for response in client.read] == [200]
    assert returned == []


async def test_data_whose_client_goes_while_it_is_written_out_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "TURN_S", 0)
    returned: list[str] = []
    front = front_with(Returnable(Large(LIST), lambda: returned.append("it")))
    client = Reader()
    task = asyncio.create_task(front.handle(request("/pop"), client))
    for _ in range(len(LIST) // 2):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert (returned, client.read) == (["it"], [])
