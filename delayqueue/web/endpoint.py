"""An endpoint, declared once: what the server, /openapi.json and the tests know about it is read from its handler."""

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from enum import StrEnum
from inspect import signature
from types import ModuleType, UnionType
from typing import (
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic_core import to_jsonable_python

from delayqueue.domain.access import Role
from delayqueue.errors import (
    DONE,
    BadJson,
    Invalid,
    NoSuchJob,
    QueueError,
    StaleReceipt,
    Text,
    Unavailable,
    WrongState,
)
from delayqueue.net.later import Later
from delayqueue.web.auth import Roles
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.requests import Request

# The admin role may call everything.
OPEN: Final[Roles] = None
PRODUCERS: Final[Roles] = frozenset({Role.PRODUCE})
CONSUMERS: Final[Roles] = frozenset({Role.CONSUME})
BOTH: Final = frozenset({Role.PRODUCE, Role.CONSUME})
VIEWERS: Final[Roles] = frozenset({Role.VIEW})
HOLDERS: Final[Roles] = frozenset({Role.PRODUCE, Role.CONSUME, Role.VIEW})
ADMINS: Final[Roles] = frozenset({Role.ADMIN})
ALL: Final[Roles] = frozenset(Role)

Errors = tuple[type[QueueError], ...]
BAD: Final[Errors] = (Invalid, BadJson, Unavailable)  # errors that any verb with a body can raise
OF_JOB: Final[Errors] = (*BAD, NoSuchJob, WrongState)
OF_RESERVED: Final[Errors] = (*OF_JOB, StaleReceipt)

AS_POST: Final = ("DELETE", "PATCH", "PUT")

Handler = Callable[..., Awaitable[object]]
Run = Callable[[Any, Any, HttpRequest], Awaitable[object]]  # an Api, what was asked, a request
Data = TypeVar("Data")


class Stability(StrEnum):
    """What a version number promises of an endpoint: docs/stability.md."""

    STABLE = "stable"
    SETTLING = "settling"


class Tag(NamedTuple):
    """A group of endpoints in /openapi.json: those of one file."""

    name: str
    description: str


class InvalidItem(NamedTuple):
    """An invalid item of an array, and why."""

    item: object
    error: QueueError


@dataclass(slots=True)
class Large(Generic[Data]):
    """Data that can be megabytes, in a list, an iterator or an object with one: written while others get their turn."""

    data: Data


@dataclass(slots=True)
class Returnable(Generic[Data]):
    """Data that must arrive: if the client is gone, `undelivered` is called, unless there is nothing to give back."""

    data: Data
    undelivered: Callable[[], None] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoint:
    """An endpoint. `name` is its handler's; `run` calls the handler with everything that it may want.

    `takes` is the model of its body, None = it has none; with `takes_many` also an array of them. If one of its methods
    is GET, the body may be left out. `gives` is the type of the envelope's `data`, HttpResponse = it answers by itself.
    `errors` are its own, in addition to those that any request can get. `asks` and `answers` are an example.
    """

    name: str
    path: str
    methods: tuple[str, ...]
    roles: Roles  # who may call it if tokens are set
    summary: str
    run: Run
    takes: type[Request] | None = None
    takes_many: bool = False
    gives: Any = HttpResponse
    errors: Errors = ()
    asks: dict[str, Any] | None = None
    answers: Any = None
    done: Text = DONE  # the message of success
    stability: Stability = Stability.SETTLING
    tag: Tag | None = None

    @property
    def accepts(self) -> tuple[str, ...]:
        """The methods that it answers, including unadvertised ones.

        HEAD is answered like GET, without the body. The original took any method with a body. Not GET: pages of other
        sites can make a browser send it.
        """
        others: tuple[str, ...] = ("HEAD",) if "GET" in self.methods else ()
        if self.takes is not None and self.takes.of_original:
            others = AS_POST
        return (*self.methods, *others)

    def allows(self, roles: Iterable[Role]) -> bool:
        """Whether a client with these roles may use the endpoint."""
        return self.roles is None or not {Role.ADMIN, *self.roles}.isdisjoint(roles)


def endpoint(  # noqa: PLR0913  # a declaration, in which all but path and roles is named
    path: str,
    roles: Roles,
    *,
    methods: tuple[str, ...] = ("POST",),
    errors: Errors = BAD,
    asks: dict[str, Any] | None = None,
    answers: Any = None,
    done: Text = DONE,
    stability: Stability = Stability.SETTLING,
) -> Callable[[Handler], Endpoint]:
    """Make a handler an endpoint.

    Its parameters are `api`, and if it needs them, `asked`: its request model, and `request`: the HttpRequest. It
    returns the envelope's `data`, possibly in a Large or a Returnable, or an HttpResponse; its annotation says which.
    A handler that only needs one call is no coroutine and returns the data as a Later, so that it needs no task.
    The first line of its docstring says what it does.
    """

    def declare(handler: Handler) -> Endpoint:
        types = get_type_hints(handler)
        gives = types["return"]
        takes, takes_many = _taken(types.get("asked"))
        return Endpoint(
            name=handler.__name__,
            path=path,
            methods=methods,
            roles=roles,
            summary=_summary(handler),
            run=_uniform(handler),
            takes=takes,
            takes_many=takes_many,
            gives=_data(gives),
            errors=errors,
            asks=asks,
            answers=to_jsonable_python(answers),
            done=done,
            stability=stability,
            tag=_tag(sys.modules[handler.__module__]),
        )

    return declare


def endpoints_of(families: Iterable[ModuleType]) -> tuple[Endpoint, ...]:
    """The endpoints of these modules, in order."""
    return tuple(
        found for family in families for found in vars(family).values() if type(found) is Endpoint
    )


def _tag(module: ModuleType) -> Tag:
    name = module.__name__.rpartition(".")[2].replace("_", " ")
    return Tag(name, (module.__doc__ or "").partition("\n")[0])


def _taken(asked: Any) -> tuple[type[Request] | None, bool]:
    """The model in an annotation, and whether it allows an array, too: Model | list[Model | InvalidItem]."""
    if asked is None or isinstance(asked, type):
        return asked, False
    model, _array = get_args(asked)
    return model, True


def _data(gives: Any) -> Any:
    """The type of the data, without its wrapper."""
    if get_origin(gives) in {Large, Later, Returnable, Coroutine}:
        return _data(get_args(gives)[-1])
    if get_origin(gives) in {UnionType, Union}:  # a generic makes it the latter
        return Union[tuple(map(_data, get_args(gives)))]  # noqa: UP007  # the only way to make one of a tuple
    return gives


def _summary(handler: Handler) -> str:
    """The docstring's first line without its capital letter and full stop."""
    line = (handler.__doc__ or "").partition("\n")[0].removesuffix(".")
    return line[:1].lower() + line[1:]


def _uniform(handler: Handler) -> Run:
    """The handler with a uniform signature."""
    match tuple(signature(handler).parameters):
        case ("api",):
            return lambda api, _asked, _request: handler(api)
        case ("api", "asked"):
            return lambda api, asked, _request: handler(api, asked)
        case ("api", "request"):
            return lambda api, _asked, request: handler(api, request)
        case ("api", "asked", "request"):
            return handler
        case other:
            raise TypeError(f"{handler.__name__}: unknown parameters: {other}")
