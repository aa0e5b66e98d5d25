"""The express lane: answers plain requests itself, and hands the connection to aiohttp at the first one that is not.

aiohttp's protocol, request, response and task take more processor time than all the rest of a push. Most requests need
none of their features: POST to a known path, a Content-Length, a short body. This protocol may refuse any request, and
need not understand it: aiohttp gets its bytes, and all that follow on that connection.
"""

import asyncio
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from email.utils import formatdate
from time import time
from typing import Any, Final, cast

from delayqueue.errors import QueueError, TooMany
from delayqueue.net.limits import ClientLimits
from delayqueue.net.unanswered import INCOMPLETE, SMALL_BYTES
from delayqueue.tasks import cancel_all
from delayqueue.web.front import HasFront
from delayqueue.web.head import END, MAX_HEAD_BYTES, Head, may_become_plain, read_head, start_of
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
MAX_AHEAD_BYTES: Final = (
    MAX_HEAD_BYTES + MAX_BODY_BYTES
)  # that wait for their turn: one request or several
PATIENCE_S: Final = 2.0  # after which an incomplete request goes to aiohttp, with its time limits
IDLE_S: Final = 75.0  # after which a connection without a request is closed
LOOK_S: Final = 1.0  # between two checks of all connections; the precision of these times

OK_JSON: Final = (
    f"HTTP/1.1 200 OK\r\nServer: {SERVER}\r\n"
    "Content-Type: application/json; charset=utf-8\r\nContent-Length: "
).encode()
CLOSE: Final = b"\r\nConnection: close"


class Express:
    """The connections of the express lane. `most_bytes` limits a request's body.

    `other` makes the protocol that takes over a connection.
    """

    def __init__(
        self,
        server: HasFront,
        paths: Collection[str],
        limits: ClientLimits,
        other: Callable[[], asyncio.Protocol],
        most_bytes: int,
    ) -> None:
        self.server = server
        self.limits = limits
        self.paths = paths
        self.other = other
        self.most_bytes = min(most_bytes, MAX_BODY_BYTES)
        self.loop = asyncio.get_running_loop()
        self.connections: set[ExpressConnection] = set()
        self.stopping = False
        self._one_is_lost = asyncio.Event()
        self.now_s = self.loop.time()  # as of the last check
        self._date_s = 0
        self._date = b""  # the header, with the line end before it
        self._next_look = self.loop.call_later(LOOK_S, self._look)

    def connection(self) -> "ExpressConnection":
        """The protocol of a new connection."""
        return ExpressConnection(self)

    def written(self, response: HttpResponse, *, closes: bool) -> bytes:
        """The bytes of an answer."""
        body, now_s = response.body, int(time())
        if now_s != self._date_s:
            self._date_s = now_s
            self._date = b"\r\nDate: " + formatdate(now_s, usegmt=True).encode()
        is_usual = response.status == HTTP_OK and response.headers is JSON
        return b"%b%d%b%b%b%b" % (
            OK_JSON if is_usual else start_of(response),
            len(body),
            self._date,
            CLOSE if closes else b"",
            END,
            body,
        )

    def refusal(self, error: QueueError) -> bytes:
        """The last answer on a connection."""
        return self.written(self.server.front.refusal(error), closes=True)

    def lost(self, connection: "ExpressConnection") -> None:
        """The connection is closed."""
        self.connections.discard(connection)
        self._one_is_lost.set()

    def _look(self) -> None:
        """End what takes too long, again and again."""
        self._next_look = self.loop.call_later(LOOK_S, self._look)
        self.now_s = self.loop.time()
        for connection in list(self.connections):
            connection.look(self.now_s)

    async def close(self, within_s: float) -> None:
        """Close idle connections; let the others answer and send, and cut off those that have not done so."""
        self.stopping = True
        self._next_look.cancel()
        last = [each for each in list(self.connections) if not each.close_if_idle()]
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not self.connections.isdisjoint(last):
                    self._one_is_lost.clear()
                    await self._one_is_lost.wait()
        await cancel_all([each.pending for each in self.connections if each.pending is not None])
        for connection in list(self.connections):
            connection.abort()


