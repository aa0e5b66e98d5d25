"""What can be a handler, and what it may return: nothing whose work has not been done."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_LAZY: Final = (partial, map, filter, zip)


def check_runs(handler: Callable[..., Any]) -> None:
    """Raises ValueError if a call of the handler would run nothing of it, because it has a `yield`."""
    call = getattr(type(handler), "__call__", None)  # noqa: B004  # of an object
    if any(map(_is_generator_function, (handler, call))):
        raise ValueError("has a yield: a call would make a generator and run nothing; use return")


def check_done(returned: object) -> None:
    """Raises TypeError if a handler returned something that still has to be run, as a generator or a function."""
    is_lazy = isinstance(returned, _LAZY) or any(
        is_one(returned)
        for is_one in (
            inspect.isgenerator,
            inspect.isasyncgen,
            inspect.isawaitable,
            inspect.isroutine,
        )
    )
    if not is_lazy:
        return
    if inspect.iscoroutine(returned):
        returned.close()  # otherwise Python warns that it was never awaited
    raise TypeError(f"it returned a {type(returned).__name__}, which nothing runs")


def _is_generator_function(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
