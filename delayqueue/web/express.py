"""The express lane: answers plain requests itself, and lends aiohttp each one that is not (app.py).

aiohttp's protocol, request, response and task take more processor time than all the rest of a push. Most requests need
none of their features: POST to a known path, a Content-Length, a short body. This protocol may lend any request, and
need not understand it: aiohttp gets its bytes, and says where it ends.
"""

import asyncio
import sys
from collections.abc import Callable
from email.utils import formatdate
from time import time
from typing import Any, Final, cast

from delayqueue.errors import QueueError, SlowRequest, TooMany
from delayqueue.net.later import Later
from delayqueue.net.limits import ClientLimits
from delayqueue.net.unanswered import INCOMPLETE, SMALL_BYTES
from delayqueue.tasks import cancel_all
from delayqueue.web.app import AiohttpServer, AiohttpTransport, LentRequest
from delayqueue.web.front import HasFront
from delayqueue.web.head import (
    END,
    END_BYTES,
    MAX_HEAD_BYTES,
    Head,
    may_become_plain,
    read_head,
    start_of,
)
from delayqueue.web.http import (
    HTTP_OK,
    JSON,
    PIECE_BYTES,
    SERVER,
    HttpRequest,
    HttpResponse,
    pieces,
)

MAX_BODY_BYTES: Final = 64 * 1024  # a request with a longer body is not plain
# that wait for their turn: one request or several
MAX_AHEAD_BYTES: Final = MAX_HEAD_BYTES + MAX_BODY_BYTES
# after which an incomplete request goes to aiohttp, which may refuse what there is of it
PATIENCE_S: Final = 2.0
HEAD_S: Final = 75.0  # for a connection's first request to begin, and for each head to arrive
# Between two requests: longer than clients and proxies keep a connection (Go and Traefik 90 s, Google's balancer 600 s,
# Envoy an hour), else they send a push just as it is closed, and may not send it again.
IDLE_S: Final = 3630.0
READ_S: Final = 30.0  # for a request's body to arrive
LOOK_S: Final = 1.0  # between two checks of all connections; the precision of these times

OK_JSON: Final = (
    f"HTTP/1.1 200 OK\r\nServer: {SERVER}\r\n"
    "Content-Type: application/json; charset=utf-8\r\nContent-Length: "
).encode()
CLOSE: Final = b"\r\nConnection: close"


class Express:
    """The connections of the express lane. `most_bytes` limits a request's body."""

    def __init__(self, server: HasFront, limits: ClientLimits, most_bytes: int) -> None:
        self.server = server
        self.limits = limits
        self.paths = server.front.paths("POST")
        self.aiohttp = AiohttpServer(server, most_bytes)
        self.most_bytes = min(most_bytes, MAX_BODY_BYTES)
        self.loop = asyncio.get_running_loop()
        self.stopping = False
        self.now_s = self.loop.time()  # as of the last check
        self._date_s = 0
        self._date = b""  # the header, with the line end before it
        self._repeated: dict[HttpResponse, bytes] = {}  # written in this second
        self._next_look = self.loop.call_later(LOOK_S, self._look)

    @property
    def connections(self) -> "list[ExpressConnection]":
        """The connections of HTTP that are served now."""
        served = self.limits.connections.served
        return [each for each in served if isinstance(each, ExpressConnection)]

    def connection(self) -> "ExpressConnection":
        """The protocol of a new connection."""
        return ExpressConnection(self)

    def once(self) -> "ExpressConnection":
        """The protocol of a connection that is closed after its first answer."""
        connection = self.connection()
        connection.closes = True
        return connection

    def written(self, response: HttpResponse, *, closes: bool) -> bytes:
        """The bytes of an answer."""
        now_s = int(time())
        if now_s != self._date_s:
            self._date_s = now_s
            self._date = b"\r\nDate: " + formatdate(now_s, usegmt=True).encode()
            self._repeated.clear()
        repeats = response.repeats and not closes
        written = self._repeated.get(response) if repeats else None
        if written is None:
            is_usual = response.status == HTTP_OK and response.headers is JSON
            written = b"%b%d%b%b%b%b" % (
                OK_JSON if is_usual else start_of(response),
                len(response.body),
                self._date,
                CLOSE if closes else b"",
                END,
                response.body,
            )
            if repeats:
                self._repeated[response] = written
        return written

    def refusal(self, error: QueueError) -> bytes:
        """The last answer on a connection."""
        return self.written(self.server.front.refusal(error), closes=True)

    def _look(self) -> None:
        """End what takes too long, again and again."""
        self._next_look = self.loop.call_later(LOOK_S, self._look)
        self.now_s = self.loop.time()
        for connection in self.connections:
            connection.look(self.now_s)

    def drain(self) -> None:
        """From now on each connection is closed after its next answer."""
        self.stopping = True
        self._next_look.cancel()

    async def cancel(self) -> None:
        """Give up the requests that are not answered."""
        await cancel_all([each.pending for each in self.connections if each.pending is not None])