class ExpressConnection(asyncio.Protocol):
    """One connection: answers one request after the other."""

    __slots__ = (
        "_answer_bytes",
        "_asked",
        "_buffer",
        "_closes",
        "_counts",
        "_drained",
        "_express",
        "_has_ended",
        "_is_full",
        "_is_stalled",
        "_peer",
        "_request_bytes",
        "_since_s",
        "_transport",
        "_whole_bytes",
        "pending",
    )

    _transport: asyncio.Transport

    def __init__(self, express: Express) -> None:
        self._express = express
        self._buffer = b""  # received and not answered
        self._answer_bytes = 0  # of the latest one
        self._asked: HttpRequest | None = None  # the present request
        self._closes = False  # after the answer
        self._counts = False  # it holds so much that Unanswered knows it
        # for the present answer: set once nothing of it is left to send
        self._drained: asyncio.Future[None] | None = None
        self._has_ended = False  # the client sends nothing more
        self._is_full = False  # so much has arrived that reading is paused
        self._request_bytes = 0  # of the present request, unless it waits
        self._is_stalled = False  # so much is unsent that nothing more is answered
        self._whole_bytes = 0  # of the next request: it is parsed again once they are there
        self._since_s = express.now_s  # since when it is in its present state
        self._peer: str | None = None
        # what the answer to the present request waits for
        self.pending: asyncio.Future[Any] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the peer's address while it is known: after a reset it is gone."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._peer = sys.intern(peer[0]) if peer else None
        self._express.limits.connected.came()
        self._express.limits.unread.watch(self._transport)
        self._express.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Take part of a request, or one, or several."""
        if self._buffer:
            self._buffer += data
        else:
            self._buffer, self._since_s = data, self._express.now_s
        if self.pending is None and not self._is_stalled:
            if len(self._buffer) >= self._whole_bytes:
                self._next()
        elif len(self._buffer) > MAX_AHEAD_BYTES and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        if len(self._buffer) > SMALL_BYTES:
            self._count()

    def eof_received(self) -> bool:
        """The client sends nothing more. True keeps the connection open until everything that came is answered.

        A client that waits for jobs and closes its side is gone: a process that dies leaves the same sign.
        """
        self._has_ended = True
        if self._transport.get_extra_info("sslcontext"):  # TLS connections cannot be half closed
            self._buffer = b""
            return False
        return self._is_stalled or (self.pending is not None and not self._waits)

    @property
    def _waits(self) -> bool:
        """Whether the present request is one that waits."""
        return self._asked is not None and self._asked.waits

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  # the protocol's signature
        """The client is gone: stop waiting for it."""
        self._express.lost(self)
        limits = self._express.limits
        limits.connected.left()
        limits.unanswered.gone(self)
        limits.unread.flows(self._transport)
        if self.pending is not None:
            self.pending.cancel()

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        self._is_stalled = True
        self._express.limits.unread.stalled(self._transport, self._answer_bytes)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_stalled = False
        self._express.limits.unread.flows(self._transport)
        self._since_s = self._express.now_s
        if self.pending is None:
            self._go_on()
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
            self._drained = None
            self._answered()

    def look(self, now_s: float) -> None:
        """End what takes too long."""
        lasted_s = now_s - self._since_s
        if self.pending is not None:
            if self.pending.done():  # its callbacks come before this one
                self._express.loop.call_soon(self._abort_unanswered, self.pending)
        elif self._is_stalled:
            return
        elif self._buffer:
            if lasted_s > PATIENCE_S:
                self._hand_over()
        elif lasted_s > IDLE_S:
            self._close()

    def close_if_idle(self) -> bool:
        """Close the connection, unless a request is being answered. Returns whether nothing was left to send."""
        if self.pending is None:
            self._close()
        return self.pending is None and not self._is_stalled

    def give_up(self) -> bool:
        """Refuse the request that has not arrived as a whole; behind one that is being answered, take no more."""
        if not self._buffer:
            return False
        if self.pending is None:
            self._transport.write(self._express.refusal(TooMany(INCOMPLETE)))
            self._close()
        else:
            self._buffer = b""
            self._closes = self._is_full = True
            self._transport.pause_reading()
        self._count()
        return True

    def _abort_unanswered(self, pending: asyncio.Future[Any]) -> None:
        """Close if what the answer waited for has come, and nothing was answered, which is our bug."""
        if self.pending is pending:
            self.abort()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _next(self) -> None:
        """Answer the next request, if all of it is here."""
        buffer = self._buffer
        if self._is_stalled or not buffer:
            return
        size = buffer.find(END) + len(END)
        if size < len(END):
            if len(buffer) > MAX_HEAD_BYTES or not may_become_plain(buffer):
                self._hand_over()
            return
        head = read_head(buffer[:size]) if size <= MAX_HEAD_BYTES else None
        express = self._express
        if head is None or head.length > express.most_bytes or head.path not in express.paths:
            self._hand_over()
            return
        end = size + head.length
        if len(buffer) < end:
            self._whole_bytes = end
            return
        self._whole_bytes = 0
        self._buffer = buffer[end:]
        if self._is_full and len(self._buffer) <= MAX_AHEAD_BYTES:
            self._is_full = False
            self._transport.resume_reading()
        self._begin(head, buffer[size:end])

    def _begin(self, head: Head, body: bytes) -> None:
        """Start to answer a request."""
        express = self._express
        self._closes = head.closes
        self._asked = request = HttpRequest("POST", head.path, head.headers, self._peer, body)
        express.server.front.begin(request, self)
        if request.waits and self._has_ended and self.pending is not None:
            self.pending.cancel()
            self._close()  # earlier answers are still sent
        elif len(body) > SMALL_BYTES and not request.waits:  # a poll's body is soon forgotten
            self._request_bytes = len(body)
            self._count()

    async def send(self, response: HttpResponse) -> None:
        """Write the answer to the present request, a large one in pieces, and wait as write() says."""
        rest = await self._begin_large(response) if len(response.body) > PIECE_BYTES else None
        if (sending := self.write(response, rest)) is not None:
            await sending

    async def _begin_large(self, response: HttpResponse) -> memoryview:
        """Write a large answer except its last piece, which is returned."""
        self._answer_bytes = len(response.body)
        closes = self._closes or self._express.stopping
        last = memoryview(b"")
        async for piece in pieces(self._express.written(response, closes=closes)):
            if last and not self._transport.is_closing():
                self._transport.write(last)
            last = piece
        return last

    def write(
        self, response: HttpResponse, rest: memoryview | None = None
    ) -> asyncio.Future[None] | None:
        """Write the answer to the present request, or its rest. Raises ConnectionResetError if the client is gone.

        Returns what ends once all of it is sent, if it must arrive and that takes time: a client that leaves meanwhile
        has not got it, and the cancellation of `pending` says so.
        """
        transport = self._transport
        if transport.is_closing():
            raise ConnectionResetError
        if self._express.stopping:
            self._closes = True
        self._answer_bytes = len(response.body)
        transport.write(rest or self._express.written(response, closes=self._closes))
        if transport.is_closing():  # it can find only in writing that the client is gone
            raise ConnectionResetError
        if self._is_stalled and response.must_arrive:
            response.body = b""  # the transport has it
            self._drained = self._express.loop.create_future()
            return self._drained
        self._answered()
        return None

    def _answered(self) -> None:
        """Go on with the next request."""
        self.pending = self._asked = None
        self._request_bytes = 0
        if self._closes or self._express.stopping:
            self._close()
        else:
            self._since_s = self._express.now_s
            if self._buffer or self._has_ended:
                self._go_on()
        if self._counts:
            self._count()

    def _go_on(self) -> None:
        """Answer the next request; close if none can come any more."""
        self._next()
        if self._has_ended and self.pending is None and not self._is_stalled:
            self._close()

    def _count(self) -> None:
        """Say how much of unanswered requests is here."""
        held_bytes = len(self._buffer) + self._request_bytes
        self._counts = held_bytes > SMALL_BYTES
        self._express.limits.unanswered.holds(self, held_bytes)

    def _close(self) -> None:
        """Send what is written, and answer nothing more."""
        self._buffer = b""
        self._transport.close()

    def _hand_over(self) -> None:
        """Let aiohttp answer everything that is unanswered or still to come."""
        other = self._express.other()
        unanswered, self._buffer = self._buffer, b""
        self._express.connections.discard(self)
        self._express.limits.unanswered.gone(self)
        if self._is_full:
            self._transport.resume_reading()
        other.connection_made(self._transport)
        self._transport.set_protocol(other)
        other.data_received(unanswered)
        if self._has_ended and not other.eof_received():
            self._transport.close()
        self._has_ended = False  # the rest is aiohttp's
