"""The `[subscriber NAME]`, `[schedule NAME]` and `[limit TOPIC]` sections of a config file."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from delayqueue.config import ini
from delayqueue.config.mistakes import Mistake, Mistakes
from delayqueue.config.values import whole, yes_no
from delayqueue.domain import call, limit, retry
from delayqueue.domain.call import Call, check_headers
from delayqueue.domain.job import MAX_GROUP_BYTES, MAX_TOPIC_BYTES, MAX_TTR_S
from delayqueue.domain.limit import Limit, check_rate
from delayqueue.domain.schedule import (
    CatchUp,
    Schedule,
    check_cron,
    check_every,
    check_form,
    check_tz,
)
from delayqueue.domain.subscriber import (
    MAX_CONCURRENCY,
    MAX_ORDER,
    Method,
    OnFailure,
    Payload,
    Subscriber,
    check_expect,
    check_name,
    check_secret,
    check_timeout,
    check_url,
)
from delayqueue.errors import BadValue

# A parser takes text; it raises ValueError("must be ..."), which says what a good value looks like.
Parser = Callable[[str], object]

NO_RETRY: Final = "none"
# no message shows their values
SECRET_KEYS: Final = frozenset(("secret", "headers", "call_headers"))

Entry = TypeVar("Entry", Subscriber, Schedule)


class Declared(NamedTuple, Generic[Entry]):
    """A subscriber or a schedule from a config file; `where` is "FILE:LINE: [subscriber NAME]"."""

    where: str
    entry: Entry


class Sections(NamedTuple):
    """All sections of a config file."""

    subscribers: tuple[Declared[Subscriber], ...] = ()
    schedules: tuple[Declared[Schedule], ...] = ()
    limits: Mapping[str, Limit] = MappingProxyType({})  # by topic


def read_sections(sections: Iterable[ini.IniSection], mistakes: Mistakes) -> Sections:
    """What the sections declare; a section with a mistake declares nothing."""
    found: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    for section in sections:
        with mistakes.noted():
            _read(section, found, mistakes)
    return Sections(
        tuple(found["subscriber"].values()), tuple(found["schedule"].values()), found["limit"]
    )


def _read(section: ini.IniSection, found: dict[str, dict[str, Any]], mistakes: Mistakes) -> None:
    where = f"{section.where}: [{ini.printable(section.name)}]"
    kind, _, name = section.name.partition(" ")
    if kind not in KINDS:
        raise Mistake(f"{where}: unknown section; remove it")
    check, keys, read = KINDS[kind]
    name = _name(where, name.strip(), check)
    if name in found[kind]:
        raise Mistake(f"{where}: is in the file twice; choose another name")
    known = len(mistakes.lines)
    values = _values(section.lines, keys, mistakes)
    if len(mistakes.lines) == known:  # otherwise a key may seem to be missing
        found[kind][name] = read(where, name, values)


def _name(where: str, name: str, check: Callable[[str], str]) -> str:
    try:
        return check(name)
    except ValueError as error:
        raise Mistake(f"{where}: the name {error}") from None


def _subscriber(where: str, name: str, values: dict[str, Any]) -> Declared[Subscriber]:
    if "topic" not in values:
        raise Mistake(f"{where}: topic is missing")
    if "url" not in values:
        raise Mistake(f"{where}: url is missing")
    values["headers"] = tuple(values.get("headers", {}).items())
    return Declared(where, Subscriber(name=name, declared=True, **values))


def _schedule(where: str, name: str, values: dict[str, Any]) -> Declared[Schedule]:
    if "topic" not in values:
        raise Mistake(f"{where}: topic is missing")
    try:
        check_form(cron="cron" in values, every="every_ms" in values, tz=values.get("tz"))
    except BadValue as error:
        raise Mistake(f"{where}: {error}") from None
    of_call = {field: values.pop(field) for field, _ in CALL_KEYS.values() if field in values}
    if of_call and "url" not in of_call:
        raise Mistake(f"{where}: call is missing, which is the URL")
    made = Call(**of_call) if of_call else None
    return Declared(where, Schedule(name=name, declared=True, call=made, **values))


def _limit(where: str, _: str, values: dict[str, Any]) -> Limit:
    if not values:
        raise Mistake(f"{where}: give one of {', '.join(LIMIT_KEYS)}")
    if "when_full" in values and "max_jobs" not in values:
        raise Mistake(f"{where}: when_full needs max_jobs")
    if "burst" in values and "rate" not in values:
        raise Mistake(f"{where}: burst needs a rate")
    return Limit(declared=True, **values)


def _values(
    lines: Iterable[ini.Line], keys: dict[str, tuple[str, Parser]], mistakes: Mistakes
) -> dict[str, Any]:
    """The values of the lines, by the names of the fields. Keys without a value count as absent."""
    values: dict[str, Any] = {}
    for line in lines:
        with mistakes.noted():
            _add(values, line, keys)
    return values


def _add(values: dict[str, Any], line: ini.Line, keys: dict[str, tuple[str, Parser]]) -> None:
    where, key, text = line
    if key == "handler" and keys is SUBSCRIBER_KEYS:
        raise Mistake(f"{where}: {key}: {NO_HANDLERS}")
    if key not in keys:
        raise Mistake(f"{where}: {key}: unknown key; a section takes {', '.join(keys)}")
    field, parse = keys[key]
    if field in values:
        raise Mistake(f"{where}: {key}: set twice; keep one of them")
    if text:
        values[field] = ini.parsed(f"{where}: {key}", text, parse, secret=key in SECRET_KEYS)


def _word(kind: type[StrEnum], text: str) -> StrEnum:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(kind)}") from None


def _topic(text: str) -> str:
    if not text or "," in text or len(text.encode()) > MAX_TOPIC_BYTES:
        raise ValueError(f"must be one topic, at most {MAX_TOPIC_BYTES} bytes")
    return text


def _group(text: str) -> str:
    if not text or len(text.encode()) > MAX_GROUP_BYTES:
        raise ValueError(f"must be 1 to {MAX_GROUP_BYTES} bytes")
    return text


def _rate(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise ValueError("must be a number")
    return check_rate(float(text))


def _duration_ms(text: str) -> int:
    return retry.duration_ms(float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text)


def _retain_ms(text: str) -> int:
    if (ms := _duration_ms(text)) == 0:
        raise ValueError("must be longer than 0; without this key they are kept")
    return ms


def _every_ms(text: str) -> int:
    return check_every(_duration_ms(text))


def _ttr_ms(text: str) -> int:
    ttr_ms = _duration_ms(text)
    if ttr_ms % 1000 or not 1000 <= ttr_ms <= MAX_TTR_S * 1000:
        raise ValueError(f"must be 1 to {MAX_TTR_S} whole seconds")
    return ttr_ms


def _timeout_ms(text: str) -> int:
    return check_timeout(_duration_ms(text))


def _headers(text: str) -> dict[str, str]:
    headers: dict[str, Any] | None = None
    with suppress(ValueError, RecursionError):
        headers = json.loads(text)
    if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
        raise ValueError('must be a JSON object of texts, as `{"X-Key": "abc"}`')
    return check_headers(headers)


def _retry_ms(text: str) -> tuple[int, ...]:
    if text in retry.PRESETS:
        return retry.preset(text)
    if text == NO_RETRY:
        return ()
    try:
        return tuple(_duration_ms(part.strip()) for part in text.split(",", retry.MAX_STEPS - 1))
    except ValueError:
        raise ValueError(
            f"must be a preset ({', '.join(retry.PRESETS)}), {NO_RETRY}, or at most "
            f"{retry.MAX_STEPS} delays: 0s,2m,10m"
        ) from None


NO_HANDLERS: Final = (
    "a server calls only URLs: remove the section, and let a Worker run the function, "
    "as docs/subscribers.md says under Python functions"
)
# of the request to a URL: a subscriber's, or that of a call
REQUEST_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "method": ("method", partial(_word, Method)),
    "headers": ("headers", _headers),
    "timeout": ("timeout_ms", _timeout_ms),
    "expect": ("expect", check_expect),
}
SUBSCRIBER_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "topic": ("topic", _topic),
    "order": ("order", whole(-MAX_ORDER, MAX_ORDER)),
    "url": ("url", check_url),
    **REQUEST_KEYS,
    "retry": ("retry_ms", _retry_ms),
    "concurrency": ("concurrency", whole(1, MAX_CONCURRENCY)),
    "secret": ("secret", check_secret),
    "on_failure": ("on_failure", partial(_word, OnFailure)),
    "payload": ("payload", partial(_word, Payload)),
}
LIMIT_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "rate": ("rate", _rate),
    "burst": ("burst", whole(1, limit.MAX_BURST)),
    "concurrency": ("concurrency", whole(1, limit.MAX_CONCURRENCY)),
    "group_concurrency": ("group_concurrency", whole(1, limit.MAX_CONCURRENCY)),
    "group_order": ("group_order", yes_no),
    "buried_retain": ("buried_retain_ms", _retain_ms),
    "buried_to": ("buried_to", _topic),
    "max_jobs": ("max_jobs", whole(1, limit.MAX_JOBS)),
    "when_full": ("when_full", partial(_word, limit.WhenFull)),
}
CALL_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "call": ("url", call.check_url),
    **{f"call_{key}": row for key, row in REQUEST_KEYS.items()},
    "call_give_up": ("give_up", yes_no),
}
SCHEDULE_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "topic": ("topic", _topic),
    "cron": ("cron", check_cron),
    "every": ("every_ms", _every_ms),
    "tz": ("tz", check_tz),
    "body": ("body", str),
    "ttr": ("ttr_ms", _ttr_ms),
    "catch_up": ("catch_up", partial(_word, CatchUp)),
    "group": ("group", _group),
    **CALL_KEYS,
}
# For each kind of section: what follows the kind in its name, its keys, and what is made of their values.
KINDS: Final[
    dict[str, tuple[Callable[[str], str], dict[str, tuple[str, Parser]], Callable[..., Any]]]
] = {
    "subscriber": (check_name, SUBSCRIBER_KEYS, _subscriber),
    "schedule": (check_name, SCHEDULE_KEYS, _schedule),
    "limit": (_topic, LIMIT_KEYS, _limit),
}
