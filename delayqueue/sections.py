"""The `[subscriber NAME]` and `[schedule NAME]` sections of a config file."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from delayqueue import ini, retry
from delayqueue.job import MAX_TOPIC_BYTES, MAX_TTR_S
from delayqueue.schedule import Schedule, check_catch_up, check_cron, check_every, check_tz
from delayqueue.subscriber import (
    MAX_CONCURRENCY,
    MAX_ORDER,
    Subscriber,
    check_handler,
    check_name,
    check_secret,
    check_timeout,
    check_url,
)

# A parser takes text; it raises ValueError("must be ..."): what a good value looks like.
Parser = Callable[[str], object]


class SectionError(Exception):
    """A section that cannot be understood; the message names file, line, section and key."""


class Declared(NamedTuple):
    """A subscriber that stands in a config file; `where` is "FILE:LINE: [subscriber NAME]"."""

    where: str
    subscriber: Subscriber


class Sections(NamedTuple):
    """All sections of a config file."""

    subscribers: tuple[Declared, ...] = ()
    schedules: tuple[Schedule, ...] = ()


def read_sections(sections: Iterable[ini.Section]) -> Sections:
    """The subscribers and schedules of the sections. Raises SectionError, also where one is neither."""
    subscribers: dict[str, Declared] = {}
    schedules: dict[str, Schedule] = {}
    for section in sections:
        where = f"{section.where}: [{ini.printable(section.name)}]"
        kind = section.name.split(" ")[0]
        if kind not in {"subscriber", "schedule"}:
            raise SectionError(f"{where}: unknown section; remove it")
        name = _name(where, section.name)
        if name in (subscribers if kind == "subscriber" else schedules):
            raise SectionError(f"{where}: stands in the file twice; choose another name")
        if kind == "subscriber":
            subscribers[name] = Declared(where, _subscriber(where, name, section.lines))
        else:
            schedules[name] = _schedule(where, name, section.lines)
    return Sections(tuple(subscribers.values()), tuple(schedules.values()))


def _name(where: str, header: str) -> str:
    try:
        return check_name(header.partition(" ")[2].strip())
    except ValueError as error:
        raise SectionError(f"{where}: the name {error}") from None


def _subscriber(where: str, name: str, lines: Iterable[ini.Line]) -> Subscriber:
    values = _values(lines, SUBSCRIBER_KEYS)
    if "topic" not in values:
        raise SectionError(f"{where}: topic is missing")
    if ("url" in values) == ("handler" in values):
        raise SectionError(f"{where}: give either url or handler")
    return Subscriber(name=name, declared=True, **values)


def _schedule(where: str, name: str, lines: Iterable[ini.Line]) -> Schedule:
    values = _values(lines, SCHEDULE_KEYS)
    if "topic" not in values:
        raise SectionError(f"{where}: topic is missing")
    if ("cron" in values) == ("every_ms" in values):
        raise SectionError(f"{where}: give either cron or every")
    return Schedule(name=name, declared=True, **values)


def _values(lines: Iterable[ini.Line], keys: dict[str, tuple[str, Parser]]) -> dict[str, Any]:
    """What the lines say, by the names of the fields. Keys without a value are as good as absent."""
    values: dict[str, Any] = {}
    for where, key, text in lines:
        if key not in keys:
            raise SectionError(f"{where}: {key}: unknown key; a section takes {', '.join(keys)}")
        field, parse = keys[key]
        if field in values:
            raise SectionError(f"{where}: {key}: set twice; keep one of them")
        if text:
            values[field] = _parsed(where, key, text, parse)
    return values


def _parsed(where: str, key: str, text: str, parse: Parser) -> object:
    try:
        return parse(text)
    except ValueError as error:
        shown = "" if key == "secret" else f" = {ini.printable(text)}"
        raise SectionError(f"{where}: {key}{shown}: {error}") from None


def _topic(text: str) -> str:
    if "," in text or len(text.encode()) > MAX_TOPIC_BYTES:
        raise ValueError(f"must be one topic, at most {MAX_TOPIC_BYTES} bytes")
    return text


def _whole(least: int, most: int) -> Parser:
    def parse(text: str) -> int:
        if not (re.fullmatch(r"-?[0-9]{1,9}", text) and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def _duration_ms(text: str) -> int:
    return retry.duration_ms(float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text)


def _every_ms(text: str) -> int:
    return check_every(_duration_ms(text))


def _ttr_ms(text: str) -> int:
    ttr_ms = _duration_ms(text)
    if ttr_ms % 1000 or not 1000 <= ttr_ms <= MAX_TTR_S * 1000:
        raise ValueError(f"must be 1 to {MAX_TTR_S} whole seconds")
    return ttr_ms


def _timeout_ms(text: str) -> int:
    return check_timeout(_duration_ms(text))


def _retry_ms(text: str) -> tuple[int, ...]:
    if text in retry.PRESETS:
        return retry.preset(text)
    try:
        return tuple(_duration_ms(part.strip()) for part in text.split(",", retry.MAX_STEPS - 1))
    except ValueError:
        raise ValueError(
            f"must be a preset ({', '.join(retry.PRESETS)}) or at most {retry.MAX_STEPS} delays: "
            "0s,2m,10m"
        ) from None


SUBSCRIBER_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "topic": ("topic", _topic),
    "order": ("order", _whole(-MAX_ORDER, MAX_ORDER)),
    "url": ("url", check_url),
    "handler": ("handler", check_handler),
    "timeout": ("timeout_ms", _timeout_ms),
    "retry": ("retry_ms", _retry_ms),
    "concurrency": ("concurrency", _whole(1, MAX_CONCURRENCY)),
    "secret": ("secret", check_secret),
}
SCHEDULE_KEYS: Final[dict[str, tuple[str, Parser]]] = {
    "topic": ("topic", _topic),
    "cron": ("cron", check_cron),
    "every": ("every_ms", _every_ms),
    "tz": ("tz", check_tz),
    "body": ("body", str),
    "ttr": ("ttr_ms", _ttr_ms),
    "catch_up": ("catch_up", check_catch_up),
}
