"""What server processes write for each other. No IO."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def read(kind: type[Kind], written: Mapping[str, Any]) -> Kind:
    """Parse a dataclass that another server wrote. Raises TypeError if a member is missing that has no default."""
    return kind(**known(kind, written))


def known(kind: type[Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a dataclass that another server wrote; those that only a newer version knows are left out."""
    return {each.name: written[each.name] for each in fields(kind) if each.name in written}
