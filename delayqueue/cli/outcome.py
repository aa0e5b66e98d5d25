"""What an answer of the server comes to: what people read of it, and the exit status."""

from collections.abc import Callable
from typing import Any

from delayqueue.cli import tables
from delayqueue.cli.verb import DONE, REFUSED


def readable(data: Any, show: Callable[[Any], str]) -> str:
    """The answer for people."""
    if data is None:
        return "ok"
    each = _each(data)
    if isinstance(each, list) and any("code" in one for one in each if one):
        return tables.outcomes(each)
    return show(data)


def _each(data: Any) -> Any:
    """What became of each of many jobs, where the answer counts them, too."""
    is_counted = isinstance(data, dict) and {"count", "results"} <= data.keys()
    return data["results"] if is_counted else data


def is_empty(data: Any) -> bool:
    """Whether there was nothing, or one of many was not there."""
    return data in (None, [], {"count": 0}) or (isinstance(data, list) and None in data)


def status(data: Any) -> int:
    """The exit status: one of many refused is refused."""
    each = _each(data)
    codes = [one.get("code") for one in each] if isinstance(each, list) else []
    return REFUSED if any(codes) else DONE
