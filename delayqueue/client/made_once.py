"""made_once: a property that is made at its first use, and only once, however many threads use it first."""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class made_once(cached_property[T]):  # noqa: N801  # used as a decorator
    """A cached_property with a lock, which Python's own has lost with 3.12. It may be set to something else."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        super().__init__(make)
        self._made_by_one = RLock()

    if not TYPE_CHECKING:  # type checkers read that of cached_property

        def __get__(self, instance, owner=None):
            """What was made; what is in the object's __dict__ already is found without this."""
            with self._made_by_one:
                return super().__get__(instance, owner)