class ExpressConnection(asyncio.Protocol):
    """A connection, which answers one request after the other."""

    __slots__ = (
        "_aiohttp",
        "_answer_bytes",
        "_buffer",
        "_drained",
        "_express",
        "_has_ended",
        "_is_counted",
        "_is_full",
        "_is_stalled",
        "_lent",
        "_request_bytes",
        "_since_s",
        "_waits",
        "_whole_bytes",
        "closes",
        "peer",
        "pending",
        "transport",
    )

    transport: asyncio.Transport

    def __init__(self, express: Express) -> None:
        self._express = express
        self._buffer = b""  # received and not answered
        self._answer_bytes = 0  # of the latest one, 0 = there is none
        self.closes = False  # after the answer
        self._is_counted = False  # it holds so much that Unanswered counts it
        # set once all of the present answer is sent
        self._drained: asyncio.Future[None] | None = None
        self._has_ended = False  # the client sends nothing more
        self._is_full = False  # so much has arrived that reading is paused
        self._aiohttp: AiohttpTransport | None = None  # since a request was not plain
        self._lent: LentRequest | None = None  # the present request, if aiohttp has it
        self._request_bytes = 0  # of the present request, unless it waits
        self._is_stalled = False  # so much is unsent that nothing more is answered
        self._whole_bytes = 0  # of the next request: it is parsed again once they are there
        self._since_s = express.now_s  # since when it is in its present state
        self.peer: str | None = None
        # what the answer to the present request depends on
        self.pending: asyncio.Future[Any] | None = None
        self._waits = False  # for something to happen (Peer.awaits)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the peer's address while it is known: after a reset it is gone."""
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.peer = sys.intern(peer[0]) if peer else None
        limits = self._express.limits
        limits.connections.opened(self)
        limits.connections.idle[self] = self._express.loop.time()
        limits.unread.watch(self.transport)

    def data_received(self, data: bytes) -> None:
        """Take part of a request, or one, or several."""
        if self._buffer:
            self._buffer += data
        else:
            self._buffer = data
            if self._lent is None:
                self._since_s = self._express.now_s
                self._express.limits.connections.idle.pop(self, None)
        if self._lent is not None:
            self.lend()
        elif (
            self.pending is None and not self._is_stalled and len(self._buffer) >= self._whole_bytes
        ):
            self._next()
        if len(self._buffer) > SMALL_BYTES:
            waits = self._lent or self._is_stalled or self.pending is not None
            if waits and len(self._buffer) > MAX_AHEAD_BYTES and not self._is_full:
                self.pause_reading()
            self._count()

    def eof_received(self) -> bool:
        """The client sends nothing more. True keeps the connection open until everything that came is answered.

        A client that waits for jobs and closes its side is gone: a process that dies leaves the same sign.
        """
        self._has_ended = True
        if self.transport.get_extra_info("sslcontext"):  # TLS connections cannot be half closed
            self._buffer = b""
            return False
        return self._is_stalled or (self._is_busy and not self._waits)

    @property
    def _is_busy(self) -> bool:
        """Whether a request is being answered, and not still arriving."""
        if self._lent is not None:
            return not self._lent.is_incomplete
        return self.pending is not None

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone: stop waiting for it."""
        limits = self._express.limits
        limits.connections.closed(self)
        limits.connections.idle.pop(self, None)
        limits.unanswered.forget(self)
        limits.unread.forget(self.transport)
        self._lent = None
        if self._aiohttp is not None:
            self._aiohttp.lost(error)
        if self.pending is not None:
            self.pending.cancel()
            self.pending = None  # else this, its traceback and the answer in that keep each other

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        self._is_stalled = True
        self._express.limits.unread.stalled(self.transport, self._answer_bytes)
        if self._aiohttp is not None:
            self._aiohttp.protocol.pause_writing()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_stalled = False
        self._express.limits.unread.forget(self.transport)
        self._since_s = self._express.now_s
        if self._aiohttp is not None:
            self._aiohttp.protocol.resume_writing()
        if self._drained is not None:
            if not self._drained.done():
                self._drained.set_result(None)
            self._drained = None
        elif self.pending is None and self._lent is None:
            self._go_on()

    def look(self, now_s: float) -> None:
        """End what takes too long."""
        lasted_s = now_s - self._since_s
        if self.pending is not None:
            if self.pending.done():  # its callbacks come before this one
                self._express.loop.call_soon(self._abort_unanswered, self.pending)
            elif self._lent is not None and lasted_s > READ_S:
                self._lent.refuse(SlowRequest())
        elif self._is_stalled:
            return
        elif self._buffer and self._lent is None:
            if lasted_s > PATIENCE_S:
                self._lend_next()
        elif lasted_s > (IDLE_S if self._lent is None and self._answer_bytes else HEAD_S):
            self._close()

    def close_if_idle(self) -> bool:
        """Close the connection, unless it has a request's head or more. Returns whether nothing was left to send."""
        is_busy = self._is_busy or self.pending is not None or self._whole_bytes > 0
        if not is_busy:
            self._close()
        return not is_busy and not self._is_stalled

    def give_way(self) -> bool:
        """Close the idle connection, unless it is closing, or its client has yet to read an answer. Returns whether."""
        if self._is_stalled or self.transport.is_closing():
            return False
        self.abort()  # a client with TLS could take its time to say goodbye
        return True

    def give_up(self) -> bool:
        """Refuse the request that has not arrived as a whole; behind one that is being answered, take no more."""
        lent = self._lent
        if lent is not None and not lent.has_arrived:
            if lent.refuse(TooMany(INCOMPLETE)):
                self._request_bytes = 0
            elif lent.has_head:  # as soon as its body is read, all are looked at again
                return False
            else:
                self._refuse()
        elif not self._buffer:
            return False
        elif self._is_busy:
            self._buffer = b""
            self.closes = True
            self.pause_reading()
        else:
            self._refuse()
        self._count()
        return True

    def _refuse(self) -> None:
        self.transport.write(self._express.refusal(TooMany(INCOMPLETE)))
        self._request_bytes = 0
        self._close()

    def _abort_unanswered(self, pending: asyncio.Future[Any]) -> None:
        """Close if what the answer waited for has come, and nothing was answered, which is our bug."""
        if self.pending is pending:
            self.abort()

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()

    def _next(self) -> None:
        """Answer the next request, if all of it is here."""
        buffer, express = self._buffer, self._express
        size = buffer.find(END) + END_BYTES
        if size < END_BYTES and len(buffer) <= MAX_HEAD_BYTES and may_become_plain(buffer):
            return
        head = read_head(buffer[:size]) if END_BYTES <= size <= MAX_HEAD_BYTES else None
        if head is None or head.length > express.most_bytes or head.path not in express.paths:
            self._lend_next()
            return
        end = size + head.length
        if len(buffer) < end:
            self._whole_bytes = end
            return
        self._whole_bytes = 0
        self._buffer = buffer[end:]
        self._begin_plain(head, buffer[size:end])

    def _begin_plain(self, head: Head, body: bytes) -> None:
        """Start to answer a request, without aiohttp."""
        if self._aiohttp is not None:
            self._aiohttp.lost(None)
            self._aiohttp = None
        if self._is_full:
            self._take_more()
        path, headers, length, closes = head
        if closes:
            self.closes = True
        if length > SMALL_BYTES:
            self._request_bytes = length
        request = HttpRequest("POST", path, headers, self.peer)
        self._express.server.front.begin(request, body, self)
        if self._request_bytes:
            self._count()

    def pause_reading(self) -> None:
        """Take nothing more from the client, until _take_more() does."""
        self._is_full = True
        self.transport.pause_reading()

    def _take_more(self) -> None:
        """Read on if what has arrived is not too much any more, for us and for aiohttp."""
        is_held = self._aiohttp is not None and self._aiohttp.is_paused
        if self._is_full and len(self._buffer) <= MAX_AHEAD_BYTES and not is_held:
            self._is_full = False
            self.transport.resume_reading()

    def _lend_next(self) -> None:
        """Let aiohttp answer the next request."""
        self._whole_bytes = 0
        if self._aiohttp is None:
            self._aiohttp = AiohttpTransport(self._express.aiohttp, self)
        self._lent = self._aiohttp.lent = LentRequest(self._aiohttp)
        self.lend()

    def lend(self) -> None:
        """Give aiohttp more of the present request, as far as it has arrived."""
        aiohttp, lent, before_bytes = self._aiohttp, self._lent, len(self._buffer)
        if aiohttp is None or lent is None:
            return
        self._buffer = aiohttp.feed(self._buffer)
        if self._is_full:
            self._take_more()
        if not lent.is_answered and not self._waits:
            self._request_bytes += before_bytes - len(self._buffer)
            if self._is_counted or self._request_bytes > SMALL_BYTES:
                self._count()
        if self._has_ended and lent.is_incomplete:
            self._close()

    def lent_answered(self) -> None:
        """The request that aiohttp has is answered; what has not arrived of it will be discarded."""
        self.pending = None
        self._request_bytes = 0
        if self._is_counted:
            self._count()

    def take_back(self, lent: LentRequest, *, is_last: bool) -> None:
        """The request that aiohttp had is answered, and has arrived as a whole."""
        if self._lent is lent:
            self._lent = None
            self.closes = self.closes or is_last
            self._end_request()

    def end_lent(self) -> None:
        """Aiohttp closes what it takes for the connection: for good, if it has a request."""
        if self._lent is not None:
            self._close()
        elif self._aiohttp is not None:
            self._aiohttp.lost(None)
            self._aiohttp = None

    def read(self) -> asyncio.Future[bytes]:
        """The body of the request that aiohttp has. Raises TooLarge, SlowRequest or TooMany."""
        self._since_s = self._express.now_s
        reading = cast("LentRequest", self._lent).read()
        self._express.limits.unanswered.look()
        return reading

    def awaits(self, later: Later[Any], then: Callable[[asyncio.Future[Any]], object]) -> None:
        """The answer depends on this. If the client leaves, its call is cancelled."""
        self.pending = call = later.call
        if self._lent is None:
            call.add_done_callback(then)
        else:
            self._lent.awaits(call, then)
        if later.leave is None:
            self._waits = False
        else:  # its body is no longer needed
            self._waits = True
            self._request_bytes = 0
            if self._is_counted:
                self._count()
            if self._has_ended:
                self._close()  # earlier answers are still sent
        if self.transport.is_closing():
            call.cancel()

    def write(
        self, response: HttpResponse, *, must_arrive: bool = False
    ) -> asyncio.Future[None] | None:
        """Write the answer to the present request. Raises ConnectionResetError if the client is gone.

        Returns what ends once all of it is sent, if that takes time: a client that leaves meanwhile has not got it, and
        its cancellation says so.
        """
        transport, express = self.transport, self._express
        if transport.is_closing():
            raise ConnectionResetError
        if express.stopping:
            self.closes = True
        self._waits = False
        self._answer_bytes = len(response.body)
        if self._lent is not None:
            self.pending = sending = self._lent.respond(response, is_last=self.closes)
            return sending
        written = express.written(response, closes=self.closes)
        if self._answer_bytes > PIECE_BYTES:
            sending = express.loop.create_task(self._write_large(written), name="answer")
        else:
            transport.write(written)
            if transport.is_closing():  # it can find only in writing that the client is gone
                raise ConnectionResetError
            if not (self._is_stalled and must_arrive):
                self._end_request()
                return None
            sending = self._drained = express.loop.create_future()
        self.pending = sending
        sending.add_done_callback(self._sent)
        return sending

    async def _write_large(self, written: bytes) -> None:
        """Write a large answer in pieces, and wait until all of it is sent."""
        async for piece in pieces(written):
            if self.transport.is_closing():
                raise asyncio.CancelledError
            self.transport.write(piece)
        if self._is_stalled:
            self._drained = self._express.loop.create_future()
            await self._drained

    def _sent(self, sending: asyncio.Future[None]) -> None:
        """All of an answer is sent, or the client is gone."""
        if self.pending is sending and not sending.cancelled():
            self._end_request()

    def _end_request(self) -> None:
        """End the present request, which is answered, and go on with the next one."""
        self.pending = None
        self._request_bytes = 0
        if self.closes or self._express.stopping:
            self._close()
        else:
            self._since_s = self._express.now_s
            if self._buffer or self._has_ended:
                self._go_on()
            else:
                self._express.limits.connections.idle[self] = self._express.loop.time()
        if self._is_counted:
            self._count()

    def _go_on(self) -> None:
        """Answer the next request; close if none can come any more."""
        if self._buffer and not self._is_stalled:
            self._next()
        if self._has_ended and not self._is_busy and not self._is_stalled:
            self._close()

    def _count(self) -> None:
        """Report how many bytes of unanswered requests this connection holds."""
        held_bytes = len(self._buffer) + self._request_bytes
        self._is_counted = held_bytes > SMALL_BYTES
        self._express.limits.unanswered.note_held(self, held_bytes)

    def _close(self) -> None:
        """Send what is written, and answer nothing more."""
        self._buffer = b""
        self.transport.close()
