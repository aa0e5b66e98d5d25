"""Connections to receivers of calls: what one may send during a call is limited, and none lasts for long."""

import asyncio
import socket
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, cast
from weakref import WeakValueDictionary

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from delayqueue.delivery.addresses import AddressGuard, Target
from delayqueue.delivery.outcome import RESULT_BYTES
from delayqueue.delivery.side_loop import Turns

CALL_BYTES: Final = 2 * RESULT_BYTES  # a body, its head, and what HTTP and TLS put around them
TURN_BYTES: Final = 16 * 1024  # after which other connections have their turn
EARLY_ANSWERS: Final = 10  # 100 Continue, 103 Early Hints: each takes time to parse
AGE_S: Final = 60.0  # a host may have moved to another address


class MeteredSocket(socket.socket):
    """A socket that receives at most CALL_BYTES until begin() is called again; then reading raises OSError.

    It counts below TLS and HTTP, so it limits all that these do with what comes: messages, renewed keys, tickets. It
    works in asyncio's own loops, which read by these two methods. What comes takes time, so between two readings it
    leaves `turns` to other threads.
    """

    def __init__(self, turns: Turns, *args: Any) -> None:
        super().__init__(*args)
        self._turns = turns
        self._left_bytes = CALL_BYTES
        self._first_at: float | None = None

    @property
    def age_s(self) -> float:
        """Seconds since the first call on this connection began; 0 before that."""
        return 0.0 if self._first_at is None else monotonic() - self._first_at

    def begin(self) -> None:
        """Begin a call, for which CALL_BYTES may arrive again."""
        self._left_bytes = CALL_BYTES
        if self._first_at is None:
            self._first_at = monotonic()

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive at most TURN_BYTES. Raises OSError if more than CALL_BYTES arrived during a call."""
        came = super().recv(min(size, TURN_BYTES), flags)
        self._count(len(came))
        return came

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, /) -> int:
        """Receive at most TURN_BYTES. Raises OSError if more than CALL_BYTES arrived during a call."""
        size = min(size or len(buffer), TURN_BYTES)
        came = super().recv_into(buffer, size, flags)
        self._count(came)
        return came

    def _count(self, came: int) -> None:
        self._turns.leave()
        self._left_bytes -= came
        if self._left_bytes < 0:
            raise ConnectionAbortedError(f"sent more than {CALL_BYTES} bytes during a call")


class MeteredAnswers(ResponseHandler):
    """Reads answers; ends a connection on which more than EARLY_ANSWERS come before the final one.

    `calls` have been sent on it; `is_answered`: a byte of the last one's answer has come.
    """

    calls = 0
    is_answered = False
    _early = 0

    def begin(self) -> None:
        """Begin a call."""
        self.calls += 1
        self.is_answered = False

    def data_received(self, data: bytes) -> None:
        """Take bytes of an answer."""
        self.is_answered = True
        super().data_received(data)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take the head of an answer, and its body."""
        self._early = self._early + 1 if data[0].code < HTTPStatus.OK else 0
        if self._early <= EARLY_ANSWERS:
            super().feed_data(data, size)
        elif self.transport is not None:
            self.transport.abort()
            self.set_exception(
                ConnectionAbortedError(f"sent more than {EARLY_ANSWERS} early answers")
            )


class MeteredRequest(aiohttp.ClientRequest):
    """The request of a call; `answers` reads those of the connection that it was sent on."""

    answers: MeteredAnswers | None = None
    needs_fresh_connection = False

    @property
    def was_too_late(self) -> bool:
        """Whether no byte of an answer came on a connection that had served a call before."""
        answers = self.answers
        return answers is not None and answers.calls > 1 and not answers.is_answered


async def once_more(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request; again, on a fresh connection, if its receiver was just closing the one that it was sent on.

    As RFC 9112, section 9.3.1, has it. A receiver that got the first one all the same knows the repetition by its id.
    A middleware of aiohttp, which itself repeats a GET, PUT or DELETE on any connection, and a POST never: it does not
    repeat the errors that are raised here. Raises aiohttp.ClientConnectionError if the connection fails.
    """
    ours = cast("MeteredRequest", request)
    try:
        try:
            return await send(request)
        except aiohttp.ClientConnectionError:
            if not ours.was_too_late:
                raise
        ours.needs_fresh_connection = True
        return await send(request)
    except aiohttp.ServerDisconnectedError as error:
        # its own text can be a part of the answer's head
        raise aiohttp.ClientConnectionError("Server disconnected") from error
    except aiohttp.ClientConnectorError:  # aiohttp does not repeat it
        raise
    except aiohttp.ClientOSError as error:
        raise aiohttp.ClientConnectionError(str(error)) from error


class MeteredConnector(aiohttp.TCPConnector):
    """Metered connections, to addresses that `guard` permits. One older than AGE_S is not used again."""

    def __init__(self, guard: AddressGuard, resolver: AbstractResolver) -> None:
        super().__init__(
            limit=0,  # each subscriber has a limit of its own
            use_dns_cache=False,  # follow a host at once that moves to another address
            resolver=resolver,
            socket_factory=self._make_socket,
        )
        # private, for want of a public way to another protocol in aiohttp 3.14; test_strangers.py notices if it changes
        self._factory = partial(MeteredAnswers, asyncio.get_running_loop())  # type: ignore[assignment]  # a subclass
        self._guard = guard
        self._turns = Turns()
        self._sockets = WeakValueDictionary[int, MeteredSocket]()  # by file number

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """A connection for one call."""
        request = cast("MeteredRequest", req)
        while True:
            connection = await super().connect(req, traces, timeout)
            answers, transport = cast("MeteredAnswers", connection.protocol), connection.transport
            metered = None
            if transport is not None:
                metered = self._sockets.get(transport.get_extra_info("socket").fileno())
            is_old = metered is not None and metered.age_s > AGE_S
            if not is_old and not (request.needs_fresh_connection and answers.calls):
                break
            connection.close()
        request.answers = answers
        answers.begin()
        if transport is None:  # closed meanwhile; the call finds out
            return connection
        if metered is not None:
            metered.begin()
        connection.add_callback(partial(_abort_unsent, transport))
        return connection

    def _make_socket(self, target: Target) -> MeteredSocket:
        self._guard.check_target(target)
        made = MeteredSocket(self._turns, *target[:3])
        self._sockets[made.fileno()] = made
        return made


def _abort_unsent(transport: asyncio.Transport) -> None:
    """End a call whose request is not sent as a whole: close() would keep the rest until its receiver reads it."""
    if transport.get_write_buffer_size():
        transport.abort()
