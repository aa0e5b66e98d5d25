"""The aiohttp server: it can answer every valid HTTP request. Only this file knows aiohttp's types.

A connection of ours (express.py) lends it requests one by one. aiohttp's protocol gets the bytes of one request, and
writes to a transport of ours; it never holds a second one. So every limit of connections is kept in one place.
"""

import asyncio
import logging
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from aiohttp import HttpVersion10, HttpVersion11, hdrs, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError

from delayqueue.errors import Malformed, QueueError, TooLarge
from delayqueue.web.front import HasFront
from delayqueue.web.head import END
from delayqueue.web.http import PIECE_BYTES, SERVER, HttpRequest, HttpResponse, pieces

if TYPE_CHECKING:
    from aiohttp.http import StreamWriter
    from aiohttp.streams import StreamReader

    from delayqueue.web.express import ExpressConnection

log = logging.getLogger(__name__)

CHUNKED: Final = "chunked"  # the only transfer coding
MOST_PIECES: Final = 100  # that are fed in one turn: empty lines in a body make many of them
HTTP_2: Final = b"PRI "  # begins its preface, of which more follows the empty line
CACHEABLE: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})  # unless their answers forbid it
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class AiohttpServer:
    """Lets the front of `server` answer everything; `most_bytes` limits a request's body.

    It is aiohttp's low-level server instead of its Application, whose router and middlewares take a tenth of the
    processor time of a push or a pop (measured): all paths are constant, so there is nothing to resolve.
    """

    def __init__(self, server: HasFront, most_bytes: int) -> None:
        self.server = server
        self.most_bytes = most_bytes
        self.loop = asyncio.get_running_loop()
        self.web = web.Server(
            self._handle,
            request_factory=self._request,
            handler_cancellation=True,  # a client that leaves while it waits takes no job
        )

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.version not in {HttpVersion10, HttpVersion11}:
            raise HttpProcessingError(message="Unsupported HTTP version")
        coding = request.headers.get(hdrs.TRANSFER_ENCODING, CHUNKED)
        if coding.strip().lower() != CHUNKED:
            raise HttpProcessingError(message="Unsupported transfer coding")
        return await _lent(request.protocol).answer(request)

    def _request(
        self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.BaseRequest:
        _lent(protocol).begins(message, payload)
        return web.BaseRequest(message, payload, protocol, writer, task, self.loop)


class ReportingParser:
    """aiohttp's parser, which also gives `failed` each error that it raises.

    aiohttp answers such an error behind the present request. Within a body this is never: its end does not come.
    """

    def __init__(self, parser: Any, failed: Callable[[HttpProcessingError], None]) -> None:
        self._parser = parser
        self._failed = failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: bytes) -> Any:
        """Parse more."""
        try:
            return self._parser.feed_data(data)
        except HttpProcessingError as error:
            self._failed(error)
            raise


class ParserProtocol(BaseProtocol):
    """The base of web.RequestHandler, which gives it the parser."""

    __slots__ = ()

    def __init__(self, loop: asyncio.AbstractEventLoop, parser: Any) -> None:
        super().__init__(loop, cast("Any", ReportingParser(parser, self.parser_failed)))

    def parser_failed(self, error: HttpProcessingError) -> None:
        """What came is not HTTP."""
        raise NotImplementedError


