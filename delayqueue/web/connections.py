"""aiohttp's connections, and what it leaves open: clients that do not read, end early, or do not speak HTTP."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from delayqueue.errors import SlowRequest, TooLarge, TooMany
from delayqueue.net.limits import ClientLimits
from delayqueue.net.unanswered import INCOMPLETE, SMALL_BYTES
from delayqueue.web.http import SERVER, WAITING_PATHS, HttpRequest, without_slashes

log = logging.getLogger(__name__)

Refuse = Callable[[str], web.Response]  # the answer to something that is not HTTP, with the reason


class Connections(web.Server):
    """Makes the protocol of each connection."""

    def __init__(
        self, handler: Any, *, limits: ClientLimits, refuse: Refuse, **settings: Any
    ) -> None:
        super().__init__(handler, **settings)
        self._limits = limits
        self._refuse = refuse

    def __call__(self) -> "AiohttpConnection":
        """The protocol of a new connection."""
        return AiohttpConnection(
            self, limits=self._limits, refuse=self._refuse, loop=self._loop, **self._kwargs
        )

    def once(self) -> "AiohttpConnection":
        """The protocol of a connection that is closed after its first answer."""
        connection = self()
        connection.answers_once = True
        return connection


class AiohttpConnection(web.RequestHandler):
    """One connection."""

    __slots__ = (
        "_counted",
        "_has_ended",
        "_held_bytes",
        "_is_discarding",
        "_latest",
        "_limits",
        "_offers_other",
        "_reading",
        "_refuse",
        "_wire",
        "answer_bytes",
        "answers_once",
        "asked",
    )

    _wire: asyncio.Transport

    def __init__(
        self, server: web.Server, *, limits: ClientLimits, refuse: Refuse, **settings: Any
    ) -> None:
        super().__init__(server, **settings)
        self._limits = limits
        self._refuse = refuse
        self._latest: web.BaseRequest | None = None
        self.asked: HttpRequest | None = None  # the latest one that reached the front
        self.answer_bytes = 0  # of the latest answer
        self.answers_once = False  # it is closed after its first answer
        self._counted: web.BaseRequest | None = None  # the latest one, while it is in memory
        self._offers_other = False  # the latest one offers another protocol
        self._held_bytes = 0  # received and not answered
        self._is_discarding = False  # what is left of a request that is answered already
        self._reading: asyncio.Timeout | None = None  # the limit of time for the present body
        self._has_ended = False  # the client sends nothing more

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the peer's address while it is known: after a reset it is gone."""
        self._wire = cast("asyncio.Transport", transport)
        super().connection_made(transport)
        self._limits.unread.watch(self._wire)
        _ = self.peername  # aiohttp keeps what it finds first

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client is gone: nobody reads any more."""
        self._limits.connected.left()
        self._limits.unanswered.gone(self)
        self._limits.unread.flows(self._wire)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take part of a request, or one, or several."""
        super().data_received(data)
        if not self._is_discarding:
            self._held_bytes += len(data)
            if self._held_bytes > SMALL_BYTES:
                self._limits.unanswered.holds(self, self._held_bytes)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        super().pause_writing()
        self._limits.unread.stalled(self._wire, self.answer_bytes)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._limits.unread.flows(self._wire)
        super().resume_writing()

    def began(self, request: web.BaseRequest, *, offers_other: bool) -> None:
        """This request is being answered; `offers_other`: to speak another protocol (Upgrade)."""
        self._latest = self._counted = request
        self._offers_other = offers_other
        self._is_discarding = False
        if self._has_ended and not self._messages:
            self.close()  # after the answer

    @property
    def must_end(self) -> bool:
        """Whether the connection must be closed after this answer.

        It is if the latest request offers a protocol that the parser does not know: the parser has dropped what came
        behind it in the same packet.
        """
        return self.answers_once or (self._offers_other and not self._upgraded)

    def forget(self, request: web.BaseRequest) -> None:
        """This request is answered, or its body is no longer needed."""
        if self._counted is not request or self.transport is None:  # lost: nothing is held
            return
        self._counted = None
        self._is_discarding = not request.content.is_eof()
        self._held_bytes -= _size_bytes(request) if self._messages else self._held_bytes
        self._limits.unanswered.holds(self, self._held_bytes)

    async def read(self, request: web.BaseRequest, within_s: float) -> bytes:
        """A request's body.

        Raises TooLarge, SlowRequest if it takes longer, TooMany if it is given up. aiohttp's own reader would keep it
        until the next request.
        """
        body = bytearray()
        try:
            async with asyncio.timeout(within_s) as self._reading:
                self._limits.unanswered.look()  # so far it could not be refused
                while not request.content.at_eof():
                    body += await request.content.readany()
                    if len(body) > request.client_max_size:
                        raise TooLarge
        except TimeoutError:
            if self._counted is None:
                raise TooMany(INCOMPLETE) from None
            raise SlowRequest from None
        finally:
            self._reading = None
        return bytes(body)

    def give_up(self) -> bool:
        """Refuse the request that has not arrived as a whole, and everything behind one that is being answered."""
        own = self._counted
        if self._reading is not None and own is not None and not own.content.is_eof():
            self._counted, self._held_bytes = None, 0
            self._reading.reschedule(self._loop.time())
        elif own is None and not self._request_in_progress:
            if self._messages:  # it is read in the next turn of the loop, and looked at again
                return False
            self._held_bytes = 0
            self._wire.abort()
        else:
            own_bytes = 0 if own is None else _size_bytes(own)
            if self._held_bytes <= own_bytes + SMALL_BYTES:
                return False
            self.close()  # after the answer
            self._messages.clear()
            self._parser = None
            self._held_bytes = own_bytes
        self._is_discarding = True
        self._limits.unanswered.holds(self, self._held_bytes)
        return True

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's own always closes
        """The client sends nothing more. True keeps the connection open until everything that came is answered.

        A client that waits for jobs and closes its side is gone: a process that dies leaves the same sign.
        """
        self._has_ended = True
        asked = [(_path(message), payload) for message, payload in self._messages]
        if self._latest is not None and self._waiter is None:  # it is being answered
            asked.append((self._latest.path, self._latest.content))
        if not asked or self.ssl_context:  # TLS connections cannot be half closed
            return False
        waits = self.asked is not None and self.asked.waits
        waits = waits or any(without_slashes(path) in WAITING_PATHS for path, _ in asked)
        if waits or any(not payload.is_eof() for _, payload in asked):
            return False
        if not self._messages:
            self.close()  # after the answer
        return True

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
        reason = (message or exc.message).partition(":")[0]  # and not the bytes that came
        # as an error in the log, any client could fill the disk with it
        log.debug("not HTTP, from %s: %s", request.remote, reason)
        response = self._refuse(reason)
        response.force_close()
        return response


def _size_bytes(request: web.BaseRequest) -> int:
    head_bytes = sum(len(name) + len(value) for name, value in request.raw_headers)
    return head_bytes + request.content.total_bytes


def _path(message: object) -> str:
    return message.url.path if isinstance(message, RawRequestMessage) else ""  # it was not HTTP
