"""Arguments that take several values. A text is not several: its letters are never what is meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Collected(Protocol[T_co]):
    """A list, a tuple, a set, the keys of a dict. Neither str nor bytes: they contain only their own kind."""

    def __iter__(self) -> Iterator[T_co]:
        """Each value."""
        ...

    def __contains__(self, value: object, /) -> bool:
        """Whether the collection has this value, of whatever type."""
        ...


Several: TypeAlias = Collected[T] | Iterator[T]  # the latter is what generators are


def several(name: str, given: Iterable[T]) -> list[T]:
    """What is given as the argument `name`, as a list. Raises TypeError if it is a text."""
    if isinstance(given, (str, bytes, bytearray)):
        raise TypeError(f"{name}={given!r} is a text: write {name}=[{given!r}]")
    return list(given)
