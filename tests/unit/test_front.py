"""How requests find their endpoint, and what is made of errors."""

import gc
import logging
import weakref

import pytest
from aiohttp import ClientConnectionError, ClientSession, web
from aiohttp.test_utils import RawTestServer, make_mocked_request

from delayqueue.errors import QueueError, TooLarge
from delayqueue.metrics import Metrics
from delayqueue.web.envelope import Speaker
from delayqueue.web.front import Front, Handler
from delayqueue.web.journal import Journal
from tests.waiting import until


def front(handler: Handler) -> Front:
    """A front with one endpoint at two paths."""
    endpoints = {"/pop": {"POST": handler}, "/push": {"POST": handler}}
    return Front(endpoints, [], Speaker("en"), Journal(Metrics(), lines=False))


async def test_a_client_that_is_gone_is_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """Over a real connection: it is aiohttp that logs what a handler raises."""
    raised: list[ConnectionError] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        response = web.Response(text="for nobody")
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError as error:
            raised.append(error)
            raise
        return response

    async with RawTestServer(front(handler).handle) as server:
        with caplog.at_level(logging.DEBUG), pytest.raises(ClientConnectionError):
            async with ClientSession() as session, session.post(server.make_url("/pop")):
                pass
        await until(lambda: bool(raised))
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_a_defect_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        raise KeyError("a secret")

    answer = await front(handler).handle(make_mocked_request("POST", "/pop"))
    assert isinstance(answer, web.Response)
    assert answer.status == 503
    assert "secret" not in (answer.text or "")
    assert f"POST /pop failed, request {answer.headers['X-Request-Id']}" in caplog.text


async def test_an_error_that_was_answered_holds_no_memory() -> None:
    raised: list[weakref.ref[QueueError]] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        error = TooLarge()
        raised.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.disable()
    try:
        await front(handler).handle(make_mocked_request("POST", "/push"))
        [error] = raised
        assert error() is None
    finally:
        gc.enable()
