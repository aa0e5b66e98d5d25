"""Reads the JSON of requests into their models."""

import re
from typing import Final, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from delayqueue.errors import BadJson, Invalid, Text, TooLarge
from delayqueue.job import MAX_BATCH
from delayqueue.web.requests import Request

# Members of all objects and arrays together: an unknown one takes a microsecond, and all are read in one go.
MOST_MEMBERS: Final = 20_000
MOST_MEMBERS_OF_ARRAY: Final = 100_000
# A text, also one that does not end: so the search never begins anew within it.
TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)

# What pydantic says of a value, for all types that the models have.
KINDS: Final = {
    "string_type": Text("字符串", "a string"),
    "int_type": Text("整数", "an integer"),
    "float_type": Text("数字", "a number"),
    "finite_number": Text("有限的数字", "a finite number"),
    "list_type": Text("数组", "an array"),
    "model_type": Text("对象", "an object"),
}
CHOICES: Final = {"float", "str"}  # the last part of a place where one of several types may stand
PLACE: Final = re.compile(r"at line (\d+) column (\d+)")

Model = TypeVar("Model", bound=Request)


def parse(model: type[Model], raw: bytes) -> Model:
    """Read one JSON object. BadJson names the first field that does not fit; TooLarge if it has too many members."""
    _check_members(raw, MOST_MEMBERS)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _bad_json(error) from None


def parse_item(model: type[Model], item: object) -> Model:
    """Read one element of an array that was read already."""
    try:
        return model.model_validate(item)
    except ValidationError as error:
        raise _bad_json(error) from None


def parse_array(raw: bytes) -> list[object]:
    """Read a JSON array of 1 to 1000 elements; what they are is not looked at."""
    _check_members(raw, MOST_MEMBERS_OF_ARRAY)
    try:
        items = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise BadJson(_no_json(str(error))) from None
    if not isinstance(items, list) or not items:
        raise BadJson(Text("解析json失败: 需要非空数组", "an array of jobs must not be empty"))
    if len(items) > MAX_BATCH:
        raise Invalid(
            Text(f"一次最多{MAX_BATCH}个job", f"{len(items)} jobs: at most {MAX_BATCH} in a call")
        )
    return items


def is_array(raw: bytes) -> bool:
    """Whether the JSON text is an array."""
    return raw[:64].lstrip()[:1] == b"["


def in_lower_case(asked: Model) -> Model:
    """The same with `Topic` or `TTR` as `topic` and `ttr`, as Go reads them. BadJson as in parse().

    A field in its own spelling wins; of several others the last one, as in Go.
    """
    try:
        return _in_lower_case(asked)
    except ValidationError as error:
        raise _bad_json(error) from None


def _check_members(raw: bytes, most: int) -> None:
    if len(raw) < most or raw.count(b",") < most:
        return
    names_and_values = 2 * most
    rest, texts = TEXT.subn(b"", raw, count=names_and_values)
    if texts == names_and_values or rest.count(b",") >= most:
        raise TooLarge(
            Text(f"请求的JSON最多{most}个成员", f"the request's JSON: at most {most} members")
        )


def _in_lower_case(asked: Model) -> Model:
    exact = {
        name: value
        for name, value in asked.__dict__.items()
        if name in asked.model_fields_set and value is not None
    }
    others = {}
    for name, value in (asked.__pydantic_extra__ or {}).items():
        field = name.casefold()
        is_field = field in type(asked).model_fields and field not in exact
        others[field if is_field else name] = value
    read = type(asked).model_validate(exact | others)
    for name, value in read.__dict__.items():
        if isinstance(value, Request) and value.unknown:
            setattr(read, name, _in_lower_case(value))
    return read


def _bad_json(error: ValidationError) -> BadJson:
    """The first field that does not fit, and what may stand there."""
    first, *others = error.errors(include_url=False, include_input=False)
    if first["type"] == "json_invalid":
        return BadJson(_no_json(first["ctx"]["error"]))
    place, kinds = list(first["loc"]), [first["type"]]
    if place and place[-1] in CHOICES:
        place.pop()
        kinds += [other["type"] for other in others if list(other["loc"][:-1]) == place]
    field = ".".join(map(str, place))
    zh = "或".join(KINDS[kind].zh for kind in kinds)
    en = " or ".join(KINDS[kind].en for kind in kinds)
    return BadJson(
        Text(
            f"解析json失败: {field} 须为{zh}" if field else f"解析json失败: 须为{zh}",
            f"{field}: must be {en}" if field else f"must be {en}",
        )
    )


def _no_json(error: str) -> Text:
    """What the parser says, which speaks English: in Chinese the place will do."""
    place = PLACE.search(error)
    where = f"第{place[1]}行第{place[2]}列有误" if place else "不是有效的json"
    return Text(f"解析json失败: {where}", f"not valid JSON: {error}")
