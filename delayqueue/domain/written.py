"""What server processes write for each other. No IO."""

import json
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


def defined(kind: type[Any], definition: str) -> dict[str, Any]:
    """The members of a dataclass that a definition (JSON) has.

    Raises ValueError if it is no JSON, TypeError if it is no object or has something else for a text or a number.
    """
    found = known(kind, json.loads(definition))
    for each in fields(kind):
        if each.name in found and each.type in _PLAIN and type(found[each.name]) is not each.type:
            raise TypeError(f"{each.name} is a {type(found[each.name]).__name__}")
    return found


_PLAIN = (str, int, bool)
