"""aiohttp's connections, and what it leaves open: clients that do not read, end early, or do not speak HTTP."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from delayqueue.net.unread import Unread
from delayqueue.web.http import WAITING_PATHS

log = logging.getLogger(__name__)

Refuse = Callable[[str], web.Response]  # the answer to something that is not HTTP, with the reason


class Connections(web.Server):
    """Makes the protocol of each connection."""

    def __init__(self, handler: Any, *, unread: Unread, refuse: Refuse, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self._unread = unread
        self._refuse = refuse

    def __call__(self) -> "AiohttpConnection":
        """The protocol of a new connection."""
        return AiohttpConnection(
            self, unread=self._unread, refuse=self._refuse, loop=self._loop, **self._kwargs
        )


class AiohttpConnection(web.RequestHandler):
    """One connection."""

    __slots__ = ("_has_ended", "_latest", "_refuse", "_unread", "_wire")

    _wire: asyncio.Transport

    def __init__(
        self, server: web.Server, *, unread: Unread, refuse: Refuse, **settings: Any
    ) -> None:
        super().__init__(server, **settings)
        self._unread = unread
        self._refuse = refuse
        self._latest: web.BaseRequest | None = None
        self._has_ended = False  # the client sends nothing more

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the peer's address while it is known: after a reset it is gone."""
        self._wire = cast("asyncio.Transport", transport)
        super().connection_made(transport)
        self._unread.watch(self._wire)
        _ = self.peername  # aiohttp keeps what it finds first

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client is gone: nobody reads any more."""
        self._unread.flows(self._wire)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        super().pause_writing()
        answer_bytes = self._latest.writer.output_size if self._latest is not None else 0
        self._unread.stalled(self._wire, answer_bytes)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._unread.flows(self._wire)
        super().resume_writing()

    def began(self, request: web.BaseRequest) -> None:
        """This request is being answered."""
        self._latest = request
        if self._has_ended and not self._messages:
            self.close()  # after the answer

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
        if any(path in WAITING_PATHS or not payload.is_eof() for path, payload in asked):
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
            return super().handle_error(request, status, exc, message)
        reason = (message or "").partition(":")[0]  # and not the bytes that came
        # as an error in the log, any client could fill the disk with it
        log.debug("not HTTP, from %s: %s", request.remote, reason)
        response = self._refuse(reason)
        response.force_close()
        return response


def _path(message: object) -> str:
    return message.url.path if isinstance(message, RawRequestMessage) else ""  # it was not HTTP
