"""The aiohttp server: it can answer every valid HTTP request. Only this file knows aiohttp's types."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from aiohttp import HttpVersion10, HttpVersion11, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from delayqueue.errors import Malformed
from delayqueue.net.limits import ClientLimits
from delayqueue.web.connections import AiohttpConnection, Connections
from delayqueue.web.front import HasFront
from delayqueue.web.http import (
    PIECE_BYTES,
    SERVER,
    WAITING_PATHS,
    HttpRequest,
    HttpResponse,
    pieces,
)

if TYPE_CHECKING:
    from aiohttp.http import StreamWriter

log = logging.getLogger(__name__)

KEEPALIVE_S: Final = 75.0  # for an idle connection; aiohttp's own default is over an hour
CHUNKED: Final = "chunked"  # the only transfer coding
READ_S: Final = 30.0  # for a request's body to arrive; aiohttp itself has no limit


def build_server(server: HasFront, most_bytes: int, limits: ClientLimits) -> Connections:
    """A server that lets the front of `server` answer everything; `most_bytes` limits a request's body.

    It is aiohttp's low-level server instead of its Application, whose router and middlewares take a tenth of the
    processor time of a push or a pop (measured): all paths are constant, so there is nothing to resolve.
    """
    logging.getLogger("aiohttp.server").addFilter(NoHttp())
    loop = asyncio.get_running_loop()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        _check_supported(request)
        answering = Answering(request)
        try:
            await server.front.handle(Streamed(request), answering)
        finally:
            _connection(request).forget(request)
        return answering.sent

    def request(
        message: Any, payload: Any, protocol: AiohttpConnection, writer: Any, task: Any
    ) -> web.BaseRequest:
        began = web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=most_bytes
        )
        protocol.began(began, offers_other=bool(message.upgrade))
        return began

    return Connections(
        handle,
        limits=limits,
        refuse=lambda reason: _written(server.front.refusal(Malformed(reason))),
        request_factory=request,
        access_log=None,
        auto_decompress=False,  # otherwise it would unpack a request before checks.py refuses it
        handler_cancellation=True,  # a client that leaves while it waits takes no job
        keepalive_timeout=KEEPALIVE_S,
    )


def _check_supported(request: web.BaseRequest) -> None:
    """Raises HttpProcessingError if we would misread the request."""
    if request.version not in {HttpVersion10, HttpVersion11}:
        raise HttpProcessingError(message="Unsupported HTTP version")
    coding = request.headers.get(hdrs.TRANSFER_ENCODING, CHUNKED)
    if coding.strip().lower() != CHUNKED:
        raise HttpProcessingError(message="Unsupported transfer coding")


class Streamed(HttpRequest):
    """A request of aiohttp, whose body is read on demand."""

    __slots__ = ("_request",)

    def __init__(self, request: web.BaseRequest) -> None:
        headers: dict[str, str] = {}
        repeated = set()
        for name, value in request.headers.items():
            if (key := name.lower()) in headers:
                repeated.add(key)
            else:
                headers[key] = value
        super().__init__(
            request.method,
            request.path,
            headers,
            request.remote,
            repeated=frozenset(repeated),
        )
        self._request = request
        _connection(request).asked = self

    async def read(self) -> bytes:
        """The whole body. Raises TooLarge, SlowRequest or TooMany."""
        request = self._request
        if hdrs.EXPECT in request.headers:
            await _encourage(request)
        body = await _connection(request).read(request, READ_S)
        if self.path in WAITING_PATHS:  # it is parsed at once, and not needed while the poll waits
            _connection(request).forget(request)
        return body


class Answering:
    """Writes the answer to a request of aiohttp.

    It is written before aiohttp's handler returns, so that a client that is gone is noticed.
    """

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        # If the client is gone, aiohttp gets this: it would log an exception, and drops an answer that it cannot write.
        self.sent: web.StreamResponse = web.Response()

    async def send(self, response: HttpResponse) -> None:
        """Write the answer. Raises ConnectionError if the client is gone."""
        request, connection, body = self._request, _connection(self._request), response.body
        written = _written(response)
        if connection.must_end:
            written.force_close()
        connection.answer_bytes = len(body)
        await written.prepare(request)
        if len(body) > PIECE_BYTES and request.method != hdrs.METH_HEAD:
            writer = cast("StreamWriter", request.writer)
            async for piece in pieces(body):
                await writer.write(piece, drain=False)
            await writer.drain()  # write_eof() waits only for what it writes itself
            written.body = None
        await written.write_eof()
        written.body = None  # aiohttp keeps the last answer of a connection until the next request
        self.sent = written


def _written(response: HttpResponse) -> web.Response:
    headers = {**response.headers, hdrs.SERVER: SERVER}
    return web.Response(body=response.body, status=response.status, headers=headers)


def _connection(request: web.BaseRequest) -> AiohttpConnection:
    return cast("AiohttpConnection", request.protocol)


async def _encourage(request: web.BaseRequest) -> None:
    """Send 100 Continue: curl sends a large body only after it, or after a second."""
    if request.version == HttpVersion11 and request.headers[hdrs.EXPECT].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # nothing of the answer has been sent so far


class NoHttp(logging.Filter):
    """Keeps requests that are not HTTP out of aiohttp's log: as errors with tracebacks, they could fill the disk."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record stays; otherwise it becomes a line at level debug."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        log.debug("%s: %s", record.getMessage(), error)
        return False
