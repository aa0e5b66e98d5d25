"""The way of every request: it is checked, finds its endpoint, and is answered in the envelope, whatever happens."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, Final

from delayqueue.config.config import Config
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.errors import (
    Code,
    NoSuchPath,
    QueueError,
    Unavailable,
    WrongMethod,
)
from delayqueue.tasks import by_turns
from delayqueue.web import audit
from delayqueue.web.access_log import OTHER_PATHS, AccessLog, Note, new_request_id, request_id
from delayqueue.web.admin import pages
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator
from delayqueue.web.checks import loopback_only, same_origin, uncompressed
from delayqueue.web.endpoint import Endpoint, Large, Refusal, Returnable
from delayqueue.web.envelope import Responder
from delayqueue.web.http import HttpRequest, HttpResponse, Peer, without_slashes
from delayqueue.web.parse import Reader, is_array, parse_array
from delayqueue.web.requests import Request

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499  # nginx's code for it, for the access log
PIECE: Final = 50  # elements of an array before others get their turn: at most half a millisecond
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # editors on Windows and .NET put it before UTF-8
WANTED: Final = frozenset({HttpResponse, Large, Returnable})  # a handler can return these, too

Asked = Request | list[Request | Refusal]
Check = Callable[[HttpRequest], None]  # raises the error with which the client is refused


def is_protected(config: Config, guard: Authenticator) -> bool:
    """Whether clients on this machine only are served."""
    return config.protected_mode and not guard.asks


def build_front(api: Api, config: Config, make: "Callable[..., Front] | None" = None) -> "Front":
    """Build a front that answers everything that the design and docs/api.md promise."""
    checks = [same_origin, loopback_only] if is_protected(config, api.guard) else [same_origin]
    access_log = AccessLog(api.queue.metrics, lines=config.access_log)
    reader = Reader(api.queue.metrics, strict=config.strict)
    return (make or Front)(api, [*api.endpoints, *pages()], checks, reader, access_log.note)


class Front:
    """Called with each request, by either protocol."""

    def __init__(
        self,
        api: Api,
        endpoints: Iterable[Endpoint],
        checks: Sequence[Check],
        reader: Reader,
        note: Note,
    ) -> None:
        self._api = api
        self._confined: dict[Scope, Api] = {}
        self._endpoints: dict[str, dict[str, Endpoint]] = {}
        self._of_original: set[str] = set()
        for endpoint in endpoints:
            methods = self._endpoints.setdefault(endpoint.path, {})
            methods |= dict.fromkeys(endpoint.accepts, endpoint)
            if endpoint.takes is not None and endpoint.takes.of_original:
                self._of_original.add(endpoint.path)
        self._checks = checks
        self._reader = reader
        self._note = note

    def paths(self, method: str) -> frozenset[str]:
        """The paths that answer this method."""
        return frozenset(path for path, methods in self._endpoints.items() if method in methods)

    def answer_as(self, other: "Front") -> None:
        """Answer like the other one, from the next request on."""
        vars(self).update(vars(other))

    async def handle(self, request: HttpRequest, client: Peer) -> None:
        """Answer a client's request. If the answer cannot be sent, what it gave away is taken back (`Returnable`)."""
        began_s = perf_counter()
        code, path = Code.OK, OTHER_PATHS
        responder = self._api.responder
        target: audit.Target | None = None
        data: object = None
        try:
            for check in self._checks:
                check(request)
            endpoint = self._find(request)
            path = endpoint.path
            guard = self._api.guard
            api, admitted_by = self._admit(endpoint, request), guard.revision
            if endpoint.takes is None:
                running = endpoint.run(api, None, request)
            else:
                raw = await request.read() if request.body is None else request.body
                request.body = None
                raw = raw.removeprefix(BYTE_ORDER_MARK)
                uncompressed(request, raw)
                if endpoint.takes_many and is_array(raw):
                    asked: Asked = await self._read_many(endpoint.takes, api, raw, request)
                else:
                    asked = self._read(endpoint, endpoint.takes, api, raw, request)
                target = audit.target_of(endpoint, request, asked)
                running = endpoint.run(api, asked, request)
                del raw, asked  # a waiting poll no longer needs them
            data = await running
            recheck = None
            if guard.revision != admitted_by:  # it may have lost its right to what it waited for
                recheck = partial(guard.check_again, request, endpoint.roles)
            response = (
                await _as_wanted(responder, request, endpoint, data, recheck)
                if type(data) in WANTED
                else responder.ok(request, data, endpoint.done)
            )
        except ConnectionError:  # the client is gone, in the middle of its request
            response = HttpResponse(status=CLIENT_GONE)
        except Exception as error:
            code, response = _refusal(responder, request, error)
        audit.note(self._api.guard, request, target, code, data)
        if response.undelivered is None:
            self._note(request, path, response.status, code.value, began_s)
            with suppress(ConnectionError):
                await client.send(response)
        else:
            status = await _deliver(response, response.undelivered, client)
            self._note(request, path, status, code.value, began_s)

    def refusal(self, error: QueueError) -> HttpResponse:
        """The answer to something that is no request, or not all of one."""
        return self._api.responder.error(HttpRequest("", "", {}, None), error)

    def _find(self, request: HttpRequest) -> Endpoint:
        """The endpoint for this path and method. Raises NoSuchPath or WrongMethod if there is none."""
        methods = self._endpoints.get(request.path)
        if methods is None:
            path = without_slashes(request.path)
            if path not in self._of_original:
                raise NoSuchPath
            request.path, methods = path, self._endpoints[path]
        endpoint = methods.get(request.method)
        if endpoint is None:
            raise WrongMethod(methods)
        return endpoint

    def _admit(self, endpoint: Endpoint, request: HttpRequest) -> Api:
        """The Api with the topics that the client may reach.

        Raises Unauthorized, Forbidden or TooMany if it is refused.
        """
        scope = self._api.guard.admit(request, endpoint.roles)
        if scope is EVERYWHERE:
            return self._api
        if scope not in self._confined:
            self._confined[scope] = self._api.confined(scope)
        return self._confined[scope]

    def _read(
        self,
        endpoint: Endpoint,
        model: type[Request],
        api: Api,
        raw: bytes,
        request: HttpRequest,
    ) -> Request:
        """Parse the request, whatever its Content-Type. Raises Forbidden if the client may not reach its topics."""
        if "GET" in endpoint.methods and not raw.strip():
            raw = b"{}"
        asked = self._reader.read(model, raw, request)
        if api.scope is not EVERYWHERE:
            api.scope.check(asked.named_topics())
        return asked

    async def _read_many(
        self, model: type[Request], api: Api, raw: bytes, request: HttpRequest
    ) -> list[Request | Refusal]:
        """Parse an array of requests."""
        asked: list[Request | Refusal] = []
        items = parse_array(raw)
        async for at in by_turns(range(0, len(items), PIECE)):
            piece = items[at : at + PIECE]
            read = self._reader.read_items(model, piece) if api.scope is EVERYWHERE else None
            asked += read or [self._read_item(model, api, item, request) for item in piece]
        return asked

    def _read_item(
        self, model: type[Request], api: Api, item: object, request: HttpRequest
    ) -> Request | Refusal:
        """Parse an item; an invalid one does not affect the others."""
        try:
            asked = self._reader.read_item(model, item, request)
            api.scope.check(asked.named_topics())
        except QueueError as error:
            return Refusal(item, error)
        return asked


