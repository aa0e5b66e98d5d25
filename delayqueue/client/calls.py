"""What is the same for both clients: a call, the rules of repeating it, and verbs that are written once."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    overload,
)

from delayqueue.errors import Code, NoSuchJob, QueueError, Text, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.blocking import Client

P = ParamSpec("P")
T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.1  # before a call is repeated; four times as long before each further try
SERVER_LANGUAGE: Final = "en"
ERRORS: Final[dict[int, type[QueueError]]] = {
    error.code: error for error in QueueError.__subclasses__()
}


class TransportError(Exception):
    """The server could not be reached, or broke off. Whether the call was done, nobody knows."""


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request: `read` makes the result of the answer's data.

    `repeatable`: doing it twice is as good as once. `wait_s`: how long the server may wait before it answers;
    None = as long as its own setting says. `gone_is_done`: a repetition may find that the job is gone by the first try.
    """

    path: str
    request: Any
    read: Callable[[Any], T]
    repeatable: bool = False
    wait_s: float | None = 0
    gone_is_done: bool = False

    @property
    def body(self) -> bytes:
        """The request as JSON."""
        return json.dumps(self.request).encode()


def conversation(call: Call[T], retries: int) -> Generator[float, Answer | TransportError, T]:
    """The rules of repeating: yields for how long to pause before the next try, is sent what came of it.

    Returns the call's result; raises what the last try ended with.
    """
    outcome = yield 0.0
    repeated = False
    for number in range(retries if call.repeatable else 0):
        if not _has_failed(outcome):
            break
        outcome = yield FIRST_PAUSE_S * 4**number
        repeated = True
    return _result(call, outcome, gone_is_done=repeated and call.gone_is_done)


def _has_failed(outcome: Answer | TransportError) -> bool:
    return isinstance(outcome, TransportError) or outcome.status == Unavailable.status


def _result(call: Call[T], outcome: Answer | TransportError, *, gone_is_done: bool) -> T:
    if isinstance(outcome, TransportError):
        raise outcome
    try:
        envelope = json.loads(outcome.body)
        code, message, data = envelope["code"], envelope["message"], envelope["data"]
    except (ValueError, TypeError, KeyError):
        raise TransportError(
            f"this is not a delay-queue server: HTTP status {outcome.status}, {outcome.body[:80]!r}"
        ) from None
    if gone_is_done:
        code, data = _without_gone(code), _each_without_gone(data)
    if code != Code.OK:
        raise ERRORS.get(code, QueueError)(Text(message, message))
    return call.read(data)


def _without_gone(code: int) -> int:
    return Code.OK if code == NoSuchJob.code else code


def _each_without_gone(data: Any) -> Any:
    """What was done is in the codes of its jobs, where there are many."""
    return data and [each | {"code": _without_gone(each["code"])} for each in data]


class verb(Generic[P, T]):  # noqa: N801  # used as a decorator
    """Makes a method of both clients out of one that builds a Call[T].

    Client's returns T, AsyncClient's a coroutine of T.
    """

    def __init__(self, build: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._build = build
        functools.update_wrapper(self, build)  # type: ignore[arg-type]  # for help(): name, docstring, signature

    @overload
    def __get__(self, client: None, owner: type) -> verb[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> Any:
        if client is None:
            return self

        @functools.wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.send(self._build(client, *args, **kwargs))

        return method