class AiohttpProtocol(web.RequestHandler, ParserProtocol):
    """aiohttp's end of a connection."""

    __slots__ = ("transport_of_ours",)

    def __init__(self, transport: "AiohttpTransport", server: AiohttpServer) -> None:
        self.transport_of_ours = transport
        super().__init__(
            server.web,
            loop=server.loop,
            access_log=cast("logging.Logger", None),
            auto_decompress=False,  # otherwise it would unpack a request before checks.py refuses it
            tcp_keepalive=False,  # the listener has set it
        )

    def parser_failed(self, error: HttpProcessingError) -> None:
        """End the body that is being read, if any."""
        self.transport_of_ours.lent.fail(error)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP in the same form as everything else."""
        if not isinstance(exc, HttpProcessingError):
            response = super().handle_error(request, status, exc, message)
            response.headers["Server"] = SERVER
            return response
        error = _malformed(exc)
        # not logged as an error: any client could fill the disk with it
        log.debug("not HTTP, from %s: %s", request.remote, error)
        response = _written(self.transport_of_ours.server.server.front.refusal(error))
        response.force_close()
        return response

    def log_exception(self, *args: Any, **named: Any) -> None:
        """Log an error, unless the rest of an answered request is not HTTP."""
        if not isinstance(named.get("exc_info"), HttpProcessingError):
            super().log_exception(*args, **named)


class AiohttpTransport(asyncio.Transport):
    """The transport of aiohttp's protocol, into which an express connection writes each request that it lends."""

    def __init__(self, server: AiohttpServer, lender: "ExpressConnection") -> None:
        super().__init__()
        self.server = server
        self.lender: ExpressConnection | None = lender
        self._wire = lender.transport
        self.is_paused = False  # aiohttp holds enough of a body
        self.lent = LentRequest(self)  # the latest one
        self.protocol = AiohttpProtocol(self, server)
        self.protocol.connection_made(self)

    def feed(self, data: bytes) -> bytes:
        """Give aiohttp what belongs to the lent request. Returns what is left."""
        at, lent = 0, self.lent
        if not lent.latest:
            data = data.lstrip(b"\r\n")  # before a request they mean nothing
        for _ in range(MOST_PIECES):
            if at == len(data) or self.is_paused or (end := lent.next(data, at)) == at:
                break
            piece, at = data[at:end], end
            lent.latest = (lent.latest + piece)[1 - len(END) :]
            self.protocol.data_received(piece)
            lent.take()
        else:
            self.server.loop.call_soon(self._go_on)
        return data[at:]

    def lost(self, error: Exception | None) -> None:
        """The connection is closed, or lends nothing more."""
        self.lender = None
        self.protocol.connection_lost(error)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection."""
        return self._wire.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether aiohttp may write no more."""
        return self.lender is None or self._wire.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send this."""
        self._wire.write(data)

    def writelines(self, list_of_data: Any) -> None:
        """Send these."""
        self._wire.writelines(list_of_data)

    def pause_reading(self) -> None:
        """Feed no more of the present body."""
        self.is_paused = True
        if self.lender is not None:
            self.lender.pause_reading()

    def resume_reading(self) -> None:
        """Feed more, in the next turn: this is called while aiohttp is fed."""
        if self.is_paused:
            self.is_paused = False
            self.server.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.lender is not None:
            self.lender.lend()

    def close(self) -> None:
        """Close the connection, once what is written is sent; not if it is idle, or answers by itself."""
        if self.lender is not None:
            self.lender.end_lent()


class LentRequest:
    """A request in aiohttp's hands."""

    def __init__(self, transport: AiohttpTransport) -> None:
        self._transport = transport
        self._loop = transport.server.loop
        self.latest = b""  # the last bytes that were fed: an empty line may begin in them
        self.has_head = False  # it was fed
        self._left_bytes: int | None = None  # of a body whose length is known
        self._payload: StreamReader | None = None  # the body, once aiohttp has read the head
        self._body = bytearray()  # what was taken of it
        self._reading: asyncio.Future[bytes] | None = None  # while the front waits for it
        self._expects = False  # the client waits to be told to send the body
        # what the front's answer depends on, and what is called then
        self._awaited: tuple[asyncio.Future[Any], Callable[[asyncio.Future[Any]], object]] | None
        self._awaited = None
        # the front's answer, and whether it is the last one of its connection
        self._response: tuple[HttpResponse, bool] | None = None
        self._sending: asyncio.Future[None] | None = None
        self.is_answered = False  # what is left of it is discarded
        self._is_last = False  # of its connection

    @property
    def has_arrived(self) -> bool:
        """Whether all of it is known to be here, or that the rest is not HTTP."""
        payload = self._payload
        return payload is not None and (payload.is_eof() or payload.exception() is not None)

    @property
    def is_incomplete(self) -> bool:
        """Whether more of it is known to be missing."""
        return not (self.has_arrived or (self.has_head and self._payload is None))

    def next(self, data: bytes, at: int) -> int:
        """Where the next piece of the data ends that belongs to it; `at` = none does, or not so far.

        Nobody but aiohttp says where chunks end. If a line behind them is empty, they may, and so it is asked there.
        """
        if not self.is_incomplete:
            return at
        if self._left_bytes is not None:
            size = min(self._left_bytes, len(data) - at)
            self._left_bytes -= size
            return at + size
        end = self._empty_line(data, at)
        if end and not self.has_head and not data.startswith(HTTP_2, at):
            self.has_head = True
        return end or len(data)

    def _empty_line(self, data: bytes, at: int) -> int:
        """The end of the next empty line; 0 = none so far."""
        if self.latest:
            early = (self.latest + data[at : at + len(END) - 1]).find(END)
            if early >= 0:
                return at + early - len(self.latest) + len(END)
        found = data.find(END, at)
        return found + len(END) if found >= 0 else 0

    def begins(self, message: Any, payload: "StreamReader") -> None:
        """Note that aiohttp has read the head, or found that it is not HTTP."""
        self.has_head, self._payload = True, payload
        has_odd_body = message.chunked and message.version == HttpVersion10
        if (has_odd_body or message.method == hdrs.METH_CONNECT) and self._transport.lender:
            # a proxy may not agree with us where its body ends, and what we read as the next request
            self._transport.lender.closes = True
        if not message.chunked:
            self._left_bytes = int(message.headers.get(hdrs.CONTENT_LENGTH, 0))
        if self._transport.lender is not None and not payload.is_eof():
            self._transport.lender.lend()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Let the front answer, and write that.

        It is written before aiohttp's handler returns, so that a client that is gone is noticed.
        """
        headers: dict[str, str] = {}
        repeated = set()
        for name, value in request.headers.items():
            if (key := name.lower()) in headers:
                repeated.add(key)
            else:
                headers[key] = value
        self._expects = (
            request.version == HttpVersion11 and headers.get("expect", "").lower() == "100-continue"
        )
        if (lender := self._transport.lender) is not None:
            has_body = request.body_exists or self._expects
            asked = HttpRequest(
                request.method, request.path, headers, lender.peer, repeated=frozenset(repeated)
            )
            front = self._transport.server.server.front
            front.begin(asked, None if has_body else b"", lender)
        try:
            response, is_last = await self._decided()
            written = _written(response)
            if request.method in CACHEABLE:
                written.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
            if is_last or (self._expects and not self.has_arrived):  # the body may come or not
                written.force_close()
            await self._write(request, written)
        except ConnectionError:
            # aiohttp would log an exception, and drops an answer that it cannot write
            return web.Response()
        finally:
            if self._sending is not None:
                self._sending.cancel()
        return written

    def awaits(
        self, call: asyncio.Future[Any], then: Callable[[asyncio.Future[Any]], object]
    ) -> None:
        """The answer depends on this call; `then` is called at its end, in the present context, as a span needs it."""
        context = copy_context()
        self._awaited = call, lambda ended: context.run(then, ended)

    async def _decided(self) -> tuple[HttpResponse, bool]:
        """The front's answer. What it depends on is awaited here: callbacks would take two turns of the loop more."""
        while self._response is None and self._awaited is not None:
            (call, then), self._awaited = self._awaited, None
            try:
                if not call.done():
                    await call
            except asyncio.CancelledError:  # the client is gone
                call.add_done_callback(then)
                raise
            except Exception as error:  # `then` answers it
                # a future of its own: the task's result() would raise the error without its traceback
                call = self._loop.create_future()
                call.set_exception(error)
            then(call)
            del call, then  # it may hold an error, whose traceback holds this frame
        if self._response is None:
            raise ConnectionResetError
        return self._response

    async def _write(self, request: web.BaseRequest, written: web.Response) -> None:
        """Write the answer. Raises ConnectionError if the client is gone."""
        await written.prepare(request)
        body = cast("bytes", written.body)
        if len(body) > PIECE_BYTES and request.method != hdrs.METH_HEAD:
            writer = cast("StreamWriter", request.writer)
            async for piece in pieces(body):
                await writer.write(piece, drain=False)
            await writer.drain()  # write_eof() waits only for what it writes itself
            written.body = None
        await written.write_eof()
        written.body = None  # aiohttp keeps the last answer of a connection until the next request
        lender = self._transport.lender
        if lender is None or self._sending is None or self._transport.is_closing():
            raise ConnectionResetError
        self._sending.set_result(None)
        self.is_answered = True
        lender.lent_answered()
        self._is_last = not written.keep_alive
        request.content.on_eof(self._over)

    def _over(self) -> None:
        """End the request: it is answered, and has arrived as a whole."""
        if self._transport.lender is not None:
            give_back = partial(self._transport.lender.take_back, self, is_last=self._is_last)
            self._loop.call_soon(give_back)  # aiohttp's handler is about to end

    def read(self) -> asyncio.Future[bytes]:
        """Begin to wait for the body. The future raises TooLarge, or the error that refuse() gets."""
        self._reading = reading = self._loop.create_future()
        if (self._left_bytes or 0) > self._transport.server.most_bytes:
            self.refuse(TooLarge())
            return reading
        if self._expects:  # curl sends a large body only after it, or after a second
            self._transport.write(CONTINUE)
            self._expects = False
        self.take()
        return reading

    def take(self) -> None:
        """Take what aiohttp has of the body, if it is awaited."""
        if (reading := self._reading) is None or self._payload is None:
            return
        most_bytes = self._transport.server.most_bytes
        try:
            while len(self._body) <= most_bytes and (more := self._payload.read_nowait()):
                self._body += more  # aiohttp may have held some more back
        except HttpProcessingError as error:
            self.refuse(_malformed(error))
            return
        if len(self._body) > most_bytes:
            self.refuse(TooLarge())
        elif self._payload.is_eof():
            self._reading = None
            if not reading.done():
                reading.set_result(bytes(self._body))
            self._body.clear()

    def fail(self, error: HttpProcessingError) -> None:
        """End the body here, as it is not HTTP: the connection closes, behind the answer if there is none yet."""
        if self._payload is not None and not self.has_arrived:
            self._payload.set_exception(error)
            if self.is_answered:
                self._transport.close()
            elif self._transport.lender is not None:
                self._transport.lender.closes = True

    def refuse(self, error: QueueError) -> bool:
        """Wait no longer for the body. Returns whether it was awaited."""
        reading, self._reading = self._reading, None
        if reading is None or reading.done():
            return False
        self._body.clear()
        reading.set_exception(error)
        return True

    def respond(self, response: HttpResponse, *, is_last: bool) -> asyncio.Future[None]:
        """Answer the request. Returns what ends once all of the answer is sent."""
        self._response = response, is_last
        self._sending = sending = self._loop.create_future()
        return sending


def _written(response: HttpResponse) -> web.Response:
    headers = {**response.headers, hdrs.SERVER: SERVER}
    return web.Response(body=response.body, status=response.status, headers=headers)


def _malformed(error: HttpProcessingError) -> Malformed:
    return Malformed(error.message.partition(":")[0])  # and not the bytes that came


def _lent(protocol: Any) -> LentRequest:
    return cast("AiohttpProtocol", protocol).transport_of_ours.lent
