"""The way of every request: it is checked, finds its endpoint, and is answered in the envelope, whatever happens."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.errors import OK, Code, NoSuchPath, QueueError, Unavailable, WrongMethod
from delayqueue.metrics import REQUESTS
from delayqueue.net.later import Later
from delayqueue.net.loopback import is_loopback
from delayqueue.tasks import by_turns
from delayqueue.web import access_log, audit
from delayqueue.web.access_log import new_request_id, request_id
from delayqueue.web.admin import pages
from delayqueue.web.api import Api
from delayqueue.web.checks import (
    FORWARDED,
    require_own_page,
    require_same_origin,
    require_this_machine,
    require_uncompressed,
)
from delayqueue.web.endpoint import BOTH, Endpoint, InvalidItem, Large, Returnable
from delayqueue.web.envelope import Responder
from delayqueue.web.http import ADMIN_PAGE, HttpRequest, HttpResponse, Peer, without_slashes
from delayqueue.web.parse import Reader, is_array, parse_array
from delayqueue.web.requests import Request

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499  # nginx's code for it, for the access log
# Elements of an array before others may get their turn: 20 µs, or 2.5 ms if each has a call with all that it may have
PIECE: Final = 10
OTHER_PATHS: Final = "other"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # editors on Windows and .NET put it before UTF-8
NO_PLAIN_DATA: Final = (Returnable, Large, Later, HttpResponse)  # what else a handler may return
NO_METHODS: Final[Mapping[str, Endpoint]] = MappingProxyType({})

Work = Coroutine[Any, Any, Any]


class HasFront(Protocol):
    """Has the front in force: settings that are read again put another one in its place."""

    front: "Front"


@dataclass(slots=True, eq=False)
class Cycle:
    """What is known of a request on its way to its answer."""

    request: HttpRequest
    client: Peer
    began_s: float = 0.0  # perf_counter, if its answer is logged
    path: str = OTHER_PATHS  # the endpoint's: no client can fill the metrics with unknown ones
    endpoint: Endpoint = field(init=False)
    admitted_by: int = 0  # the guard's revision
    target: audit.Target | None = None
    data: object = None  # what the answer tells
    undelivered: Callable[[], None] | None = None  # takes back what the answer gives away

    def take_back(self) -> None:
        """The answer does not arrive."""
        undelivered, self.undelivered = self.undelivered, None
        if undelivered is not None:
            undelivered()


class Front:
    """Answers each request to an endpoint or a page, by the settings of `api`, whichever protocol brought it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._confined: dict[Scope, Api] = {}
        self._endpoints: dict[str, dict[str, Endpoint]] = {}
        self._of_original: set[str] = set()
        for endpoint in (*api.endpoints, *pages()):
            methods = self._endpoints.setdefault(endpoint.path, {})
            methods |= dict.fromkeys(endpoint.accepts, endpoint)
            if endpoint.takes is not None and endpoint.takes.of_original:
                self._of_original.add(endpoint.path)
        self._is_protected = api.guard.is_protected
        self._check_page = require_own_page if self._is_protected else require_same_origin
        self._reader = Reader(api.queue.metrics, strict=api.config.strict)
        self._has_log = api.config.access_log
        self._answered = api.queue.metrics.counter(REQUESTS)

    def paths(self, method: str) -> frozenset[str]:
        """The paths that answer this method."""
        return frozenset(path for path, methods in self._endpoints.items() if method in methods)

    def is_for_operators(self, method: str, path: str) -> bool:
        """Whether this is a request that neither producers nor consumers make: for whoever watches over the server."""
        endpoint = self._endpoints.get(path, NO_METHODS).get(method)
        return endpoint is not None and BOTH.isdisjoint(endpoint.roles or ())

    def begin(self, request: HttpRequest, body: bytes | None, client: Peer) -> None:
        """Begin to answer a request; if its body is None, the client has it (`Peer.read`) once it is admitted.

        It is answered in callbacks of what its answer depends on. If the answer cannot be sent, what it gave away is
        taken back (`Returnable`).
        """
        cycle = Cycle(request, client, perf_counter() if self._has_log else 0.0)
        try:
            api = self._admit(cycle)
            if body is None and cycle.endpoint.takes is not None:
                later = Later(client.read(), partial(self._run, cycle, api))
            else:
                later = self._run(cycle, api, body or b"")
        except Exception as error:
            self._fail(cycle, error)
        else:
            client.awaits(later, partial(self._ended, cycle, later))

    def _fail(self, cycle: Cycle, error: Exception) -> None:
        """Refuse a request in the next turn: at once, errors of requests that came together would nest."""
        call = asyncio.get_running_loop().create_future()
        call.set_exception(error)
        later = Later(call, _itself)
        cycle.client.awaits(later, partial(self._ended, cycle, later))

    def _ended(self, cycle: Cycle, later: Later[Any], call: asyncio.Future[Any]) -> None:
        """Answer with what a call has returned or raised, or wait for what that depends on in turn."""
        if call.cancelled():
            if later.leave is not None:
                later.leave()
            self._gone(cycle)
            return
        code = OK
        try:
            data = later.read(call.result())
            if data is not None and isinstance(data, NO_PLAIN_DATA):
                response = self._unpack(cycle, data)
                if response is None:
                    return
            else:
                cycle.data = data
                response = self._api.responder.ok(cycle.request, data, cycle.endpoint.done)
        except Exception as error:
            del call, later  # they hold the error, whose traceback holds this frame
            cycle.take_back()
            code, response = _refusal(self._api.responder, cycle.request, error)
        self._send(cycle, code, response)

    def _unpack(self, cycle: Cycle, data: object) -> HttpResponse | None:
        """The answer with what a handler returns in place of plain data; None = it depends on something in turn.

        Raises Unauthorized or Forbidden if the client may no longer have the jobs in it.
        """
        request, content = cycle.request, data
        if isinstance(data, Returnable):
            content = data.data
            cycle.undelivered = data.undelivered
            guard = self._api.guard
            if guard.revision != cycle.admitted_by:
                guard.check_again(request, cycle.endpoint.roles, _topics(content))
        if isinstance(content, Large):
            cycle.data, done = data, cycle.endpoint.done
            content = _in_task(self._api.responder.ok_by_turns(request, content.data, done))
        if isinstance(content, Later):
            cycle.client.awaits(content, partial(self._ended, cycle, content))
            return None
        if isinstance(content, HttpResponse):
            return content
        cycle.data = data
        return self._api.responder.ok(request, content, cycle.endpoint.done)

    def _send(self, cycle: Cycle, code: Code, response: HttpResponse) -> None:
        """Send an answer. One that must arrive is taken back if it does not, and recorded afterwards."""
        status, sending, must_arrive = response.status, None, cycle.undelivered is not None
        if not must_arrive:
            self._record(cycle, code, status)
        try:
            sending = cycle.client.write(response, must_arrive=must_arrive)
        except ConnectionError:
            cycle.take_back()
            status = CLIENT_GONE
        if must_arrive:
            if sending is None:
                self._record(cycle, code, status)
            else:
                sending.add_done_callback(partial(self._sent, cycle, code, status))

    def _sent(self, cycle: Cycle, code: Code, status: int, sending: asyncio.Future[None]) -> None:
        """All of an answer that must arrive is sent, or its client is gone."""
        if sending.cancelled():
            self._gone(cycle)
        else:
            self._record(cycle, code, status)

    def _gone(self, cycle: Cycle) -> None:
        """The client is gone before its answer was sent."""
        cycle.take_back()

    def _record(self, cycle: Cycle, code: Code, status: int) -> None:
        """Count the answer, and log it as far as the settings and the client want that."""
        if cycle.target is not None:
            action = audit.note(self._api.guard, cycle.request, cycle.target, code, cycle.data)
            if action.has_changed:
                self._api.queue.history.note_action(action.who, action.what)
        self._answered[cycle.path, int(code)] += 1
        if self._has_log:
            access_log.note(cycle.request, status, int(code), cycle.began_s)

    def refusal(self, error: QueueError) -> HttpResponse:
        """The answer to something that is no request, or not all of one."""
        return self._api.responder.error(HttpRequest("", "", {}, None), error)

    def _admit(self, cycle: Cycle) -> Api:
        """Find the endpoint, and the Api with the topics that the client may reach.

        Raises NoSuchPath, WrongMethod, Unauthorized, Forbidden or TooMany if it is refused.
        """
        request, guard = cycle.request, self._api.guard
        if "sec-fetch-site" in request.headers or "origin" in request.headers:
            self._check_page(request)  # only browsers send these
        # what require_this_machine() checks, written out: one call less for each request
        elif self._is_protected and (FORWARDED in request.headers or not is_loopback(request.peer)):
            require_this_machine(request)
        endpoint = self._endpoints.get(request.path, NO_METHODS).get(request.method)
        endpoint = cycle.endpoint = endpoint or self._find(request)
        cycle.path = endpoint.path
        cycle.admitted_by = guard.revision
        if not guard.requires_auth:
            return self._api
        scope = guard.admit(request, endpoint.roles)
        if scope is EVERYWHERE:
            return self._api
        if scope not in self._confined:
            self._confined[scope] = self._api.confined(scope)
        return self._confined[scope]

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

    def _run(self, cycle: Cycle, api: Api, raw: bytes) -> Later[Any]:
        """Read the request's body, whatever its Content-Type, and call its handler.

        Raises Forbidden if the client may not reach its topics, and whatever the handler raises.
        """
        request, endpoint = cycle.request, cycle.endpoint
        if endpoint.takes is None:
            return _in_task(endpoint.run(api, None, request))
        if not raw.startswith(b"{"):
            raw = raw.removeprefix(BYTE_ORDER_MARK)
            if "content-encoding" in request.headers:
                require_uncompressed(request, raw)
            if endpoint.takes_many and is_array(raw):
                return _in_task(self._run_many(cycle, api, endpoint.takes, raw))
            if "GET" in endpoint.methods and not raw.strip():
                raw = b"{}"
        asked = self._reader.read(endpoint.takes, raw, request)
        if api is not self._api:
            api.scope.check(asked.named_topics())
        if ADMIN_PAGE in request.headers:
            cycle.target = audit.target_of(endpoint, asked)
        answer = endpoint.run(api, asked, request)
        return answer if type(answer) is Later else _in_task(answer)

    async def _run_many(self, cycle: Cycle, api: Api, model: type[Request], raw: bytes) -> object:
        """Read an array of requests, and call its handler."""
        asked: list[Request | InvalidItem] = []
        items = parse_array(raw)
        async for at in by_turns(range(0, len(items), PIECE)):
            piece = items[at : at + PIECE]
            read = self._reader.read_items(model, piece) if api.scope is EVERYWHERE else None
            asked += read or [self._read_item(model, api, item, cycle.request) for item in piece]
        if ADMIN_PAGE in cycle.request.headers:
            cycle.target = audit.target_of(cycle.endpoint, asked)
        return await cycle.endpoint.run(api, asked, cycle.request)

    def _read_item(
        self, model: type[Request], api: Api, item: object, request: HttpRequest
    ) -> Request | InvalidItem:
        """Parse an item; an invalid one does not affect the others."""
        try:
            asked = self._reader.read_item(model, item, request)
            api.scope.check(asked.named_topics())
        except QueueError as error:
            return InvalidItem(item, error)
        return asked


