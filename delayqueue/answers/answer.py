"""How the data of an answer is declared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar, dataclass_transform

T = TypeVar("T")

# Of a member that not every answer has. One with only a default is left out by servers that do not know it yet.
OPTIONAL: Final[Mapping[str, bool]] = {"nullable": True}
NEVER_NULL: Final[Mapping[str, bool]] = {
    "nullable": False
}  # optional, too: None stands for its absence
LEFT_OUT: Final[Any] = ...  # instead of a value: the server does not send this member


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def answer(name: str = "", *, kw_only: bool = False) -> Callable[[type[T]], type[T]]:
    """Make a class the data of an answer; `name` is what Python programs call it, if that is another.

    Type checkers refuse assignments to its members. Python does not, because a frozen dataclass takes three times as
    long to create, and some calls answer with hundreds.
    """

    def declare(kind: type[T]) -> type[T]:
        made = dataclass(slots=True, unsafe_hash=True, kw_only=kw_only)(kind)
        if name:
            made.__repr__ = lambda self: f"{name}({_shown(self)})"  # type: ignore[method-assign]
        return made

    return declare


def members_of(data: Any) -> dict[str, Any]:
    """The members of an answer that are sent."""
    members = ((each.name, getattr(data, each.name)) for each in fields(data))
    return {name: value for name, value in members if value is not LEFT_OUT}


def _shown(data: Any) -> str:
    return ", ".join(f"{each.name}={getattr(data, each.name)!r}" for each in fields(data))
