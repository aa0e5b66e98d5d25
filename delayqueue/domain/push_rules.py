"""Rules for the fields of /push that need no server; push_fields.py says which field has which. Pure.

What only a server knows is not here: how large a body may be, which calls it makes, what a token may.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from delayqueue.domain import call as call_rules
from delayqueue.domain import retry, subscriber
from delayqueue.domain.job import (
    MAX_DELAY_S,
    MAX_GROUP_BYTES,
    MAX_ID_BYTES,
    MAX_TAG_BYTES,
    MAX_TAGS,
    MAX_TEXT_BYTES,
    MAX_TOPIC_BYTES,
    IfExists,
)
from delayqueue.domain.subscriber import Method
from delayqueue.domain.text import not_unicode
from delayqueue.errors import BadValue, shown

# Removed by the original's strings.TrimSpace, and by pydantic's strip_whitespace, too.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
NEW_ID: Final = "*"  # as an id: the server makes a unique one
TRACEPARENT: Final = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)

Rule = Callable[[str, Any], Any]  # takes a field's name and its value, returns what it means


def stripped(name: str) -> str:
    """An id, a topic or a tag as the server understands it: without the white space at its ends."""
    return name.strip(WHITE_SPACE)


def text(field: str, value: Any) -> str:
    """A text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise TypeError(f"{field}: must be a string")
    if why := not_unicode(value):
        raise ValueError(f"{field}: {why}")
    return value


def name(field: str, value: Any, limit_bytes: int) -> str:
    """A name without the white space at its ends."""
    found = stripped(text(field, value))
    if not found:
        raise ValueError(f"{field}: must not be empty")
    if (size := len(found.encode())) > limit_bytes:
        raise ValueError(f"{field}: {size} bytes, at most {limit_bytes}")
    return found


def topic(field: str, value: Any) -> str:
    """A topic to push to."""
    if "," in text(field, value):
        raise ValueError(f"{field}: no comma, it separates the topics of a pop")
    return name(field, value, MAX_TOPIC_BYTES)


def tag(field: str, value: Any) -> str:
    """A tag."""
    return name(field, value, MAX_TAG_BYTES)


def group(field: str, value: Any) -> str:
    """A group."""
    return name(field, value, MAX_GROUP_BYTES)


def job_id(field: str, value: Any) -> str:
    """An id, or NEW_ID."""
    return name(field, value, MAX_ID_BYTES)


def in_group(group: str, job_id: str) -> str:
    """The id that is in the bucket of the group, whatever their number."""
    return f"{{{group}}}{job_id}"


def short_text(field: str, value: Any) -> str:
    """A text of 1 to MAX_TEXT_BYTES bytes."""
    if not (size := len(text(field, value).encode())):
        raise ValueError(f"{field}: must not be empty")
    if size > MAX_TEXT_BYTES:
        raise ValueError(f"{field}: {size} bytes, at most {MAX_TEXT_BYTES}")
    return str(value)


def tags(field: str, value: Any) -> list[str]:
    """The tags of a job."""
    found = [tag(f"{field}.{place}", each) for place, each in enumerate(_list(field, value))]
    if len(found) > MAX_TAGS:
        raise ValueError(f"{field}: {len(found)} tags, at most {MAX_TAGS}")
    return found


def _list(field: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):  # a text is not taken letter by letter
        raise TypeError(f"{field}: must be an array")
    return list(value)


