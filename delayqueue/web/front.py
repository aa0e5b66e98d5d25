"""Every request comes in here: it is checked, finds its endpoint, and is answered in the envelope, whatever happens.

This stands on aiohttp's low-level server, in the place of its Application, whose router and middlewares take a tenth of
the processor time of a push or a pop (measured): all paths are constant, so there is nothing to resolve.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Final

from aiohttp import HttpVersion11, hdrs, web

from delayqueue.errors import Code, NoSuchPath, QueueError, TooLarge, Unavailable, WrongMethod
from delayqueue.web.envelope import Speaker
from delayqueue.web.journal import OTHER_PATHS, Journal, new_request_id, request_id

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499  # as nginx calls it, for the log of requests

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Check = Callable[[web.BaseRequest], None]  # raises what the client is refused with
Endpoints = Mapping[str, Mapping[str, Handler]]  # by path and method


class Front:
    """What aiohttp calls with each request."""

    def __init__(
        self, endpoints: Endpoints, checks: Sequence[Check], speaker: Speaker, journal: Journal
    ) -> None:
        self._endpoints = endpoints
        self._checks = checks
        self._speaker = speaker
        self._journal = journal

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        began_s = perf_counter()
        code, path = Code.OK, OTHER_PATHS
        try:
            for check in self._checks:
                check(request)
            path, handler = self._find(request)
            if hdrs.EXPECT in request.headers:
                await _encourage(request)
            response = await handler(request)
        except ConnectionError:
            # The client is gone. aiohttp would log what is raised here; an answer that it cannot write, it drops.
            response = web.Response(status=CLIENT_GONE)
        except Exception as error:
            code, response = _answer(self._speaker, request, error)
        self._journal.note(request, path, response.status, code.value, began_s)
        return response

    def _find(self, request: web.BaseRequest) -> tuple[str, Handler]:
        """The endpoint's path and what answers this method. NoSuchPath, WrongMethod."""
        path = request.raw_path
        if path not in self._endpoints:
            path = request.path  # without the query and %-escapes
        methods = self._endpoints.get(path)
        if methods is None:
            raise NoSuchPath
        handler = methods.get(request.method)
        if handler is None:
            raise WrongMethod(methods)
        return path, handler


async def _encourage(request: web.BaseRequest) -> None:
    """curl sends a larger body only once it is told to, or after a second."""
    if request.version == HttpVersion11 and request.headers[hdrs.EXPECT].lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # of the answer nothing has been sent yet


def _answer(
    speaker: Speaker, request: web.BaseRequest, error: Exception
) -> tuple[Code, web.StreamResponse]:
    """The answer to what was raised, and its code.

    Not in the middleware: its frame is part of the error's traceback, and if it held the error in turn, the request's
    body would stay until the garbage collector finds that ring.
    """
    refusal, given_id = _refusal(request, error)
    return refusal.code, speaker.error(request, refusal, given_id)


def _refusal(request: web.BaseRequest, error: Exception) -> tuple[QueueError, str]:
    """What to answer where this was raised, and an id for the request where somebody will want to find it."""
    match error:
        case QueueError():
            return error, ""
        case web.HTTPRequestEntityTooLarge():
            return TooLarge(), ""
        case _:
            # a defect of ours: the client learns that it may try again, the log learns the rest
            name = request_id(request) or new_request_id()
            text = "%s %s failed, request %s"
            log.error(text, request.method, request.path, name, exc_info=error)
            return Unavailable(), name
