"""How requests find their endpoint, and how errors are answered."""

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any, Final

import pytest

from delayqueue import tasks
from delayqueue.answers.jobs import TakenJob
from delayqueue.config.config import Config
from delayqueue.domain.job import Reserved
from delayqueue.engine.wait_queue import Poll
from delayqueue.errors import QueueError, TooLarge
from delayqueue.web.api import Api
from delayqueue.web.endpoint import OPEN, Large, Returnable, endpoint
from delayqueue.web.endpoints.reservations import AT_ONCE_BYTES, PopRequest, pop
from delayqueue.web.envelope import envelope
from delayqueue.web.front import Front
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.responses import as_json
from tests.waiting import Turns, until

from .fronts import Client, Handler, TextRequest, front_of

LIST: Final = [{"id": n, "body": "\x01排"} for n in range(100)]


def front(handler: Handler) -> Front:
    """A front with one endpoint at two paths."""

    async def run(
        api: Api, asked: TextRequest, request: HttpRequest
    ) -> object:  # it needs no queue
        return await handler(request, asked.text)

    return front_of(*(endpoint(path, OPEN)(run) for path in ("/pop", "/push")))


def request(path: str) -> HttpRequest:
    return HttpRequest("POST", path, {}, "127.0.0.1")


async def test_a_defect_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        raise KeyError("a secret")

    client = Client()
    await client.ask(front(handler), request("/pop"))
    [answer] = client.got
    assert answer.status == 503
    assert b"secret" not in answer.body
    assert f"POST /pop failed, request {answer.headers['X-Request-Id']}" in caplog.text


async def test_an_error_that_was_answered_holds_no_memory() -> None:
    raised: list[weakref.ref[QueueError]] = []

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        error = TooLarge()
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.disable()
    try:
        await Client().ask(front(handler), request("/push"))
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
    client = Client()
    async with Turns() as turns:
        await client.ask(front_with(returned), request("/pop"))
    assert turns.count > len(LIST) // 2
    [got] = client.got
    assert got.body == as_json(envelope(0, "ok", data))


@pytest.mark.parametrize(
    ("body", "kind"), [(b"small", list), (b"x" * AT_ONCE_BYTES, Large)], ids=["few bytes", "many"]
)
async def test_jobs_of_many_bytes_are_popped_by_turns(body: bytes, kind: type) -> None:
    """Small arrays are not: most polls for several jobs get small ones, and writing by turns takes longer."""

    poll = Poll(1, 10, 0)
    poll.answer([Reserved("t", "1001", body + b"y", 1, "nonce", 0, 5000, None)])
    jobs = SimpleNamespace(polls=SimpleNamespace(begin=lambda *_: poll, requeue=list))
    asked = PopRequest.model_validate({"topic": "t", "count": 10})
    api = SimpleNamespace(jobs=jobs, config=Config())
    popped: Any = await pop.run(api, asked, request(""))
    assert isinstance(popped.data, kind)


@pytest.mark.parametrize("empty", [[], {}, {"jobs": []}], ids=str)
async def test_an_answer_in_pieces_is_json_when_it_is_empty(empty: Any) -> None:
    client = Client()
    await client.ask(front_with(Large(empty)), request("/pop"))
    assert client.got[0].body == as_json(envelope(0, "ok", empty))


JOB: Final = TakenJob("t", "a", "", 0)


@pytest.mark.parametrize(
    "data", [None, JOB, [JOB], Large([JOB])], ids=["nothing", "one", "many", "large"]
)
async def test_what_was_fetched_while_tokens_were_read_anew_is_answered(data: object) -> None:
    returned: list[str] = []

    async def run(api: Api) -> object:
        api.guard.revision += 1
        return Returnable(data, lambda: returned.append("it"))

    client = Client()
    await client.ask(front_of(endpoint("/pop", OPEN)(run)), request("/pop"))
    assert [response.status for response in client.got] == [200]
    assert returned == []


async def test_data_whose_client_goes_while_it_is_written_out_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "TURN_S", 0)
    returned: list[str] = []
    front = front_with(Returnable(Large(LIST), lambda: returned.append("it")))
    client = Client()
    front.begin(request("/pop"), b"", client)
    for _ in range(len(LIST) // 2):
        await asyncio.sleep(0)
    assert client.pending is not None
    client.pending.cancel()
    await until(lambda: bool(returned))
    assert (returned, client.got) == (["it"], [])
