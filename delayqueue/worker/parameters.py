"""The parameters of a task, and the JSON object that stands for its arguments in a job's body."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, make_dataclass
from functools import partial
from importlib import import_module
from math import isnan
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from delayqueue.client.payload import body_of
from delayqueue.worker.arguments import annotation_of, name_of, plain, reason_of
from delayqueue.worker.verdict import Bury

if TYPE_CHECKING:
    from delayqueue.answers.jobs import ReservedJob

Read: TypeAlias = Callable[[str], dict[str, Any]]
Convert: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
ANY: Final = (inspect.Parameter.empty, Any, object)
# of JSON, so that reading them needs nothing
PLAIN: Final[dict[Any, tuple[type, ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (float, int),
    dict: (dict,),
    dict[str, Any]: (dict,),
    list: (list,),
    list[Any]: (list,),
}


class Parameters:
    """The parameters of one task. Members that a body lacks have their defaults; those of other names are ignored."""

    def __init__(self, task: Callable[..., Any]) -> None:
        """Raises ValueError if an argument has no name in a body, an unknown type, or one that needs pydantic."""
        self.name: str = name_of(task)
        self._signature = inspect.signature(task)
        parameters = self._signature.parameters.values()
        for one in parameters:
            if one.kind not in BY_POSITION:
                raise ValueError(
                    f"{self.name}: {one} cannot be pushed; a task takes its arguments in their order"
                )
        self._required = [one.name for one in parameters if one.default is one.empty]
        self._defaults = {one.name: one.default for one in parameters}
        kinds = {one.name: annotation_of(task, one) for one in parameters}
        is_plain = all(kind in (*ANY, *PLAIN) for kind in kinds.values())
        self._read: Read
        self._convert: Convert  # arguments that a program gives, as a handler would see them
        self._read, self._convert = (
            (partial(_plain, kinds, self._required), dict) if is_plain else self._by_pydantic(kinds)
        )

    @property
    def are_optional(self) -> bool:
        """Whether the task can be called without arguments."""
        return not self._required

    def body_of(
        self, args: Sequence[object], named: Mapping[str, object]
    ) -> tuple[str, dict[str, Any]]:
        """The body for these arguments, and the arguments as the handler will see them, without those left out.

        Raises TypeError if they are not those of the task, or one of them would arrive as another.
        """
        try:
            given = self._signature.bind(*args, **named).arguments
            wanted, body = self._convert(given), _body_of(given)
            got = self._read(body)
            lost = next(filter(None, (loss(wanted[name], got[name], name) for name in given)), "")
        except (TypeError, ValueError) as error:
            lost = reason_of(error)
        except RecursionError:
            lost = "the arguments are nested too deeply"
        if lost:
            raise TypeError(f"{self.name}: {lost}")
        return body, wanted

    def picker(self, choose: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
        """What calls `choose` with those arguments of the task that it names, given or by their defaults.

        Raises ValueError if it names another.
        """
        names = list(inspect.signature(choose).parameters)
        if unknown := [name for name in names if name not in self._defaults]:
            raise ValueError(f"{self.name}: it has no argument {unknown[0]}")
        return lambda given: choose(**{name: (self._defaults | given)[name] for name in names})

    def arguments(self, job: ReservedJob, _context: object) -> list[Any]:
        """The arguments that a job's body stands for. Raises Bury if it stands for none."""
        try:
            found = self._defaults | self._read(job.body or "{}")
        except ValueError as error:
            raise Bury(
                f"the body does not have the arguments of {self.name}: {reason_of(error)}"
            ) from error
        return [found[name] for name in self._defaults]

    def _by_pydantic(self, kinds: dict[str, Any]) -> tuple[Read, Convert]:
        try:
            adapter = import_module("pydantic").TypeAdapter
        except ImportError:
            raise ValueError(
                f"{self.name}: arguments of its types are read by pydantic: pip install pydantic"
            ) from None
        members = [
            (name, Any if kind in ANY else kind, self._field(name)) for name, kind in kinds.items()
        ]
        arguments = adapter(make_dataclass("Arguments", members, kw_only=True))
        return (
            lambda body: vars(arguments.validate_json(body)),
            lambda given: vars(arguments.validate_python(given)),
        )

    def _field(self, name: str) -> Any:
        if name in self._required:
            return field()
        return field(default_factory=partial(self._defaults.get, name))


def _body_of(given: dict[str, Any]) -> str:
    """The body for arguments. Raises TypeError or ValueError, which name the one that has no place in JSON."""
    try:
        return body_of(given)
    except (TypeError, ValueError):
        for name, value in given.items():
            try:
                body_of([value])
            except (TypeError, ValueError) as error:
                raise type(error)(f"{name}: {error}") from None
        raise


def _plain(kinds: dict[str, Any], required: Sequence[str], body: str) -> dict[str, Any]:
    """The members of these names. Raises ValueError if one is missing, or of another type."""
    found: dict[str, Any] = plain(dict, body)
    for name in required:
        if name not in found:
            raise ValueError(f"{name}: Field required")
    members = {name: found[name] for name in kinds if name in found}
    for name, value in members.items():
        wanted = PLAIN.get(kinds[name], (object,))
        # for Python a bool is an int
        if not isinstance(value, wanted) or (int in wanted and isinstance(value, bool)):
            raise ValueError(f"{name}: it is a {type(value).__name__}")
    return members


def loss(given: Any, got: Any, path: str) -> str:
    """The first value that has changed on the way, and where below `path` it is; "" if none has.

    The kind of a collection is the annotation's matter: a tuple may come back as a list.
    """
    if given == got:
        return ""
    given_parts, got_parts = _parts(given), _parts(got)
    if given_parts is None or got_parts is None:
        return "" if _cannot_tell(given, got) else f"{path}: {_became(given, got)}"
    is_object = not isinstance(given, Collection)
    if (is_object and type(given) is not type(got)) or len(given_parts) != len(got_parts):
        return f"{path}: {_became(given, got)}"
    for key, one in given_parts.items():
        if key not in got_parts:
            return f"{path}: its key {key!r} would arrive as another one"
        if found := loss(one, got_parts[key], f"{path}.{key}"):
            return found
    return ""


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """The members of an object or a mapping, the elements of a collection by their number; None = it has none."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if names := getattr(type(value), "model_fields", None):
        return {name: getattr(value, name) for name in names} | (value.model_extra or {})
    if isinstance(value, Mapping):
        return value
    if isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        return dict(enumerate(value))
    return None


def _cannot_tell(given: Any, got: Any) -> bool:
    """Whether nothing more can be known of two values of a type: it has no ==, or both are NaN."""
    if type(given) is not type(got):
        return False
    if isinstance(given, float):
        return isnan(given) and isnan(got)
    return type(given).__eq__ is object.__eq__  # type: ignore[comparison-overlap]  # not for mypy


def _became(given: Any, got: Any) -> str:
    kind, other = type(given).__name__, type(got).__name__
    return f"a {kind} would arrive as {'another one' if other == kind else f'a {other}'}"
