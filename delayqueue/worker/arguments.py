"""The arguments of a handler, by its signature."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from delayqueue.answers.jobs import ReservedJob
from delayqueue.worker.handled_job import HandledJob
from delayqueue.worker.verdict import Bury

Argument: TypeAlias = Callable[[ReservedJob, Any], Any]  # made of the job and the context
Arguments: TypeAlias = Callable[[ReservedJob, Any], Sequence[Any]]

JOBS: Final = (ReservedJob, HandledJob)
JOB: Final = (inspect.Parameter.empty, *JOBS, Any, object)
# for a dict or a list: what JSON has
UNCHECKED: Final = ((), (str, Any), (str, object), (Any,), (object,))
MOST_MISTAKES: Final = 5  # in a body, that a message lists


def arguments_of(handler: Callable[..., Any]) -> Arguments:
    """How to make a handler's arguments from a job and the context.

    The first one is the job, or its body as annotated; of the others, a ReservedJob is the job, and one is the context.
    Raises ValueError if it wants something else.
    """
    parameters = required(handler)
    check_call(handler, len(parameters) or 1)
    if not parameters:
        return lambda job, _: (job,)
    first, *others = parameters
    kinds = [_bare(_annotation(handler, one)) for one in others]
    contexts = [one.name for one, kind in zip(others, kinds, strict=True) if kind not in JOBS]
    if len(contexts) > 1:
        raise ValueError(
            f"{name_of(handler)}: takes the job or its body, a ReservedJob and the context, "
            f"but not {' and '.join(contexts)}"
        )
    rest = (_job if kind in JOBS else _context for kind in kinds)
    made = (_first(handler, first), *rest)
    return lambda job, context: [of(job, context) for of in made]


def required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The required arguments; [] if that is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [one for one in parameters if one.kind in positional and one.default is one.empty]


def check_call(function: Callable[..., Any], count: int) -> None:
    """Raises ValueError if a call with so many arguments would fail, as far as that is known."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        arguments = f"{count} argument{'s' * (count > 1)}"
        raise ValueError(f"{name_of(function)}: a call with {arguments} fails: {error}") from None


def _job(job: ReservedJob, _: Any) -> ReservedJob:
    return job


def _context(_: ReservedJob, context: Any) -> Any:
    return context


def _first(handler: Callable[..., Any], parameter: inspect.Parameter) -> Argument:
    kind = annotation_of(handler, parameter)
    if _bare(kind) in JOB:
        return _job
    try:
        read = _reader(kind)
    except ImportError:
        raise ValueError(
            f"{name_of(handler)}: bodies of {_title(kind)} are read by pydantic: pip install pydantic"
        ) from None

    def body(job: ReservedJob, _: Any) -> Any:
        try:
            return read(job.body)
        except ValueError as error:
            raise Bury(f"the body is not a valid {_title(kind)}: {reason_of(error)}") from error

    return body


def annotation_of(handler: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """A parameter's annotation. Raises ValueError if it does not exist when the program runs."""
    kind = _annotation(handler, parameter)
    if isinstance(kind, str):
        raise ValueError(  # noqa: TRY004  # its type is unknown
            f"{name_of(handler)}: {kind} is not known when the program runs; "
            "import it outside of `if TYPE_CHECKING`, and not in a function"
        )
    return kind


def _annotation(handler: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """A parameter's annotation; a str if that cannot be resolved."""
    kind = parameter.annotation
    if not isinstance(kind, str):
        return kind
    one: Any = SimpleNamespace(__annotations__={"it": kind})
    try:
        return get_type_hints(one, globalns=_globals(handler), include_extras=True)["it"]
    except NameError:
        name = kind.rpartition(".")[2]
        return next((one for one in JOBS if one.__name__ == name), kind)


def _bare(kind: Any) -> Any:
    """A type without what Annotated adds to it."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _globals(handler: Any) -> dict[str, Any]:
    function = inspect.unwrap(handler.func if isinstance(handler, partial) else handler)
    if not hasattr(function, "__globals__"):
        function = type(function).__call__
    found: dict[str, Any] = getattr(function, "__globals__", {})
    return found


def _reader(kind: Any) -> Callable[[str], Any]:
    """Makes a value from a body, or raises ValueError if the body does not fit. Raises ImportError without pydantic."""
    if kind is str:
        return str
    base = get_origin(kind) or kind
    if base in (dict, list, Mapping) and get_args(kind) in UNCHECKED:
        return partial(plain, base)
    adapter = import_module("pydantic").TypeAdapter(kind)
    return partial(_text, adapter) if _is_text(kind) else adapter.validate_json


def _is_text(kind: Any) -> bool:
    """Whether all values of this type are texts, which are bodies as they are."""
    base, parts = get_origin(kind), get_args(kind)
    if base is Literal:
        return all(isinstance(one, str) for one in parts)
    if base in {Union, UnionType}:
        return all(map(_is_text, parts))
    if base is Annotated:
        return _is_text(parts[0])
    kind = getattr(kind, "__supertype__", kind)  # of a NewType
    return isinstance(kind, type) and issubclass(kind, str)


def _text(adapter: Any, body: str) -> Any:
    """The value of a type of texts. Raises ValueError if the body is another text."""
    with suppress(ValueError):  # other languages may write it as JSON
        return adapter.validate_json(body)
    return adapter.validate_python(body)


def plain(kind: type[Any], body: str) -> Any:
    """The value of this JSON type that the body is. Raises ValueError if it is another."""
    try:
        found = json.loads(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, kind):
        raise ValueError(f"it is a {type(found).__name__}")  # noqa: TRY004  # of text
    return found


def reason_of(error: ValueError | TypeError) -> str:
    """The reason in one line, without the body's own words."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    mistakes = [
        ": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"])))
        for one in errors(include_url=False, include_input=False, include_context=False)
    ]
    return "; ".join(mistakes[:MOST_MISTAKES])


def _title(kind: Any) -> str:
    kind = _bare(kind)
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def name_of(handler: Callable[..., Any]) -> str:
    """The name of a handler, for a message."""
    return getattr(handler, "__qualname__", repr(handler))
