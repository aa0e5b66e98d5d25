"""How the classes in answers/ are written as JSON, and what /openapi.json says about them."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from operator import is_
from types import NoneType, UnionType
from typing import Any, Final, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic_core import CoreSchema, SchemaSerializer, to_json
from pydantic_core.core_schema import (
    any_schema,
    dataclass_args_schema,
    dataclass_field,
    dataclass_schema,
    int_schema,
    str_schema,
)
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from delayqueue.answers import jobs, schedules, servers, subscribers, topics
from delayqueue.answers.answer import LEFT_OUT

ANSWERS: Final = tuple(
    kind
    for module in (jobs, topics, subscribers, schedules, servers)
    for kind in vars(module).values()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
)

# A value of any other type is looked at when it is written; a member of an enumeration, even of ints, takes eight times
# as long then.
ANY: Final = any_schema()
SCHEMAS: Final[Mapping[Any, CoreSchema]] = {str: str_schema(), int: int_schema()}


def _serializer(kind: type[Any]) -> SchemaSerializer:
    """What pydantic writes an answer with: a third of the time that it takes for any dataclass."""
    members = [
        dataclass_field(
            each.name,
            SCHEMAS.get(each.type, ANY),
            serialization_exclude_if=partial(is_, LEFT_OUT) if each.metadata else None,
        )
        for each in fields(kind)
    ]
    names = [each.name for each in fields(kind)]
    return SchemaSerializer(
        dataclass_schema(kind, dataclass_args_schema(kind.__name__, members), names, slots=True)
    )


for _kind in ANSWERS:
    _kind.__pydantic_serializer__ = _serializer(_kind)  # type: ignore[attr-defined]  # pydantic looks for it


# The JSON of anything that may hold answers; an invalid id comes back as it was sent.
as_json: Final = partial(to_json, inf_nan_mode="null")


def described(hint: Any) -> Any:
    """The annotation with a TypedDict instead of each answer: its schema says which members are always there."""
    if hint in ANSWERS:
        return _typed_dict(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return str  # later versions may have more values
    parts = tuple(map(described, get_args(hint)))
    if not parts:
        return hint
    if get_origin(hint) in {UnionType, Union}:
        return Union[parts]  # noqa: UP007  # the only way to make one of a tuple
    return get_origin(hint)[parts]


@cache
def _typed_dict(kind: type[Any]) -> Any:
    hints = get_type_hints(kind)
    members = {}
    for each in fields(kind):
        hint = described(hints[each.name])
        if each.metadata and not each.metadata["nullable"]:
            hint = _without_none(hint)
        members[each.name] = NotRequired[hint] if each.metadata else hint
    made = TypedDict(kind.__name__, members)  # type: ignore[misc]  # made of fields
    made.__doc__ = kind.__doc__
    return made


def _without_none(hint: Any) -> Any:
    parts = get_args(hint | None)
    return Union[tuple(part for part in parts if part is not NoneType)]  # noqa: UP007  # of a tuple
