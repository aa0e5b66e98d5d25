"""The types of fields: each strips, limits and explains itself, for requests and for /openapi.json.

As in the original, ids and topics lose their outer white space. Types are strict: `true` or `"1"` is not a number, and
a number is not an id. Invalid values raise BadValue; parse.py adds the field's name.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, StringConstraints
from pydantic_core import CoreSchema
from pydantic_core.core_schema import (
    chain_schema,
    custom_error_schema,
    no_info_after_validator_function,
    str_schema,
    union_schema,
)

from delayqueue.domain.job import (
    MAX_BATCH,
    MAX_DELAY_S,
    MAX_DUE_S,
    MAX_GROUP_BYTES,
    MAX_ID_BYTES,
    MAX_MESSAGE_CHARS,
    MAX_POP_TOPICS,
    MAX_PRIORITY,
    MAX_TAG_BYTES,
    MAX_TAGS,
    MAX_TEXT_BYTES,
    MAX_TOPIC_BYTES,
    MAX_TTR_S,
    IfExists,
    State,
)
from delayqueue.domain.outboxes import MAX_NAME_BYTES
from delayqueue.domain.push_fields import WORDS
from delayqueue.domain.push_rules import TRACEPARENT, WHITE_SPACE
from delayqueue.errors import BadValue, Invalid, Text, TooLarge, shown

# in UTF-8: a text of few characters need not be encoded to be measured
MOST_BYTES_OF_CHAR: Final = 4
MAX_POP_CHARS: Final = MAX_POP_TOPICS * (MAX_TOPIC_BYTES + 2)  # with a comma and a blank each
# A consumer names the same topics again and again: the latest ones are cached, which takes 8 MB if all are the longest.
REMEMBERED: Final = 128

TEXT: Final[CoreSchema] = str_schema(strict=True)
NAME: Final = "{}"  # in a message: replaced by the field's name
REFUSED: Final = "refused"


class Refused(BadValue):
    """A BadValue whose texts place the field's name themselves: at NAME, once and first."""

    def say(self, place: str) -> Text:
        """The texts, with the field's name."""
        zh, en = self.text
        return Text(zh.replace(NAME, place, 1), en.replace(NAME, place, 1))


