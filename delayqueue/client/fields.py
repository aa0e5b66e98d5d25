"""Helpers for the fields of requests and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

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
    count: int = data["count"]
    return count


def details(data: dict[str, Any]) -> JobDetails:
    """Build JobDetails from an answer."""
    known: dict[str, Any] = {
        "state": State(data["state"]),
        "tags": tuple(data["tags"]),
        "attempts": tuple(read(Attempt, attempt) for attempt in data["attempts"]),
        "results": tuple(read(Result, result) for result in data["results"]),
    }
    if data.get("retry") is not None:
        known["retry"] = tuple(data["retry"])
    return read(JobDetails, data | known)


def read(kind: type[T], data: dict[str, Any]) -> T:
    """Build a dataclass from an answer; fields that only a newer server knows are ignored."""
    known: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]  # all are dataclasses with slots
    return kind(**{name: data[name] for name in known if name in data})
