"""Parses the JSON of requests into their models, and reports what is invalid or doubtful."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from delayqueue.domain.job import LONG_DELAY_S, MAX_BATCH
from delayqueue.errors import BadJson, BadValue, Invalid, Text, TooLarge, shown
from delayqueue.metrics import REQUEST_WARNINGS, Metrics
from delayqueue.web import warnings
from delayqueue.web.fields import Refused
from delayqueue.web.http import HttpRequest
from delayqueue.web.requests import Request
from delayqueue.web.warnings import NAME_CHARS, NAMES

log = logging.getLogger(__name__)

# unknown fields that the log names, for each time that the settings are read
MOST_LOGGED: Final = 100
# Members of all objects and arrays together: an unknown one takes a microsecond, and all are parsed in one go.
MOST_MEMBERS: Final = 20_000
MOST_MEMBERS_OF_ARRAY: Final = 100_000
# A string, even an unterminated one: so the search never starts again inside it.
TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)

# pydantic's error types for a wrong type, for all types in the models.
KINDS: Final = {
    "string_type": Text("字符串", "a string"),
    "int_type": Text("整数", "an integer"),
    "float_type": Text("数字", "a number"),
    "bool_type": Text("true 或 false", "true or false"),
    "finite_number": Text("有限的数字", "a finite number"),
    "list_type": Text("数组", "an array"),
    "tuple_type": Text("数组", "an array"),
    "dict_type": Text("对象", "an object"),
    "model_type": Text("对象", "an object"),
}
QUOTED: Final = Text("数字，不带引号和单位", "a number, without quotes or a unit")  # not "10m"
CHOICES: Final = {"float", "str"}  # the last part of a location if it allows several types
# the start of name=value, or of a multipart body
FORM: Final = re.compile(
    rb"[\w.%+\[\]-]{1,200}+=|--[^\r\n]{1,200}+\r?\nContent-Disposition:", re.IGNORECASE
)
PLACE: Final = re.compile(r"at line (\d+) column (\d+)")
# the parser's words for half of a surrogate pair, and for bytes that are not UTF-8
NO_TEXT: Final = re.compile("surrogate|end of hex escape|invalid unicode code point")
# group 1: half of a surrogate pair
ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL
)
ZEROS: Final = ("", 0)  # in the original, an absent field has its type's zero value

Model = TypeVar("Model", bound=Request)
Found = Mapping[str, Any]  # one error from pydantic


class Reader:
    """Parses requests; `strict` refuses doubtful ones."""

    def __init__(self, metrics: Metrics, *, strict: bool) -> None:
        self._metrics = metrics
        self._strict = strict
        self._logged: set[tuple[str, str]] = set()  # unknown fields, by path

    def read(self, model: type[Model], raw: bytes, request: HttpRequest) -> Model:
        """Parse one JSON object; warnings are noted in `request`.

        Raises BadJson or Invalid, which names the first invalid field, or TooLarge if it has too many members.
        """
        if len(raw) >= MOST_MEMBERS:
            _check_members(raw, MOST_MEMBERS)
        try:
            # what model_validate_json calls; its own options take a sixth of the time
            asked: Model = model.__pydantic_validator__.validate_json(raw, extra="forbid")
        except ValidationError:
            pass
        else:
            if not is_far(asked):
                return asked
        return self._read_closely(model, _members(raw), request)

    def read_items(self, model: type[Model], items: list[object]) -> list[Model] | None:
        """Parse elements of an array together; None if one of them must be parsed alone."""
        try:
            asked = _list_of(model).validate_python(items, extra="forbid")
        except ValidationError:
            return None
        return None if any(map(is_far, asked)) else asked

    def read_item(self, model: type[Model], item: object, request: HttpRequest) -> Model:
        """Parse one element of an array. Errors as in read()."""
        asked = self.read_items(model, [item])
        return asked[0] if asked else self._read_closely(model, item, request)

    def _read_closely(self, model: type[Model], members: object, request: HttpRequest) -> Model:
        """Parse an unusual request: in any letter case, with all warnings."""
        if model.of_original:
            members = in_lower_case(model, members)
        try:
            asked = model.model_validate(members)
        except ValidationError as error:
            found: list[Any] = error.errors(include_url=False)
        else:
            self._warn(model, members, request)
            return asked
        for each in found:
            if each["type"] in KINDS and not _is_absent(model, each):
                raise BadJson(_of_type(each, found))
        self._warn(model, members, request)  # a misspelt field is why the right one is missing
        raise Invalid(_of_value(model, found))

    def _log(self, unknown: Iterable[str], path: str) -> None:
        """Log each unknown field once, as long as these are not too many."""
        for name in islice(unknown, NAMES):
            field = path, name[:NAME_CHARS]
            if field in self._logged or len(self._logged) >= MOST_LOGGED:
                continue
            self._logged.add(field)
            log.warning(
                "unknown field %s in requests to %s: ignored; strict = yes refuses them%s",
                shown(field[1]),
                path,
                "; further fields are not named" if len(self._logged) == MOST_LOGGED else "",
            )

    def _warn(self, model: type[Request], members: object, request: HttpRequest) -> None:
        """Note warnings for the answer. Raises Invalid if `strict` refuses what they are about."""
        unknown = list(_unknown(model, members))
        if unknown:
            warnings.note(request, warnings.UNKNOWN_FIELDS, unknown)
            self._metrics.count(REQUEST_WARNINGS, "unknown_field")
            if self._strict:
                warnings.refuse_unknown(unknown[0], model.siblings(unknown[0]))
            self._log(unknown, request.path)
        for field, delay_s in _long_delays(model, members):
            warnings.note(request, warnings.LONG_DELAY, [f"{delay_s:.0f}"])
            self._metrics.count(REQUEST_WARNINGS, "long_delay")
            if self._strict:
                warnings.refuse_long_delay(field, delay_s, has_due="due" in model.model_fields)


def parse_array(raw: bytes) -> list[object]:
    """Parse a JSON array of 1 to 1000 elements, without a look at the elements."""
    _check_members(raw, MOST_MEMBERS_OF_ARRAY)
    items = _members(raw, allow_inf_nan=False)
    if not isinstance(items, list) or not items:
        raise BadJson.of("解析json失败：需要非空数组", "an array of jobs must not be empty")
    if len(items) > MAX_BATCH:
        raise Invalid.of(
            f"一次最多{MAX_BATCH}个job", f"{len(items)} jobs: at most {MAX_BATCH} in a call"
        )
    return items


@cache
def _list_of(model: type[Model]) -> TypeAdapter[list[Model]]:
    return TypeAdapter(list[model])  # type: ignore[valid-type]


def is_array(raw: bytes) -> bool:
    """Whether the JSON text is an array."""
    return raw.lstrip().startswith(b"[")


def in_lower_case(model: type[Request], members: object) -> object:
    """The members with names in lower case, because Go reads `Topic` and `TTR` as `topic` and `ttr`.

    If a field comes in several spellings, the last value that is not null counts, as in Go.
    """
    if not isinstance(members, dict):
        return members
    fields, inner = model.model_fields, model.inner
    read = {}
    for name, value in members.items():
        field = name if name in fields else name.casefold()
        if field not in fields:
            read[name] = value
        elif value is not None:
            read[field] = value
    return {
        name: in_lower_case(inner[name], value) if name in inner else value
        for name, value in read.items()
    }


def is_far(asked: Request) -> bool:
    """Whether the request has a long delay."""
    members = vars(asked)
    return max(members.get("delay") or 0, members.get("fallback") or 0) > LONG_DELAY_S


def _unknown(model: type[Request], members: object) -> Iterator[str]:
    """The fields that no such request has; FIELD.NAME for those of an object in it."""
    if isinstance(members, dict):
        yield from (name for name in members if name not in model.model_fields)
        for field, inner in model.inner.items():
            yield from (f"{field}.{name}" for name in _unknown(inner, members.get(field)))


def _long_delays(model: type[Request], members: object) -> Iterator[tuple[str, float]]:
    """The delays of a request in seconds, by their fields, that are more than a year."""
    for field in ("delay", "fallback"):
        delay_s = members.get(field) if isinstance(members, dict) else None
        if (
            field in model.model_fields
            and isinstance(delay_s, int | float)
            and delay_s > LONG_DELAY_S
        ):
            yield field, delay_s


def _members(raw: bytes, *, allow_inf_nan: bool = True) -> object:
    """Parse the JSON text. Raises BadJson if it is invalid."""
    try:
        return from_json(raw, allow_inf_nan=allow_inf_nan)
    except ValueError as error:
        raise BadJson(_no_json(raw, str(error))) from None


def _check_members(raw: bytes, most: int) -> None:
    """Raises TooLarge if there are more. A copy of what is outside of its texts would take several times the memory."""
    if raw.count(b",") < most:
        return
    commas = end = 0  # outside of texts, up to the end of the latest one
    for texts, text in enumerate(TEXT.finditer(raw), start=1):
        commas += raw.count(b",", end, text.start())
        end = text.end()
        if commas >= most or texts == 2 * most:  # a name and a value each
            break
    else:
        commas += raw.count(b",", end)
        if commas < most:
            return
    raise TooLarge.of(f"请求的JSON最多{most}个成员", f"the request's JSON: at most {most} members")


def _is_absent(model: type[Request], found: Found) -> bool:
    """Whether a required field is missing, or null."""
    place = found["loc"]
    return found["type"] == "missing" or (
        found["input"] is None and len(place) == 1 and model.model_fields[place[0]].is_required()
    )


def _of_value(model: type[Request], found: list[Any]) -> Text:
    """The message for the first invalid value."""
    first = min(found, key=lambda each: each["loc"][0] != model.report_first)
    if not _is_absent(model, first):
        return _of_rule(first)
    place = first["loc"]
    return _of_absent(model, place[0]) if len(place) == 1 else _needed(".".join(map(str, place)))


def _of_absent(model: type[Request], field: str) -> Text:
    """The message for the zero value of the field's type, if that is invalid and the model has no own message."""
    if field in model.absent:
        return model.absent[field]
    for zero in ZEROS:
        try:
            model.__pydantic_validator__.validate_assignment(model.model_construct(), field, zero)
        except ValidationError as error:
            [found] = error.errors(include_url=False)
            if found["type"] not in KINDS:
                return _of_rule(found)
    return _needed(field)


