"""A front without a server: its endpoints are called with a queue that only counts."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from delayqueue.config.config import Config
from delayqueue.domain.access import EVERYWHERE
from delayqueue.metrics import Metrics
from delayqueue.net.later import Later
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator
from delayqueue.web.endpoint import OPEN, Endpoint, Returnable, endpoint
from delayqueue.web.envelope import Responder
from delayqueue.web.front import Front
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.requests import Request

# gets the request, and the text in its body
Handler = Callable[[HttpRequest, str], Awaitable[HttpResponse | Returnable[HttpResponse]]]


class TextRequest(Request):
    """A text."""

    text: str = ""


class Client:
    """A client that reads what it is sent, or is gone. `pending` is what its answer depends on."""

    def __init__(self, *, is_gone: bool = False) -> None:
        self.got: list[HttpResponse] = []
        self.pending: asyncio.Future[Any] | None = None
        self._is_gone = is_gone
        self._ended = asyncio.Event()

    async def ask(self, front: Front, request: HttpRequest, body: bytes = b"{}") -> None:
        """Wait for the answer."""
        front.begin(request, body, self)
        await self._ended.wait()

    def read(self) -> asyncio.Future[bytes]:
        raise AssertionError("the body is here")

    def awaits(self, later: Later[Any], then: Callable[[asyncio.Future[Any]], object]) -> None:
        later.call.add_done_callback(then)
        self.pending = later.call

    def write(self, response: HttpResponse, *, must_arrive: bool = False) -> None:  # noqa: ARG002
        self.pending = None
        self._ended.set()
        if self._is_gone:
            raise ConnectionResetError
        self.got.append(response)


@dataclass
class Server:
    """Has a front."""

    front: Front


class NoQueue(SimpleNamespace):
    """Has whatever a handler looks for in a queue, and no verb of it can be called."""

    def __getattr__(self, name: str) -> "NoQueue":
        return self


def front_of(*endpoints: Endpoint, **settings: Any) -> Front:
    """A front with these endpoints."""
    config = Config(language="en", protected_mode=False, **settings)
    queue: Any = NoQueue(metrics=Metrics(), scope=EVERYWHERE)
    queue.within = lambda scope: SimpleNamespace(scope=scope)
    nothing: Any = None
    guard = Authenticator()
    guard.use(config.auth_tokens, config.token_rate)
    api = Api(
        queue=queue,
        jobs=queue,
        config=config,
        responder=Responder(config.language),
        guard=guard,
        snapshots=nothing,
        check_url=str,
        check_call=None,
        try_webhook=nothing,
        endpoints=endpoints,
    )
    return Front(api)


class Verb:
    """A call that returns when the test wants it; it answers /push. `lends`: its data must arrive.

    `left` counts the clients that left while it was under way, `returned` has the data that did not arrive.
    """

    def __init__(self, *, lends: bool = False) -> None:
        self.calls: list[asyncio.Future[Any]] = []
        self.left = 0
        self.returned: list[object] = []
        self._lends = lends

    def front(self) -> Front:
        def run(api: Api, request: HttpRequest) -> Later[object]:  # it needs no queue
            if request.headers.get("is") == "a defect":
                raise KeyError("a secret")
            self.calls.append(asyncio.get_running_loop().create_future())
            return Later(self.calls[-1], self._data, self._leave)

        return front_of(endpoint("/push", OPEN)(run))

    def _data(self, result: object) -> object:
        if result == "a defect":
            raise KeyError("a secret")
        if self._lends:
            return Returnable(result, lambda: self.returned.append(result))
        return result

    def _leave(self) -> None:
        self.left += 1
