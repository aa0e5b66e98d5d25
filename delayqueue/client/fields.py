"""Helpers for the fields of requests and answers."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from delayqueue.client.jobs import Attempt, JobDetails, Result, seconds, unix
from delayqueue.domain.job import State

if TYPE_CHECKING:
    from delayqueue.client.jobs import Moment, Seconds

T = TypeVar("T")


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None; the server has the defaults of the others."""
    return {name: value for name, value in fields.items() if value is not None}


def in_seconds(length: Seconds | None) -> float | None:
    """A duration in seconds; None stays None."""
    return None if length is None else seconds(length)


def in_unix(moment: Moment | None) -> float | None:
    """A time as unix seconds; None stays None."""
    return None if moment is None else unix(moment)


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


def details(data: dict[str, Any]) -> JobDetails:
    """Build JobDetails from an answer."""
    known: dict[str, Any] = {
        "state": State(data["state"]),
        "tags": tuple(listed(data["tags"])),
        "attempts": tuple(each(Attempt, data["attempts"])),
        "results": tuple(each(Result, data["results"])),
    }
    if data.get("retry") is not None:
        known["retry"] = tuple(listed(data["retry"]))
    return read(JobDetails, data | known)


def listed(data: Any) -> list[Any]:
    """An answer that is a list. Raises TypeError if it is none."""
    if not isinstance(data, list):
        raise TypeError(f"a list was expected, not {data!r}")
    return data


def each(kind: type[T], data: Any) -> list[T]:
    """Build a list of dataclasses from an answer. Raises TypeError if it has another shape."""
    return [read(kind, one) for one in listed(data)]


def read(kind: type[T], data: Any) -> T:
    """Build a dataclass from an answer; members that only a newer server knows are ignored.

    Raises TypeError if one is missing or of another type.
    """
    if not isinstance(data, dict):
        raise TypeError(f"an object was expected, not {data!r}")
    found = {}
    for name, kinds in _members(kind).items():  # type: ignore[arg-type]  # a class is hashable
        if name in data:
            value = found[name] = data[name]
            if not isinstance(value, kinds):
                raise TypeError(f"{name} is {value!r}")
    return kind(**found)


@cache
def _members(kind: type) -> dict[str, tuple[type, ...]]:
    """The types that each member may have."""
    return {name: _plain(hint) for name, hint in get_type_hints(kind).items()}


def _plain(hint: Any) -> tuple[type, ...]:
    """The types of the values that this annotation allows: (list,) for list[int], (int, float) for float."""
    if isinstance(hint, UnionType):
        return tuple(one for part in get_args(hint) for one in _plain(part))
    if hint is float:
        return (int, float)
    return (get_origin(hint) or hint,)