def _needed(field: str) -> Text:
    return Text(f"需要 {field}", f"{field}: must be given")


def _of_rule(found: Found) -> Text:
    """The message of the field's rule."""
    context, place = found["ctx"], ".".join(map(str, found["loc"]))
    refused: BadValue = (
        context["rule"].refusal(found["input"]) if "rule" in context else context["error"]
    )
    if isinstance(refused, Refused):
        return refused.say(place)
    return Text(f"{place} {refused.text.zh}", f"{place}: {refused.text.en}")


def _of_type(first: Found, found: list[Any]) -> Text:
    """What is allowed at the location of the first error."""
    place, kinds = list(first["loc"]), [first["type"]]
    if place and place[-1] in CHOICES:
        place.pop()
        kinds = [each["type"] for each in found if list(each["loc"][:-1]) == place]
    is_quoted = kinds == ["float_type"] and isinstance(first["input"], str)
    wanted = [QUOTED] if is_quoted else [KINDS[kind] for kind in kinds]
    field = ".".join(map(str, place))
    zh = "或".join(text.zh for text in wanted)
    en = " or ".join(text.en for text in wanted)
    return Text(
        f"解析json失败：{field} 须为{zh}" if field else f"解析json失败：须为{zh}",
        f"{field}: must be {en}" if field else f"must be {en}",
    )


def _no_json(raw: bytes, error: str) -> Text:
    """What the text is, if known; else the parser's message, which is in English: in Chinese only the location."""
    if not raw.strip():
        return Text(
            "解析json失败：请求体为空，json_encode 是否失败了？",
            "the request is empty: did json_encode fail?",
        )
    if FORM.match(raw):
        return Text(
            '解析json失败：请求体是表单，请发送JSON，如 {"topic": "order"}',
            'the request is a form: send JSON, such as {"topic": "order"}',
        )
    place = PLACE.search(error)
    if place and NO_TEXT.search(error):
        half = next((each[1] for each in ESCAPES.finditer(raw) if each[1]), b"").decode()
        zh, en = (
            (f"{half} 是半个代理对", f"{half}, half of a surrogate pair,")
            if half
            else ("字节不是UTF-8", "bytes that are not UTF-8")
        )
        return Text(
            f"解析json失败：第{place[1]}行第{place[2]}列的文本不是有效的Unicode：{zh}",
            f"text that is not valid Unicode: {en} at line {place[1]} column {place[2]}",
        )
    where = f"第{place[1]}行第{place[2]}列有误" if place else "不是有效的json"
    return Text(f"解析json失败：{where}", f"not valid JSON: {error}")
