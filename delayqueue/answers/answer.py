"""How the data of an answer is declared."""

from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar, dataclass_transform

T = TypeVar("T")

# instead of the value of an omittable member: the server does not send it
LEFT_OUT: Final[Any] = ...


def omittable(*, nullable: bool = False, **options: Any) -> Any:
    """A member that not every answer has; the client reads its default instead. `nullable`: null is another value.

    Options as for field(). A member with a plain default is in every answer of this version: earlier servers do not
    know it.
    """
    return field(**options, metadata={"nullable": nullable})


def left_out(kind: type) -> dict[str, Any]:
    """All omittable members of an answer, left out."""
    return {each.name: LEFT_OUT for each in fields(kind) if "nullable" in each.metadata}


@dataclass_transform(frozen_default=True, field_specifiers=(field, omittable))
def answer(kind: type[T]) -> type[T]:
    """Make a class the data of an answer.

    Type checkers refuse assignments to its members. Python does not, because a frozen dataclass takes three times as
    long to create, and some calls answer with hundreds.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


def members_of(data: Any) -> dict[str, Any]:
    """The members of an answer that are sent."""
    members = ((each.name, getattr(data, each.name)) for each in fields(data))
    return {name: value for name, value in members if value is not LEFT_OUT}


def seconds(ms: int | None) -> float | None:
    """Unix milliseconds as unix seconds."""
    return None if ms is None else ms / 1000