class SchemaExtra:
    """Adds members to the JSON Schema that pydantic makes of a type: limits that it does not know."""

    def __init__(self, **extra: object) -> None:
        self._extra = extra

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The schema, with these additions."""
        return handler(schema) | self._extra


class Validate(SchemaExtra):
    """A rule in Python: `check` returns what a value means, or raises BadValue.

    `written` is the type as sent, if it differs from that of the result. What is valid by `plain`, the rule leaves as
    it is: pydantic's core finds that out, without a call in Python. `extra` are members of its JSON Schema.
    """

    def __init__(
        self,
        check: Callable[[Any], object],
        written: CoreSchema | None = None,
        plain: CoreSchema | None = None,
        **extra: object,
    ) -> None:
        super().__init__(**extra)
        self._check = check
        self._written = written
        self._plain = plain

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """First the type, then the rule."""
        written = self._written or handler(source)
        checked = no_info_after_validator_function(self._check, written)
        if self._plain is None:
            return checked
        rule: Any = {"rule": self}
        either = union_schema(
            [self._plain, checked],
            mode="left_to_right",
            custom_error_type=REFUSED,
            custom_error_message=REFUSED,
            custom_error_context=rule,
        )
        return chain_schema([written, either])

    def refusal(self, value: object) -> BadValue:
        """The message for a value that the rule refuses."""
        try:
            self._check(value)
        except BadValue as refused:
            return refused
        raise TypeError("the rule refuses no such value")


class Bounds(SchemaExtra):
    """A number from `least` to `most`; pydantic's core compares, without a call in Python.

    `zh` and `en` say what it must be; they can contain {least} and {most}.
    """

    def __init__(
        self,
        least: float,
        most: float,
        zh: str = "取值范围{least} - {most}",
        en: str = "must be {least} to {most}",
    ) -> None:
        super().__init__(minimum=least, maximum=most)
        self._bounds = {"ge": least, "le": most}
        self._must = Text(zh.format(least=least, most=most), en.format(least=least, most=most))

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """First the type, then the value: a wrong type has its own message."""
        number = handler(source)
        bounded: Any = {**number, **self._bounds}
        refused = custom_error_schema(
            bounded, REFUSED, custom_error_message=REFUSED, custom_error_context={"rule": self}
        )
        return chain_schema([number, refused])

    def refusal(self, value: float) -> Refused:
        """The message for a value out of range."""
        written = f"{value:.15g}" if isinstance(value, float) else shown(value)
        return Refused(f"{NAME} {self._must.zh}", f"{NAME} {written}: {self._must.en}")


def _check_name(limit_bytes: int, empty_zh: str = f"{NAME} 不能为空") -> Callable[[str], str]:
    """The check of a text without outer white space: it is not empty, and not longer."""

    def check(text: str) -> str:
        if not text:
            raise Refused(empty_zh, f"{NAME}: must not be empty")
        most_bytes = len(text) * MOST_BYTES_OF_CHAR
        if most_bytes > limit_bytes and (size := len(text.encode())) > limit_bytes:
            raise Refused(
                f"{NAME} 最长{limit_bytes}字节", f"{NAME}: {size} bytes, at most {limit_bytes}"
            )
        return text

    return check


def _short(limit_bytes: int, pattern: str | None = None) -> CoreSchema:
    """Texts that are not empty, and so short that their bytes need not be counted."""
    most_chars = limit_bytes // MOST_BYTES_OF_CHAR
    return str_schema(strict=True, min_length=1, max_length=most_chars, pattern=pattern)


def _named(limit_bytes: int) -> Validate:
    """The rule for a text of 1 byte to so many."""
    return Validate(_check_name(limit_bytes), plain=_short(limit_bytes))


check_id: Final = _check_name(MAX_ID_BYTES, f"job {NAME}不能为空")
check_topic: Final = _check_name(MAX_TOPIC_BYTES)


def check_label(limit_bytes: int, *, may_be_empty: bool = False) -> Callable[[str], str]:
    """The check of a short text that people read: a name without control characters."""
    check_length = _check_name(limit_bytes)

    def check(text: str) -> str:
        if not text.isprintable():
            raise Refused(
                f"{NAME} 不能包含控制字符", f"{NAME} {shown(text)}: no control characters"
            )
        return check_length(text) if text or not may_be_empty else text

    return check


def check_pushed_topic(text: str) -> str:
    """Check a topic to push to."""
    if "," in text:
        raise Refused(f"{NAME} 不能包含逗号", f"{NAME}: no comma, it separates the topics of a pop")
    return check_topic(text)


@lru_cache(REMEMBERED)
def check_pop_topics(text: str) -> tuple[str, ...]:
    """The topics in order of preference, each once."""
    if len(text) > MAX_POP_CHARS:
        raise Refused(
            f"{NAME} 最长{MAX_POP_CHARS}个字符",
            f"{NAME}: {len(text)} characters, at most {MAX_POP_CHARS} in a pop",
        )
    names = [name.strip(WHITE_SPACE) for name in text.split(",")]
    topics = tuple(dict.fromkeys(check_topic(name) for name in names if name))
    if not topics and text.strip(WHITE_SPACE):
        raise Refused(
            f"{NAME} 只有逗号：请给出topic，多个用逗号隔开",
            f"{NAME}: only commas; name a topic, or several with commas between",
        )
    if not topics:
        raise Refused(f"{NAME}不能为空", f"{NAME}: must not be empty")
    if len(topics) > MAX_POP_TOPICS:
        raise Refused(
            f"{NAME} 最多{MAX_POP_TOPICS}个",
            f"{NAME}: {len(topics)} topics, at most {MAX_POP_TOPICS} in a pop",
        )
    return topics


def check_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags, each once."""
    if len(tags) > MAX_TAGS:
        raise Refused(f"{NAME} 最多{MAX_TAGS}个", f"{NAME}: {len(tags)} tags, at most {MAX_TAGS}")
    return tuple(dict.fromkeys(tags))


