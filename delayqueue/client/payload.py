"""Bodies: text as it is, everything else as plain JSON, which other languages read as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar, Final, Protocol, TypeAlias
from uuid import UUID


class Dataclass(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Model(Protocol):
    """A model of pydantic."""

    def model_dump_json(self) -> str:
        """Itself as JSON."""
        ...


Payload: TypeAlias = str | Mapping[str, object] | list[Any] | tuple[Any, ...] | Dataclass | Model


def body_of(payload: Payload) -> str:
    """The body that says it. Raises TypeError or ValueError if JSON cannot."""
    if isinstance(payload, str):
        return payload
    if hasattr(payload, "model_dump_json"):
        return payload.model_dump_json()
    return json.dumps(
        payload, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def _plain(value: Any) -> Any:
    """What JSON has for it; such that pydantic makes the same of it again."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    for kinds, plain in PLAIN:
        if isinstance(value, kinds):
            return plain(value)
    raise TypeError(f"a {type(value).__name__} has no place in a body, which is JSON")


PLAIN: Final[tuple[tuple[tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((date, time), lambda value: value.isoformat()),  # a datetime is a date
    ((timedelta,), lambda value: value.total_seconds()),
    ((Decimal, UUID, PurePath), str),
    ((Enum,), lambda value: value.value),
    ((Mapping,), dict),
    ((Set,), list),
)
