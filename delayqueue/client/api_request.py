"""What both clients share: requests to the server, the rules for retries, and verbs that are written once."""

from __future__ import annotations

import functools
import inspect
import json
import time
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    overload,
)

from delayqueue.domain.text import not_unicode_in
from delayqueue.errors import Code, NoSuchJob, QueueError, StaleReceipt, Text, TooLarge, TooMany

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Any]")

FIRST_PAUSE_S: Final = 0.1  # before the first retry; four times as long before each further one
LONGEST_PAUSE_S: Final = 10.0  # that a server may ask for; beyond it, the caller decides
# our servers ask for seconds: a day is the mistake of something in between
MOST_ASKED_S: Final = 60.0
# an empty poll that should last longer, but is answered before this, has not waited
EARLY_S: Final = 0.5
EARLY_PAUSE_S: Final = 1.0  # after such an answer
ENDED: Final = (NoSuchJob.code, StaleReceipt.code)  # what a receipt that is over is answered
AWAY: Final = (502, 503, 504)  # the store is, or the server before which a proxy stands
SERVER_LANGUAGE: Final = "en"
# json.dumps would make an encoder at each request
_encoded: Final = json.JSONEncoder(ensure_ascii=False).encode
# what reading an answer raises that has another shape: that of a proxy, say
STRANGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
ERRORS: Final[dict[int, type[QueueError]]] = {
    error.code: error for error in QueueError.__subclasses__()
}


# yields the pause before a try and the request to make, and is sent the outcome
Tries: TypeAlias = "Generator[tuple[float, ApiRequest[T]], Answer | TransportError, T]"


class TransportError(Exception):
    """The server could not be reached, or the connection broke. The request may or may not have been carried out."""


class NotUnicode(ValueError):
    """A text of a request has half of a surrogate pair, which JSON in UTF-8 cannot hold. Nothing was sent."""


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes
    retry_after: str | None = None

    @property
    def retry_after_s(self) -> float:
        """The pause that the answer asks for, at most MOST_ASKED_S; FIRST_PAUSE_S if it names no number of seconds."""
        asked = self.retry_after or ""
        return min(float(asked), MOST_ASKED_S) if asked.isdecimal() else FIRST_PAUSE_S


@dataclass(frozen=True, slots=True)
class ApiRequest(Generic[T]):
    """One request; `read` turns the answer's data into the result, or raises one of STRANGE if it is not ours.

    - `repeatable`: the request is idempotent.
    - `wait_s`: how long the server may wait before it answers; None = as long as its own setting says.
    - `polls`: without a job it should last as long as it may wait.
    - `gone_is_done`: a retry may find that the first try has already ended the job.
    - `ends_receipt`: a retry may find that the first try has already ended the reservation: then nobody knows.
    - `join`: makes one JSON value of those of several such requests of one moment; None = each is sent alone.
    - `traceparent`: the span that it is made in; "" = none.
    - `rest`: called after `read`; returns the next one, for what the answer had no room for. The last result counts.
    """

    path: str
    json: Any
    read: Callable[[Any], T]
    repeatable: bool = False
    wait_s: float | None = 0
    polls: bool = False
    gone_is_done: bool = False
    ends_receipt: bool = False
    join: Callable[[list[dict[str, Any]]], Any] | None = None
    traceparent: str = ""
    rest: Callable[[], ApiRequest[T] | None] = lambda: None

    @property
    def body(self) -> bytes:
        """The request as JSON. Raises NotUnicode if a text in it is none, TypeError if JSON has no such value."""
        try:
            return _encoded(self.json).encode()
        except UnicodeEncodeError as error:
            raise NotUnicode(not_unicode_in(self.json)) from error

    def limit_s(self, timeout_s: float) -> float | None:
        """How long to wait for the answer; None = no limit."""
        return None if self.wait_s is None else self.wait_s + timeout_s


def conversation(request: ApiRequest[T], retries: int) -> Tries[T]:
    """Each try of a request, and of the requests for what answers have no room for. Returns the last result."""
    while True:
        result = yield from _tries(request, retries)
        rest = request.rest()
        if rest is None:
            return result
        request = rest


def _tries(request: ApiRequest[T], retries: int) -> Tries[T]:
    """The rules for retries. Returns the request's result; raises the last try's error."""
    lost: Answer | TransportError | None = None  # the first try that may have been carried out
    pause_s = 0.0
    for left in range(retries, -1, -1):
        began_s = time.monotonic() + pause_s
        outcome = yield pause_s, request
        next_s = _pause_s(request, outcome, retries - left)
        if next_s is None or not left:
            result = _result(request, outcome, lost)
            if not left or not _is_early(request, result, time.monotonic() - began_s):
                break
            next_s = EARLY_PAUSE_S
        if lost is None and not _is_refused(outcome):
            lost = outcome
        pause_s = next_s
    return result


def _pause_s(
    request: ApiRequest[Any], outcome: Answer | TransportError, number: int
) -> float | None:
    """How long to wait before the next try; None = do not retry."""
    if _is_refused(outcome):  # safe for any request: nothing was done
        return outcome.retry_after_s if outcome.retry_after_s <= LONGEST_PAUSE_S else None
    has_failed = isinstance(outcome, TransportError) or outcome.status in AWAY
    return FIRST_PAUSE_S * 4**number if has_failed and request.repeatable else None


