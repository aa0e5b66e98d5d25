"""Makes objects of what the server answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader: TypeAlias = Callable[[Any], Any]


def nothing(_: Any) -> None:
    """The result of a verb that returns nothing."""
    return


def count_of(data: Any) -> int:
    """The result of a verb that returns a number of jobs."""
    count: int = member(data, "count", int)
    return count


def member(data: Any, name: str, kind: Any) -> Any:
    """A member of an answer. Raises TypeError or KeyError if it is not there, or not of the annotation `kind`."""
    value = data[name]
    if not isinstance(value, _plain(kind)):
        raise TypeError(f"{name} is {value!r}")
    return value


def listed(data: Any) -> list[Any]:
    """An answer that is a list. Raises TypeError if it is none."""
    if not isinstance(data, list):
        raise TypeError(f"a list was expected, not {data!r}")
    return data


def each(kind: type[T], data: Any) -> list[T]:
    """Build a list of an answer's objects. Raises TypeError or ValueError if they have another shape."""
    return [read(kind, one) for one in listed(data)]


def read(kind: type[T], data: Any) -> T:
    """Build one of the classes in answers/; members that only a newer server knows are ignored.

    Raises TypeError or ValueError if a member is missing or of another type.
    """
    if not isinstance(data, dict):
        raise TypeError(f"an object was expected, not {data!r}")
    found = {}
    for name, reader in _members(kind).items():  # type: ignore[arg-type]  # a class is hashable
        if name in data:
            try:
                found[name] = reader(data[name])
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
    return kind(**found)


def read_page(kind: type[T], listing: str, data: Any) -> T:
    """Build a page of an answer; the list of a server that has no pages is the only one. Errors as in read()."""
    return read(kind, {listing: data, "cursor": ""} if isinstance(data, list) else data)


def read_or_none(kind: type[T], data: Any) -> T | None:
    """Build one of the classes in answers/; None stays None."""
    return None if data is None else read(kind, data)


@cache
def _members(kind: type) -> dict[str, Reader]:
    """What reads each member."""
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _reader(hint: Any) -> Reader:
    """What reads a value of this annotation; it raises TypeError or ValueError if the value is another."""
    if isinstance(hint, UnionType) and NoneType in get_args(hint):
        one = _reader(Union[tuple(part for part in get_args(hint) if part is not NoneType)])  # noqa: UP007
        return lambda value: None if value is None else one(value)
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in {list, tuple}:
        element = parts[0]
        read_all = partial(each, element) if _is_answer(element) else listed
        return read_all if origin is list else lambda value: tuple(read_all(value))
    if _is_answer(hint):
        return partial(read, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return partial(_checked, _plain(hint))


def _is_answer(hint: Any) -> TypeGuard[type[Any]]:
    return isinstance(hint, type) and is_dataclass(hint)


def _checked(kinds: tuple[type, ...], value: Any) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"it is {value!r}")
    return value


def _plain(hint: Any) -> tuple[type, ...]:
    """The types of the values that this annotation allows: (int, float) for float."""
    if hint is Any:
        return (object,)
    if isinstance(hint, UnionType):
        return tuple(one for part in get_args(hint) for one in _plain(part))
    return (int, float) if hint is float else (get_origin(hint) or hint,)