def check_ids(ids: list[str]) -> list[str]:
    """Check the ids of jobs in one call."""
    if not 1 <= len(ids) <= MAX_BATCH:
        raise Refused(
            f"{NAME} 个数1 - {MAX_BATCH}", f"{NAME}: must be 1 to {MAX_BATCH}, not {len(ids)}"
        )
    return ids


def check_some_seconds(value_s: float) -> float:
    """Check a duration of at least a millisecond: 0 means something else to the store."""
    if ms(value_s) == 0:
        raise Refused(f"{NAME} 至少0.001秒", f"{NAME} {value_s:g}: must be at least 0.001 seconds")
    return value_s


def check_traceparent(text: str) -> str:
    """Check a W3C trace context."""
    if text and not is_traceparent(text):
        raise BadValue(
            "须为 00-<32位>-<16位>-<2位>，小写十六进制",
            "must be 00-<32 hex>-<16 hex>-<2 hex>, in lower case",
        )
    return text


def is_traceparent(text: str) -> bool:
    """Whether the text is a header as W3C Trace Context describes it: version, trace, span, flags."""
    return TRACEPARENT.fullmatch(text) is not None


def one_of(*words: str) -> Validate:
    """The rule for a text that is one of these; its value is that one."""
    by_name = {str(word): word for word in words}

    def check(text: str) -> str:
        word = by_name.get(text)
        if word is None:
            raise Refused(
                f"{NAME} 只能是 {'、'.join(by_name)}",
                f"{NAME} {shown(text)}: must be one of {', '.join(by_name)}",
            )
        return word

    return Validate(check, TEXT, enum=list(by_name))


def check_body(body: str, limit_bytes: int) -> None:
    """Raises TooLarge if the body has more bytes than the server accepts."""
    if len(body) * MOST_BYTES_OF_CHAR > limit_bytes and (size := len(body.encode())) > limit_bytes:
        raise TooLarge.of(
            f"body 最长{limit_bytes}字节", f"body: {size} bytes, at most {limit_bytes}"
        )


def optional(description: str) -> Any:
    """The default of a field that may be left out, and what the field means."""
    return Field(None, description=description)


def ms(seconds: float) -> int:
    """Seconds as milliseconds."""
    return round(seconds * 1000)


def ms_or_none(seconds: float | None) -> int | None:
    """Seconds as milliseconds; None stays None."""
    return None if seconds is None else ms(seconds)


def exclusive(one: str, other: str) -> Invalid:
    """The error of a request that has two fields of which one makes the other meaningless."""
    return Invalid.of(f"{one} 和 {other} 只能有一个", f"{one} and {other} exclude each other")


def wait_s(timeout_s: float | None, most_s: float) -> float:
    """How long a request waits, None = `most_s`. Raises Invalid unless it is 0 to that."""
    if timeout_s is None:
        return most_s
    if not 0 <= timeout_s <= most_s:
        raise Invalid.of(
            f"timeout 取值范围0 - {most_s:g}",
            f"timeout {timeout_s:g}: must be 0 to {most_s:g} seconds",
        )
    return timeout_s


def when_ms(delay_s: float | None, due_s: float | None) -> tuple[int, int | None]:
    """Delay and due time in ms; the due time counts if it is not None. Raises Invalid if both are given."""
    if due_s is None:
        return round(delay_s * 1000) if delay_s else 0, None
    if delay_s:
        raise exclusive("delay", "due")
    return 0, ms(due_s)


LENGTH: Final = "must be 0 to 2^31 seconds"
STRIPPED: Final = StringConstraints(strip_whitespace=True)
FIRST: Final[Any] = Field(fail_fast=True)  # of thousands of invalid items, the first one is enough

