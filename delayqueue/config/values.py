"""Parsers for the values of settings: text -> value.

They raise ValueError("must be ..."), which says what a good value looks like.
"""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from delayqueue.domain.access import TOPICS, Grant, GroupRole, parse_grant, parse_group_role
from delayqueue.domain.subscriber import check_secret
from delayqueue.store.keys import KEYS

EMBEDDED: Final = "embedded"
REDIS_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
MAX_PORT: Final = 65_535
MAX_TITLE_CHARS: Final = 64
COLOURS: Final = ("red", "orange", "green", "blue", "purple")

T = TypeVar("T")


class Address(NamedTuple):
    """An address to listen on or to connect to; the host "" is every interface."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def whole(least: int, most: int) -> Callable[[str], int]:
    number = r"-?[0-9]{1,18}" if least < 0 else r"[0-9]{1,18}"

    def parse(text: str) -> int:
        if not (re.fullmatch(number, text) and least <= int(text) <= most):
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    return lambda text: parse(text) if text else None


def choice(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text.lower()

    return parse


def title(text: str) -> str:
    _name, comma, colour = text.rpartition(",")
    if len(text) > MAX_TITLE_CHARS or (comma and colour.strip() not in COLOURS):
        raise ValueError(
            f"must be NAME or NAME, COLOUR with at most {MAX_TITLE_CHARS} characters, "
            f"the COLOUR one of {' '.join(COLOURS)}"
        )
    return text


def template(placeholder: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.count(placeholder) != 1 or "{" in text or "}" in text:
            raise ValueError(f"must contain {placeholder} once and no braces")
        return text

    return parse


def queue_name(text: str) -> str:
    before, after = template("%s")(text).split("%s")
    for key in KEYS:
        name, colon, _ = key.partition(":")
        own = name + colon
        if colon:  # there are many, of topics or tags
            meets = own.startswith(before) or before.startswith(own)
        else:
            is_longer = len(own) > len(before) + len(after)
            meets = is_longer and own.startswith(before) and own.endswith(after)
        if meets:
            raise ValueError(
                f"some topic's list would have the name of another key ({own}); "
                "let it begin with dq_queue_"
            )
    return text


def yes_no(text: str) -> bool:
    words = {"yes": True, "true": True, "on": True, "1": True}
    words |= {"no": False, "false": False, "off": False, "0": False}
    if text.lower() not in words:
        raise ValueError("must be yes or no")
    return words[text.lower()]


def workers(text: str) -> int:
    if text == "auto":
        return _cores()
    try:
        return whole(1, 256)(text)
    except ValueError as error:
        raise ValueError(f"{error} or auto") from None


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def wheel_slots(text: str) -> int:
    """Slots of the timing wheel: each must be a whole number of milliseconds."""
    slots = whole(60, 36_000)(text)
    if 3_600_000 % slots:
        raise ValueError("must divide an hour into whole milliseconds, as 3600, 7200 and 14400 do")
    return slots


def address(text: str, *, least_port: int = 0) -> Address:
    parts = re.fullmatch(r"(?:\[([0-9a-fA-F:.%]+)\]|([^\s:/\[\]]*)):([0-9]{1,5})", text)
    if not parts or not least_port <= int(parts[3]) <= MAX_PORT or not _is_host(parts[2] or ""):
        raise ValueError(
            f"must be HOST:PORT or [IPV6]:PORT with a port from {least_port} to {MAX_PORT}"
        )
    return Address(parts[1] or parts[2] or "", int(parts[3]))


def _is_host(name: str) -> bool:
    """Whether the name can be looked up: it has no zero bytes, and no part of it is empty or too long."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return "\0" not in name


def redis_host(text: str) -> Address | None:
    if text == EMBEDDED:
        return None
    try:
        found = address(text if re.search(r":[0-9]+$", text) else f"{text}:{REDIS_PORT}")
    except ValueError:
        raise ValueError(f"must be HOST:PORT or {EMBEDDED}") from None
    return found._replace(host=found.host or "127.0.0.1")


