"""How requests find their endpoint, and what is made of errors."""

import gc
import logging
import weakref

import pytest
from aiohttp import ClientConnectionError, ClientSession, web
from aiohttp.test_utils import RawTestServer

from delayqueue.errors import QueueError, TooLarge
from delayqueue.web.api import Api
from delayqueue.web.app import Answering, Streamed
from delayqueue.web.endpoint import OPEN, endpoint
from delayqueue.web.front import Front
from delayqueue.web.http import HttpRequest, HttpResponse
from tests.waiting import until

from .fronts import Handler, front_of


def front(handler: Handler) -> Front:
    """A front with one endpoint at two paths."""

    async def run(api: Api, request: HttpRequest) -> HttpResponse:  # it needs none
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
    """Over a real connection: it is aiohttp that logs what a handler raises."""
    undelivered: list[str] = []

    async def handler(_: HttpRequest) -> HttpResponse:
        assert transports[0] is not None
        transports[0].abort()
        return HttpResponse(b"for nobody", undelivered=lambda: undelivered.append("told"))

    transports = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        transports.append(request.transport)
        answering = Answering(request)
        await front(handler).handle(Streamed(request), answering)
        return answering.sent

    async with RawTestServer(handle) as server:
        with caplog.at_level(logging.DEBUG), pytest.raises(ClientConnectionError):
            async with ClientSession() as session, session.post(server.make_url("/pop")):
                pass
        await until(lambda: undelivered == ["told"])
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


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