Number = Annotated[float, Field(allow_inf_nan=False)]
JobId = Annotated[
    str,
    STRIPPED,
    Validate(check_id, plain=_short(MAX_ID_BYTES)),
    Field(description=f"Names the job, 1 to {MAX_ID_BYTES} bytes."),
]
JobIds = Annotated[
    list[JobId],
    FIRST,
    Validate(check_ids, minItems=1, maxItems=MAX_BATCH),
    Field(description="Many at once, instead of `id`."),
]
Topic = Annotated[
    str,
    STRIPPED,
    _named(MAX_TOPIC_BYTES),
    Field(description=f"What kind of job it is, 1 to {MAX_TOPIC_BYTES} bytes."),
]
PushedTopic = Annotated[
    str,
    STRIPPED,
    Validate(check_pushed_topic, plain=_short(MAX_TOPIC_BYTES, pattern="^[^,]*$")),
]
PopTopics = Annotated[
    tuple[str, ...],
    Validate(check_pop_topics, TEXT),
    Field(
        description="The kind of job, or several kinds with commas between, the most urgent first."
    ),
]
Tag = Annotated[
    str,
    STRIPPED,
    _named(MAX_TAG_BYTES),
    Field(description=f"A tag, 1 to {MAX_TAG_BYTES} bytes."),
]
Group = Annotated[
    str,
    STRIPPED,
    _named(MAX_GROUP_BYTES),
    Field(description=f"A group, 1 to {MAX_GROUP_BYTES} bytes."),
]
OutboxName = Annotated[
    str,
    STRIPPED,
    _named(MAX_NAME_BYTES),
    Field(description=f"The name of the outbox, 1 to {MAX_NAME_BYTES} bytes."),
]
Tags = Annotated[
    tuple[Tag, ...],
    Field(strict=False),
    FIRST,
    Validate(check_tags, maxItems=MAX_TAGS),
]
Body = Annotated[str, Field(description=WORDS["body"].en)]
Seconds = Annotated[Number, Bounds(0, MAX_DELAY_S, "取值范围0 - 2^31", LENGTH)]
SomeSeconds = Annotated[Seconds, Validate(check_some_seconds, minimum=0.001)]
Timeout = Annotated[Number, SchemaExtra(minimum=0)]
Delay = Annotated[
    Number,
    Bounds(0, MAX_DELAY_S, "取值范围0 - (2^31 - 1)", LENGTH),
]
DueTime = Annotated[
    Number,
    Bounds(
        0,
        MAX_DUE_S,
        "是unix时间戳（秒，不是毫秒），取值范围{least} - {most}",
        "must be unix seconds (not milliseconds), {least} to {most}",
    ),
]
Distance = Annotated[
    Number,
    Bounds(-MAX_DELAY_S, MAX_DELAY_S, "取值范围-2^31 - 2^31", "must be -2^31 to 2^31 seconds"),
    Field(description="Seconds by which each job's own due time moves; earlier if negative."),
]
Percent = Annotated[Number, Bounds(0, 100)]
Priority = Annotated[int, Bounds(0, MAX_PRIORITY)]
Ttr = Annotated[
    int,
    Bounds(1, MAX_TTR_S, en="must be {least} to {most} seconds"),
]
JobCount = Annotated[int, Bounds(1, MAX_BATCH), Field(description="How many jobs.")]
IfExistsWord = Annotated[IfExists, one_of(*IfExists)]
JobState = Annotated[State, one_of(*State), Field(description="Only jobs in this state.")]
Receipt = Annotated[str, Field(description="The receipt of the reservation, from /pop.")]
Message = Annotated[
    str,
    Validate(lambda text: text[:MAX_MESSAGE_CHARS]),  # the rest is cut off
    Field(description=f"Kept with the attempt, {MAX_MESSAGE_CHARS} characters at most."),
]
Traceparent = Annotated[str, Validate(check_traceparent)]
Part = Annotated[str, _named(MAX_ID_BYTES)]
ShortText = Annotated[str, _named(MAX_TEXT_BYTES)]
