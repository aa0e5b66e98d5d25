"""Whether a value that went through a body and back is what it was."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from math import isnan
from typing import Any


def loss(given: Any, got: Any, path: str) -> str:
    """The first value that has changed on the way, and where below `path` it is; "" if none has.

    The kind of a collection is the annotation's matter: a tuple may come back as a list.
    """
    if given == got:
        return ""
    given_parts, got_parts = _parts(given), _parts(got)
    if given_parts is None or got_parts is None:
        return "" if _cannot_tell(given, got) else f"{path}: {_became(given, got)}"
    is_object = not isinstance(given, Collection)
    if (is_object and type(given) is not type(got)) or len(given_parts) != len(got_parts):
        return f"{path}: {_became(given, got)}"
    for key, one in given_parts.items():
        if key not in got_parts:
            return f"{path}: its key {key!r} would arrive as another one"
        if found := loss(one, got_parts[key], f"{path}.{key}"):
            return found
    return ""


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """The members of an object or a mapping, the elements of a collection by their number; None = it has none."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if names := getattr(type(value), "model_fields", None):
        return {name: getattr(value, name) for name in names} | (value.model_extra or {})
    if isinstance(value, Mapping):
        return value
    if isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        return dict(enumerate(value))
    return None


def _cannot_tell(given: Any, got: Any) -> bool:
    """Whether nothing more can be known of two values of a type: it has no ==, or both are NaN."""
    if type(given) is not type(got):
        return False
    if isinstance(given, float):
        return isnan(given) and isnan(got)
    return type(given).__eq__ is object.__eq__  # type: ignore[comparison-overlap]  # not for mypy


def _became(given: Any, got: Any) -> str:
    kind, other = type(given).__name__, type(got).__name__
    return f"a {kind} would arrive as {'another one' if other == kind else f'a {other}'}"
