"""Warnings of doubtful requests: a misspelt field, a unix time as delay, an id that is in use in another topic.

The original accepts them silently, so they are accepted, with a response header that names them; `strict = yes` refuses
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Final
from urllib.parse import quote

from delayqueue.errors import Invalid
from delayqueue.web.http import HttpRequest, Warnings

UNKNOWN_FIELDS: Final = "X-Delayqueue-Unknown-Fields"
LONG_DELAY: Final = "X-Delayqueue-Long-Delay"
OTHER_TOPICS: Final = "X-Delayqueue-Other-Topics"
# the most names in a header, and characters of a name
NAMES: Final = 16
NAME_CHARS: Final = 64
HEADER_BYTES: Final = 1000  # many clients accept no more than 8 kB of headers


def note(request: HttpRequest, header: str, names: Iterable[str]) -> None:
    """Add names to a header of the answer; a name that several jobs of an array share appears once."""
    request.warnings = request.warnings or {}
    found = request.warnings.setdefault(header, {})
    if len(found) < NAMES:
        found |= dict.fromkeys(name[:NAME_CHARS] for name in islice(names, NAMES))


def headers(noted: Warnings) -> Mapping[str, str]:
    """The warnings as headers of the answer."""
    return {header: _listed(names) for header, names in noted.items()}


def _listed(names: Iterable[str]) -> str:
    """The names with commas between, as far as they fit."""
    listed = ""
    for name in islice(names, NAMES):
        longer = f"{listed}, {quote(name)}" if listed else quote(name)
        if len(longer) > HEADER_BYTES:
            break
        listed = longer
    return listed


def refuse_unknown(name: str, fields: Sequence[str]) -> None:
    """Raises Invalid with the unknown field and the one of `fields` that it resembles."""
    name = name[:NAME_CHARS]
    if not fields:
        raise Invalid.of(
            f"未知字段 {name}，此请求没有字段", f"{name}: unknown field; this request has none"
        )
    # compare only the last part of the names: all have the same path before it
    path = "".join(fields[0].rpartition(".")[:2])
    own = [each[len(path) :] for each in fields]
    meant = [path + each for each in get_close_matches(name[len(path) :].lower(), own, n=1)]
    if meant:
        raise Invalid.of(
            f"未知字段 {name}，是否指 {meant[0]}？",
            f"{name}: unknown field; did you mean {meant[0]}?",
        )
    raise Invalid.of(
        f"未知字段 {name}，可用字段：{'、'.join(fields)}",
        f"{name}: unknown field; there are {', '.join(fields)}",
    )


def refuse_long_delay(field: str, delay_s: float, *, has_due: bool) -> None:
    """Raises Invalid with the way to send a unix time, if the request has one."""
    zh, en = (
        ("unix时间请用 due", "send a unix time as due")
        if has_due
        else ("须为从现在起的秒数，不是unix时间", "give seconds from now, not a unix time")
    )
    raise Invalid.of(
        f"{field} {delay_s:.0f} 超过一年，{zh}", f"{field} {delay_s:.0f}: more than a year; {en}"
    )
