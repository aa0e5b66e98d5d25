"""What the middleware does with errors that are nobody's answer."""

import logging

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from delayqueue.metrics import Metrics
from delayqueue.web.envelope import Speaker
from delayqueue.web.journal import Journal
from delayqueue.web.middleware import envelope_errors


async def test_a_client_that_is_gone_is_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        raise ConnectionResetError("Cannot write to closing transport")

    with caplog.at_level(logging.DEBUG), pytest.raises(ConnectionResetError):
        await envelope_errors(Speaker("en"), Journal(Metrics(), lines=False))(
            make_mocked_request("POST", "/pop"), handler
        )
    assert not caplog.records


async def test_a_defect_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        raise KeyError("a secret")

    answer = await envelope_errors(Speaker("en"), Journal(Metrics(), lines=False))(
        make_mocked_request("POST", "/pop"), handler
    )
    assert isinstance(answer, web.Response)
    assert answer.status == 503
    assert "secret" not in (answer.text or "")
    assert f"POST /pop failed, request {answer.headers['X-Request-Id']}" in caplog.text
