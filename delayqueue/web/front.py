"""Every request comes in here: it is checked, finds its endpoint, and is answered in the envelope, whatever happens."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Final

from delayqueue.config import Config
from delayqueue.errors import Code, Malformed, NoSuchPath, QueueError, Unavailable, WrongMethod
from delayqueue.web.admin import pages
from delayqueue.web.api import Api
from delayqueue.web.checks import loopback_only, same_origin
from delayqueue.web.envelope import Speaker
from delayqueue.web.http import Client, Endpoints, Handler, HttpRequest, HttpResponse
from delayqueue.web.journal import OTHER_PATHS, Journal, new_request_id, request_id
from delayqueue.web.routes import endpoints

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499  # as nginx calls it, for the log of requests

Check = Callable[[HttpRequest], None]  # raises what the client is refused with


def build_front(api: Api, config: Config) -> "Front":
    """What answers all that design and docs/api.md promise."""
    is_protected = config.protected_mode and not api.guard.asks
    checks = [same_origin, loopback_only] if is_protected else [same_origin]
    journal = Journal(api.queue.metrics, lines=config.access_log)
    return Front(endpoints(api) | pages(), checks, api.speaker, journal)


class Front:
    """What each way in calls with each request."""

    def __init__(
        self, endpoints: Endpoints, checks: Sequence[Check], speaker: Speaker, journal: Journal
    ) -> None:
        self._endpoints = {path: _with_head(methods) for path, methods in endpoints.items()}
        self._checks = checks
        self._speaker = speaker
        self._journal = journal

    def paths(self, method: str) -> frozenset[str]:
        """The paths that this method is answered at."""
        return frozenset(path for path, methods in self._endpoints.items() if method in methods)

    def answer_as(self, other: "Front") -> None:
        """Answer as the other one does, from the next request on."""
        self._endpoints = other._endpoints
        self._checks = other._checks
        self._speaker = other._speaker
        self._journal = other._journal

    async def handle(self, request: HttpRequest, client: Client) -> None:
        """Answer a client's request; an answer that cannot be sent is told so."""
        began_s = perf_counter()
        code, path = Code.OK, OTHER_PATHS
        try:
            for check in self._checks:
                check(request)
            path, handler = self._find(request)
            response = await handler(request)
        except ConnectionError:  # the client is gone, in the midst of its request
            response = HttpResponse(status=CLIENT_GONE)
        except Exception as error:
            code, response = _refusal(self._speaker, request, error)
        if response.undelivered is None:
            self._journal.note(request, path, response.status, code.value, began_s)
            with suppress(ConnectionError):
                await client.send(response)
        else:
            status = await _deliver(response, response.undelivered, client)
            self._journal.note(request, path, status, code.value, began_s)

    def malformed(self, reason: str) -> HttpResponse:
        """The answer to what is not HTTP."""
        return self._speaker.error(HttpRequest("", "", {}, None), Malformed(reason))

    def _find(self, request: HttpRequest) -> tuple[str, Handler]:
        """The endpoint's path and what answers this method. NoSuchPath, WrongMethod."""
        methods = self._endpoints.get(request.path)
        if methods is None:
            raise NoSuchPath
        handler = methods.get(request.method)
        if handler is None:
            raise WrongMethod(methods)
        return request.path, handler


def _with_head(methods: Mapping[str, Handler]) -> Mapping[str, Handler]:
    """HEAD is answered as GET; the body is left out where the answer is written."""
    return {**methods, "HEAD": methods["GET"]} if "GET" in methods else methods


async def _deliver(response: HttpResponse, undelivered: Callable[[], None], client: Client) -> int:
    """Send what must arrive or be taken back; returns the status for the log."""
    try:
        await client.send(response)
    except BaseException as error:
        undelivered()
        if isinstance(error, ConnectionError):
            return CLIENT_GONE
        raise
    return response.status


def _refusal(speaker: Speaker, request: HttpRequest, error: Exception) -> tuple[Code, HttpResponse]:
    """The answer to what was raised, and its code.

    Not in the method: its frame is part of the error's traceback, and if it held the error in turn, the request's
    body would stay until the garbage collector finds that ring.
    """
    if isinstance(error, QueueError):
        return error.code, speaker.error(request, error)
    # a defect of ours: the client learns that it may try again, the log learns the rest
    name = request_id(request) or new_request_id()
    log.error("%s %s failed, request %s", request.method, request.path, name, exc_info=error)
    return Unavailable.code, speaker.error(request, Unavailable(), name)