def _number(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        quoted = ", without quotes or a unit" if isinstance(value, str) else ""
        raise TypeError(f"{field}: must be a number{quoted}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{field}: must be a finite number")
    return value


def within(field: str, value: Any, *, least: float, most: float, must: str) -> float:
    """A number from `least` to `most`; the message says what it `must` be."""
    number = _number(field, value)
    if not least <= number <= most:
        written = f"{number:.15g}" if isinstance(number, float) else shown(number)
        raise ValueError(f"{field} {written}: {must.format(least=least, most=most)}")
    return number


def _integer(field: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{field}: must be an integer")
    return value


def whole(field: str, value: Any, *, least: int, most: int, must: str) -> int:
    """A whole number from `least` to `most`; the message says what it `must` be."""
    return int(within(field, _integer(field, value), least=least, most=most, must=must))


def some_seconds(field: str, value: Any) -> float:
    """A length of time of at least a millisecond."""
    number = SECONDS(field, value)
    if round(number * 1000) == 0:
        raise ValueError(f"{field} {number:g}: must be at least 0.001 seconds")
    return number


def _true_or_false(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{field}: must be true or false")
    return value


def _one_of(words: Iterable[str]) -> Rule:
    """The rule for a text that is one of these."""
    known = list(map(str, words))

    def rule(field: str, value: Any) -> str:
        word = text(field, value)
        if word not in known:
            raise ValueError(f"{field} {shown(str(word))}: must be one of {', '.join(known)}")
        return str(word)

    return rule


if_exists: Final = _one_of(IfExists)


def traceparent(field: str, value: Any) -> str:
    """A W3C trace context; "" = none."""
    if text(field, value) and not TRACEPARENT.fullmatch(value):
        raise ValueError(f"{field}: must be 00-<32 hex>-<16 hex>-<2 hex>, in lower case")
    return str(value)


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are not null."""
    return {name: value for name, value in members.items() if value is not None}


def _members(field: str, value: Any, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """The members of an object, each by its rule."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{field}: must be an object")
    found = given(value)
    for member in found:
        if member not in rules:
            there = ", ".join(f"{field}.{each}" for each in rules)
            raise ValueError(f"{field}.{member}: unknown field; there are {there}")
    return {name: rules[name](f"{field}.{name}", found[name]) for name in rules if name in found}


def retry_schedule(field: str, value: Any) -> dict[str, Any]:
    """A retry schedule, as it is sent."""
    found = _members(field, value, RETRY)
    try:
        retry.expanded(found, random=lambda: 0.0)
    except BadValue as error:
        raise ValueError(f"{field}: {error}") from None
    return found


def _length(field: str, value: Any) -> float | str:
    if isinstance(value, str):
        return text(field, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{field}: must be a number or a string")
    return _number(field, value)


def _lengths(field: str, value: Any) -> list[float | str]:
    return [_length(f"{field}.{place}", each) for place, each in enumerate(_list(field, value))]


def call(field: str, value: Any) -> dict[str, Any]:
    """The call of a job, as it is sent."""
    found = _members(field, value, CALL)
    if "url" not in found:
        raise ValueError(f"{field}.url: must be given")
    return found


def _by(check: Callable[[Any], object], kind: Rule) -> Rule:
    """The rule that passes values of this kind to `check`, and raises BadValue for other values."""

    def rule(field: str, value: Any) -> Any:
        given = kind(field, value)
        try:
            check(given)
        except BadValue as error:
            raise ValueError(f"{field}: {error}") from None
        return given

    return rule


def _headers(field: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{field}: must be an object")
    return {
        text(f"{field}.{name}", name): text(f"{field}.{name}", each) for name, each in value.items()
    }


def _timeout(value: float) -> None:
    subscriber.check_timeout(retry.duration_ms(value))


SECONDS: Final = partial(within, least=0, most=MAX_DELAY_S, must="must be 0 to 2^31 seconds")

RETRY: Final[Mapping[str, Rule]] = {
    "delays": _lengths,
    "preset": text,
    "max": _integer,
    "base": _length,
    "factor": _number,
    "cap": _length,
    "jitter": _number,
}

CALL: Final[Mapping[str, Rule]] = {
    "url": _by(call_rules.check_url, text),
    "method": _one_of(Method),
    "headers": _by(call_rules.check_headers, _headers),
    "timeout": _by(_timeout, _number),
    "expect": _by(subscriber.check_expect, text),
    "give_up": _true_or_false,
}
