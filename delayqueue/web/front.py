"""The way of every request: it is checked, finds its endpoint, and is answered in the envelope, whatever happens."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from delayqueue.config.config import Config
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.errors import (
    OK,
    Code,
    NoSuchPath,
    QueueError,
    Unavailable,
    WrongMethod,
)
from delayqueue.metrics import REQUESTS
from delayqueue.net.later import Later
from delayqueue.tasks import by_turns
from delayqueue.web import access_log, audit
from delayqueue.web.access_log import new_request_id, request_id
from delayqueue.web.admin import pages
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator
from delayqueue.web.checks import loopback_only, same_origin, uncompressed
from delayqueue.web.endpoint import BOTH, Endpoint, InvalidItem, Large, Returnable
from delayqueue.web.envelope import Responder
from delayqueue.web.http import (
    ADMIN_PAGE,
    DirectPeer,
    HttpRequest,
    HttpResponse,
    Peer,
    without_slashes,
)
from delayqueue.web.parse import Reader, is_array, parse_array
from delayqueue.web.requests import Request

log = logging.getLogger(__name__)

CLIENT_GONE: Final = 499  # nginx's code for it, for the access log
PIECE: Final = 50  # elements of an array before others get their turn: at most half a millisecond
OTHER_PATHS: Final = "other"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # editors on Windows and .NET put it before UTF-8
NO_METHODS: Final[Mapping[str, Endpoint]] = MappingProxyType({})

Check = Callable[[HttpRequest], None]  # raises the error with which the client is refused


def is_protected(config: Config, guard: Authenticator) -> bool:
    """Whether clients on this machine only are served."""
    return config.protected_mode and not guard.asks


def build_front(api: Api, config: Config, make: "Callable[..., Front] | None" = None) -> "Front":
    """Build a front that answers everything that the design and docs/api.md promise."""
    checks = [same_origin, loopback_only] if is_protected(config, api.guard) else [same_origin]
    reader = Reader(api.queue.metrics, strict=config.strict)
    endpoints = [*api.endpoints, *pages()]
    return (make or Front)(api, endpoints, checks, reader, has_log=config.access_log)


class HasFront(Protocol):
    """Has the front in force: settings that are read again put another one in its place."""

    front: "Front"


@dataclass(slots=True, eq=False)
class Cycle:
    """What is known of a request on its way to its answer."""

    request: HttpRequest
    began_s: float = field(default_factory=perf_counter)
    path: str = OTHER_PATHS  # the endpoint's: no client can fill the metrics with unknown ones
    endpoint: Endpoint = field(init=False)
    admitted_by: int = 0  # the guard's revision
    target: audit.Target | None = None
    undelivered: Callable[[], None] | None = None  # takes back what the answer gives away

    def take_back(self) -> None:
        """The answer does not arrive."""
        undelivered, self.undelivered = self.undelivered, None
        if undelivered is not None:
            undelivered()

    def ended(self, task: asyncio.Future[None]) -> None:
        """The task that was to answer has ended, possibly before it ran."""
        if task.cancelled():
            self.take_back()


class Front:
    """Answers each request, by either protocol."""

    def __init__(
        self,
        api: Api,
        endpoints: Iterable[Endpoint],
        checks: Sequence[Check],
        reader: Reader,
        *,
        has_log: bool,
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
        self._has_log = has_log

    def paths(self, method: str) -> frozenset[str]:
        """The paths that answer this method."""
        return frozenset(path for path, methods in self._endpoints.items() if method in methods)

    def is_for_operators(self, method: str, path: str) -> bool:
        """Whether this is a request that neither producers nor consumers make: for whoever watches over the server."""
        endpoint = self._endpoints.get(path, NO_METHODS).get(method)
        return endpoint is not None and BOTH.isdisjoint(endpoint.roles or ())

    def begin(self, request: HttpRequest, client: DirectPeer) -> None:
        """Begin to answer a request whose body is here; `client.pending` becomes what its answer waits for.

        A request that needs one call is answered in a callback of that (`Later`), any other has a task.
        """
        endpoint = self._endpoints.get(request.path, NO_METHODS).get(request.method)
        if endpoint is None or endpoint.has_task or not (request.body or b"").startswith(b"{"):
            client.pending = task(self.handle(request, client))
            return
        cycle = Cycle(request)
        try:
            later = cast("Later[object]", self._run(cycle, self._admit(cycle, endpoint)))
        except Exception as error:
            client.pending = task(
                self._send(cycle, client, *_refusal(self._api.responder, request, error))
            )
        else:
            client.pending = later.call
            later.call.add_done_callback(partial(self._settle, cycle, client, later))

    async def handle(self, request: HttpRequest, client: Peer) -> None:
        """Answer a request. If the answer cannot be sent, what it gave away is taken back (`Returnable`)."""
        cycle = Cycle(request)
        try:
            api = self._admit(cycle)
            if cycle.endpoint.takes is not None and request.body is None:
                request.body = await request.read()
            data = await self._run(cycle, api)
        except ConnectionError:  # the client is gone, in the middle of its request
            answer = OK, HttpResponse(status=CLIENT_GONE)
        except Exception as error:
            answer = _refusal(self._api.responder, request, error)
        else:
            await self._finish(cycle, client, data)
            return
        await self._send(cycle, client, *answer)

    def _settle(
        self, cycle: Cycle, client: DirectPeer, later: Later[object], call: asyncio.Future[Any]
    ) -> None:
        """Answer with what a call has returned or raised."""
        if call.cancelled():  # the client is gone
            if later.leave is not None:
                later.leave()
            return
        code, data = OK, None
        try:
            data = later.read(call.result())
            content = self._lend(cycle, data) if isinstance(data, Returnable) else data
            if type(content) is Large:
                client.pending = task(self._finish(cycle, client, data))
                client.pending.add_done_callback(cycle.ended)  # it may be cancelled before it runs
                return
            response = self._api.responder.ok(cycle.request, content, cycle.endpoint.done)
        except Exception as error:
            del call, later  # they hold the error, whose traceback holds this frame
            code, response = self._refuse(cycle, error)
        self._write(cycle, client, code, response, data)

    async def _finish(self, cycle: Cycle, client: Peer, data: object) -> None:
        """Answer with the data that a handler has returned; others get their turn while large data is written."""
        code = OK
        try:
            content = self._lend(cycle, data) if isinstance(data, Returnable) else data
            if isinstance(content, HttpResponse):
                response = content
            elif isinstance(content, Large):
                response = await self._api.responder.ok_by_turns(
                    cycle.request, content.data, cycle.endpoint.done
                )
            else:
                response = self._api.responder.ok(cycle.request, content, cycle.endpoint.done)
        except Exception as error:
            code, response = self._refuse(cycle, error)
        except asyncio.CancelledError:  # the client is gone
            cycle.take_back()
            raise
        await self._send(cycle, client, code, response, data)

    async def _send(
        self, cycle: Cycle, client: Peer, code: Code, response: HttpResponse, data: object = None
    ) -> None:
        """Send an answer. One that must arrive is taken back if it does not, and recorded afterwards."""
        response.must_arrive, status = cycle.undelivered is not None, response.status
        if not response.must_arrive:
            self._record(cycle, code, status, data)
        try:
            await client.send(response)
        except BaseException as error:
            cycle.take_back()
            if not isinstance(error, ConnectionError):
                raise
            status = CLIENT_GONE
        if response.must_arrive:
            self._record(cycle, code, status, data)

    def _write(
        self, cycle: Cycle, client: DirectPeer, code: Code, response: HttpResponse, data: object
    ) -> None:
        """Send an answer as _send() does, without a task."""
        response.must_arrive, status = cycle.undelivered is not None, response.status
        if not response.must_arrive:
            self._record(cycle, code, status, data)
        try:
            sending = client.write(response)
        except ConnectionError:
            cycle.take_back()
            status, sending = CLIENT_GONE, None
        if sending is not None:
            client.pending = sending
            sending.add_done_callback(partial(self._sent, cycle, code, status, data))
        elif response.must_arrive:
            self._record(cycle, code, status, data)

    def _sent(
        self, cycle: Cycle, code: Code, status: int, data: object, sending: asyncio.Future[None]
    ) -> None:
        """All of an answer that must arrive is sent, or its client is gone."""
        if sending.cancelled():
            cycle.take_back()
        else:
            self._record(cycle, code, status, data)

    def _record(self, cycle: Cycle, code: Code, status: int, data: object) -> None:
        """Count the answer, and log it as far as the settings and the client want that."""
        if cycle.target is not None:
            deed = audit.note(self._api.guard, cycle.request, cycle.target, code, data)
            if deed.has_changed:
                self._api.queue.history.did(deed.who, deed.what)
        self._api.queue.metrics.count(REQUESTS, cycle.path, int(code))
        if self._has_log:
            access_log.note(cycle.request, status, int(code), cycle.began_s)

    def refusal(self, error: QueueError) -> HttpResponse:
        """The answer to something that is no request, or not all of one."""
        return self._api.responder.error(HttpRequest("", "", {}, None), error)

    def _admit(self, cycle: Cycle, endpoint: Endpoint | None = None) -> Api:
        """Find the endpoint, unless it is known, and the Api with the topics that the client may reach.

        Raises NoSuchPath, WrongMethod, Unauthorized, Forbidden or TooMany if it is refused.
        """
        request, guard = cycle.request, self._api.guard
        for check in self._checks:
            check(request)
        endpoint = cycle.endpoint = endpoint or self._find(request)
        cycle.path = endpoint.path
        cycle.admitted_by = guard.revision
        if not guard.asks:
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

    def _run(self, cycle: Cycle, api: Api) -> Awaitable[object]:
        """Read the request, whatever its Content-Type, and call its handler.

        Raises Forbidden if the client may not reach its topics, and whatever the handler raises.
        """
        request, endpoint = cycle.request, cycle.endpoint
        if endpoint.takes is None:
            return endpoint.run(api, None, request)
        raw, request.body = request.body or b"", None  # a waiting poll no longer needs it
        if not raw.startswith(b"{"):
            raw = raw.removeprefix(BYTE_ORDER_MARK)
            if "content-encoding" in request.headers:
                uncompressed(request, raw)
            if endpoint.takes_many and is_array(raw):
                return self._run_many(cycle, api, endpoint.takes, raw)
            if "GET" in endpoint.methods and not raw.strip():
                raw = b"{}"
        asked = self._reader.read(endpoint.takes, raw, request)
        if api is not self._api:
            api.scope.check(asked.named_topics())
        if ADMIN_PAGE in request.headers:
            cycle.target = audit.target_of(endpoint, asked)
        answer = endpoint.run(api, asked, request)
        request.waits = type(answer) is Later and answer.leave is not None
        return answer

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

    def _lend(self, cycle: Cycle, data: Returnable[object]) -> object:
        """The data that must arrive.

        Raises Unauthorized or Forbidden if the client may no longer have the jobs in it.
        """
        cycle.undelivered = data.undelivered
        guard = self._api.guard
        if guard.revision != cycle.admitted_by:
            guard.check_again(cycle.request, cycle.endpoint.roles, _topics(data.data))
        return data.data

    def _refuse(self, cycle: Cycle, error: Exception) -> tuple[Code, HttpResponse]:
        """The answer to an exception, and its code; what the request was to get is taken back."""
        cycle.take_back()
        return _refusal(self._api.responder, cycle.request, error)


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
    # our bug: the client is told that it may try again, the log has the rest
    name = request_id(request) or new_request_id()
    log.error("%s %s failed, request %s", request.method, request.path, name, exc_info=error)
    return Unavailable.code, responder.error(request, Unavailable(), name)


def task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task with a name, because asyncio would generate one for each."""
    return asyncio.get_running_loop().create_task(work, name="request")