def _is_early(request: ApiRequest[T], result: T, took_s: float) -> bool:
    """Whether no job came, without a wait for one: clients that poll in a loop would ask without a pause."""
    due_s = EARLY_S if request.wait_s is None else min(EARLY_S, request.wait_s / 2)
    return request.polls and took_s < due_s and not result


def _is_refused(outcome: Answer | TransportError) -> TypeGuard[Answer]:
    return isinstance(outcome, Answer) and outcome.status == TooMany.status


def _result(
    request: ApiRequest[T], outcome: Answer | TransportError, lost: Answer | TransportError | None
) -> T:
    if isinstance(outcome, TransportError):
        raise outcome
    try:
        code, message, data = _envelope(outcome.body)
        if lost is not None and request.gone_is_done:
            code, data = _without_gone(code), _each_without_gone(data)
        if code == Code.OK:
            return request.read(data)
    except STRANGE as error:
        if outcome.status == TooLarge.status:  # of a proxy before the server
            said = f"HTTP status {outcome.status}: the request is larger than a proxy lets through"
            raise TooLarge(Text(said, said)) from error
        is_away = outcome.status in AWAY
        what = (
            "a proxy got no answer from the server"
            if is_away
            else "this is not a delay-queue server"
        )
        raise TransportError(
            f"{what}: HTTP status {outcome.status}, {outcome.body[:80]!r}"
        ) from error
    if lost is not None and request.ends_receipt and code in ENDED:
        return _result(request, lost, None)
    if code == TooMany.code:
        raise TooMany(Text(message, message), retry_after_s=outcome.retry_after_s)
    raise ERRORS.get(code, QueueError)(Text(message, message))


def _envelope(body: bytes) -> tuple[int, str, Any]:
    """The code, the message and the data of an answer. Raises one of STRANGE if it is not ours."""
    envelope = json.loads(body)
    code, message = envelope["code"], envelope["message"]
    if not (isinstance(code, int) and isinstance(message, str)):
        raise TypeError(f"code {code!r}, message {message!r}")
    return code, message, envelope["data"]


def _without_gone(code: int) -> int:
    return Code.OK if code == NoSuchJob.code else code


def _each_without_gone(data: Any) -> Any:
    """The data of a batch, in which each job has its own code: those that are gone are done."""
    return data and [each | {"code": _without_gone(each["code"])} for each in data]


class Blocking(Protocol):
    """What sends a request and returns its result."""

    def send(self, request: ApiRequest[T]) -> T:
        """Send a request."""
        ...


class Awaited(Protocol):
    """What sends a request and returns a coroutine of its result."""

    def send(self, request: ApiRequest[T]) -> Coroutine[Any, Any, T]:
        """Send a request."""
        ...


B = TypeVar("B", bound="Blocking")
A = TypeVar("A", bound="Awaited")


class verb(Generic[P, T]):  # noqa: N801  # used as a decorator
    """A method of both clients, written once as a function that builds an ApiRequest[T].

    Client's method returns T, AsyncClient's a coroutine of T; `give_methods` replaces the verb by it.
    """

    def __init__(self, build: Callable[Concatenate[Any, P], ApiRequest[T]]) -> None:
        self.build = build

    if TYPE_CHECKING:

        @overload
        def __get__(
            self, client: None, owner: type[A]
        ) -> Callable[Concatenate[A, P], Coroutine[Any, Any, T]]: ...
        @overload
        def __get__(self, client: None, owner: type[B]) -> Callable[Concatenate[B, P], T]: ...
        @overload
        def __get__(self, client: Awaited, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
        @overload
        def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
        def __get__(self, client: Blocking | Awaited | None, owner: type) -> Any: ...


def give_methods(client: type[Any]) -> None:
    """Replace each verb that the class inherits by a method.

    The methods are plain functions that return the request's result, so help(), inspect.signature() and mocks with a
    spec work as if they were written by hand.
    """
    make = _awaited if inspect.iscoroutinefunction(client.send) else _blocking
    for name in dir(client):
        found = inspect.getattr_static(client, name)
        if isinstance(found, verb):
            method = make(found.build)
            method.__module__ = client.__module__
            method.__qualname__ = f"{client.__qualname__}.{name}"
            setattr(client, name, method)


def _blocking(build: Callable[..., ApiRequest[T]]) -> Callable[..., T]:
    def method(client: Blocking, *args: Any, **kwargs: Any) -> T:
        return client.send(build(client, *args, **kwargs))

    return _signed(method, build)


def _awaited(build: Callable[..., ApiRequest[T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    async def method(client: Awaited, *args: Any, **kwargs: Any) -> T:
        return await client.send(build(client, *args, **kwargs))

    return _signed(method, build)


def _signed(method: M, build: Callable[..., Any]) -> M:
    """Give the method the name, docstring and signature of `build`, annotated with "ApiRequest[RESULT]"."""
    functools.update_wrapper(method, build)
    result = build.__annotations__["return"].removeprefix("ApiRequest[").removesuffix("]")
    method.__annotations__ = build.__annotations__ | {"return": result}
    signature = inspect.signature(build).replace(return_annotation=result)
    method.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it from any callable
    return method