def addresses(default_port: int) -> Callable[[str], tuple[Address, ...]]:
    def parse(text: str) -> tuple[Address, ...]:
        parts = _parts(text)
        try:
            return tuple(_named(part, default_port) for part in parts)
        except ValueError:
            raise ValueError("must be HOST:PORT, HOST:PORT, ...") from None

    return parse


def _parts(text: str) -> list[str]:
    """The items between commas. Raises ValueError if there are none: an empty list is a mistake."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if text and not parts:
        raise ValueError("there is nothing between its commas; fill it in, or leave it empty")
    return parts


def _named(text: str, default_port: int) -> Address:
    """The address in HOST or HOST:PORT. Raises ValueError if the host is missing or the port is 0."""
    found = address(text if re.search(r":[0-9]+$", text) else f"{text}:{default_port}")
    if not found.host or not found.port:
        raise ValueError
    return found


def redis_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        # .port raises ValueError if it is not a port
        good = parts.scheme in {"redis", "rediss", "unix"} and parts.port != 0
        good = good and _is_host(parts.hostname or "") and "\0" not in parts.path
        # redis-py takes database 0 for /x, and 12 for /1/2
        good = good and (parts.scheme == "unix" or bool(re.fullmatch(r"(/[0-9]*)?/?", parts.path)))
    except ValueError:
        good = False
    if not good and text:
        raise ValueError(
            "must be redis://[USER:PASSWORD@]HOST:PORT/DB, rediss://... (TLS) or unix://PATH?db=DB"
        )
    return text


def path(text: str) -> Path:
    if "\0" in text:  # which no system call takes
        raise ValueError("must be a path, without zero bytes")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError("must be a path; there is no such user to take the place of ~") from None


file: Final = optional(path)


def grants(text: str) -> tuple[Grant, ...]:
    return tuple(map(parse_grant, _parts(text)))


def header(text: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*", text):
        raise ValueError("must be the name of a header such as Remote-User")
    return text


def group_roles(text: str) -> tuple[GroupRole, ...]:
    return tuple(map(parse_group_role, _parts(text)))


def topics(text: str) -> tuple[str, ...]:
    parts = tuple(_parts(text))
    if not all(map(TOPICS.fullmatch, parts)):
        raise ValueError("must be topics, or prefixes of topics and *, with commas between")
    return parts


def hosts(text: str) -> tuple[str | IPv4Network | IPv6Network, ...]:
    """Names, "*.example.com", addresses and networks."""
    return tuple(map(_host, _parts(text)))


def _host(text: str) -> str | IPv4Network | IPv6Network:
    with suppress(ValueError):
        return ip_network(text)
    name = text.lower().rstrip(".")
    if (
        not re.fullmatch(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*", name)
        or name.rpartition(".")[2].isdigit()
    ):
        raise ValueError(
            "must be hosts such as api.example.com, *.example.com, or networks such as 10.0.0.0/8"
        )
    return name


def call_secrets(text: str) -> tuple[tuple[str | None, str], ...]:
    """Topics and their secrets; that of None is for all other topics."""
    secrets: dict[str | None, str] = {}
    for part in _parts(text):
        found = re.fullmatch(r"(?:([^*]*[^*\s])\s*=\s*)?(whsec_.*)", part)
        if found is None:
            raise ValueError(
                "must be whsec_... or TOPIC=whsec_..., with commas between; no * in a TOPIC"
            )
        topic = found[1]
        if topic in secrets:
            raise ValueError("must have one secret for each topic, and one without a topic at most")
        secrets[topic] = check_secret(found[2])
    return tuple(secrets.items())


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    parts = _parts(text)
    try:
        return tuple(map(ip_network, parts))
    except ValueError as error:
        raise ValueError(f"must be networks such as 10.0.0.0/8, fd00::/8: {error}") from None
