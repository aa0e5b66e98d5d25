"""The outcome of a call: text for people, and the exit status."""

from collections.abc import Callable
from typing import Any

from delayqueue.cli import tables
from delayqueue.cli.subcommand import DONE, REFUSED


def readable(data: Any, show: Callable[[Any], str]) -> str:
    """The answer for people."""
    if data is None:
        return "ok"
    each = _each(data)
    if isinstance(each, list) and any("code" in one for one in each if one):
        return tables.outcomes(each)
    return show(data)


def _each(data: Any) -> Any:
    """The outcome of each of many jobs, even if the answer also counts them."""
    is_counted = isinstance(data, dict) and {"count", "results"} <= data.keys()
    return data["results"] if is_counted else data


def is_empty(data: Any) -> bool:
    """Whether there was nothing, or one of many did not exist."""
    return data in (None, [], {"count": 0}) or (isinstance(data, list) and None in data)


def status(data: Any) -> int:
    """The exit status; if one of many was refused, the call counts as refused."""
    each = _each(data)
    codes = [one.get("code") for one in each] if isinstance(each, list) else []
    return REFUSED if any(codes) else DONE