async def _as_wanted(
    responder: Responder,
    request: HttpRequest,
    endpoint: Endpoint,
    data: Any,
    recheck: Callable[[Iterable[str]], None] | None = None,
) -> HttpResponse:
    """The answer of a handler that returned a Large, a Returnable or an HttpResponse.

    `recheck` raises Unauthorized or Forbidden if the client may no longer have jobs of these topics: they are put back.
    """
    match data:
        case HttpResponse():
            return data
        case Returnable():
            try:
                if recheck is not None:
                    recheck(_topics(data.data))
                response = await _as_wanted(responder, request, endpoint, data.data)
            except BaseException:  # also if the client leaves while others have their turn
                if data.undelivered is not None:
                    data.undelivered()
                raise
            response.undelivered = data.undelivered
            return response
        case Large():
            return await responder.ok_by_turns(request, data.data, endpoint.done)
    return responder.ok(request, data, endpoint.done)


def _topics(jobs: Any) -> set[str]:
    """The topics of the jobs in an answer: one, many or none."""
    if isinstance(jobs, Large):
        jobs = jobs.data
    each = jobs if isinstance(jobs, list) else [jobs] if jobs else []
    return {job.topic for job in each}


async def _deliver(response: HttpResponse, undelivered: Callable[[], None], client: Peer) -> int:
    """Send an answer that must arrive or be undone; returns the status for the log."""
    try:
        await client.send(response)
    except BaseException as error:
        undelivered()
        if isinstance(error, ConnectionError):
            return CLIENT_GONE
        raise
    return response.status


def _refusal(
    responder: Responder, request: HttpRequest, error: Exception
) -> tuple[Code, HttpResponse]:
    """The answer to an exception, and its code.

    Not a method: its frame is part of the error's traceback, and if it held the error in turn, the request's body would
    stay until the garbage collector finds that cycle.
    """
    if isinstance(error, QueueError):
        return error.code, responder.error(request, error)
    # our bug: the client is told that it may try again, the log has the rest
    name = request_id(request) or new_request_id()
    log.error("%s %s failed, request %s", request.method, request.path, name, exc_info=error)
    return Unavailable.code, responder.error(request, Unavailable(), name)
