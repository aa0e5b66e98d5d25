"""Job bodies: strings as they are, everything else as plain JSON, which other languages can read, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
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
    """A pydantic model."""

    def model_dump_json(self, *, by_alias: bool) -> str:
        """The model as JSON, by the names that its fields have there."""
        ...


Payload: TypeAlias = str | Mapping[str, object] | list[Any] | tuple[Any, ...] | Dataclass | Model


def body_of(payload: Payload) -> str:
    """The body for a payload. Raises TypeError or ValueError if it cannot be JSON, or not without losing a part."""
    if isinstance(payload, str):
        return payload
    if hasattr(payload, "model_dump_json"):
        return payload.model_dump_json(by_alias=True)
    try:
        return _body(payload)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None


def _body(payload: Any) -> str:
    with suppress(TypeError):  # json has no hook for keys, and to look at each of them takes longer
        body = _written(payload, _with_text_keys)
        if _has_text_keys(payload):
            return body
    return _written(_keyed(payload), lambda value: _keyed(_plain(value)))


def _written(payload: Any, default: Callable[[Any], Any]) -> str:
    return json.dumps(
        payload, default=default, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def _has_text_keys(value: Any) -> bool:
    """Whether all keys in the value, which JSON can hold, are texts. Of others, 1 and "1" are one in JSON."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if not all(isinstance(key, str) for key in part):
                return False
            part = part.values()
        elif not isinstance(part, (list, tuple)):
            continue
        parts += [one for one in part if isinstance(one, (dict, list, tuple))]
    return True


def _with_text_keys(value: Any) -> Any:
    """The JSON form of a value. Raises TypeError if a key in it is no text."""
    plain = _plain(value)
    if not _has_text_keys(plain):
        raise TypeError("a key is no text")
    return plain


def _keyed(value: Any) -> Any:
    """The value with the keys that JSON has, which are texts. Raises TypeError if two keys are the same then."""
    if isinstance(value, dict):
        keyed = {_key(key): _keyed(one) for key, one in value.items()}
        if len(keyed) < len(value):
            raise TypeError("two keys of a dict are the same in a body, which is JSON")
        return keyed
    if isinstance(value, (list, tuple)):
        return [_keyed(one) for one in value]
    return value


def _key(key: Any) -> str:
    if isinstance(key, PLAIN_KEYS) and not isinstance(key, KEYS):
        key = _plain(key)
    if not isinstance(key, KEYS):
        raise TypeError(f"a {type(key).__name__} cannot be a key in a body, which is JSON")
    return str(next(iter(json.loads(json.dumps({key: None}, allow_nan=False)))))


def _plain(value: Any) -> Any:
    """The JSON form of a value, from which pydantic makes an equal value."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    for kinds, plain in PLAIN:
        if isinstance(value, kinds):
            return plain(value)
    raise TypeError(f"a {type(value).__name__} has no place in a body, which is JSON")


KEYS: Final = (str, int, float, bool, type(None))
PLAIN_KEYS: Final = (date, time, Decimal, UUID, PurePath, Enum)
PLAIN: Final[tuple[tuple[tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((date, time), lambda value: value.isoformat()),  # before `date`: a datetime is a date, too
    ((timedelta,), lambda value: value.total_seconds()),
    ((Decimal, UUID, PurePath), str),
    ((Enum,), lambda value: value.value),
    ((Mapping,), dict),
    ((Set,), list),
)