def _topics(jobs: Any) -> set[str]:
    """The topics of the jobs in an answer: one, many or none."""
    if isinstance(jobs, Large):
        jobs = jobs.data
    each = jobs if isinstance(jobs, list) else [jobs] if jobs else []
    return {job.topic for job in each}


def _refusal(
    responder: Responder, request: HttpRequest, error: Exception
) -> tuple[Code, HttpResponse]:
    """The answer to an exception, and its code.

    Not a method: its frame is part of the error's traceback, and if it held the error in turn, the request's body would
    stay until the garbage collector finds that cycle.
    """
    if isinstance(error, QueueError):
        return error.code, responder.error(request, error)
    # a bug of ours: the client is told that it may try again, and the log has the traceback
    name = request_id(request) or new_request_id()
    log.error("%s %s failed, request %s", request.method, request.path, name, exc_info=error)
    return Unavailable.code, responder.error(request, Unavailable(), name)


def _in_task(work: Awaitable[Any]) -> Later[Any]:
    """What a coroutine returns. Its task has a name, because asyncio would generate one for each."""
    if isinstance(work, Later):
        return work
    task = asyncio.get_running_loop().create_task(cast("Work", work), name="request")
    return Later(task, _itself)


def _itself(result: object) -> object:
    """What a task returns is the data."""
    return result
