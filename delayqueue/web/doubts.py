"""What a request says that its client can hardly mean: a misspelt field, a unix time as delay.

The original takes both in silence, so they are answered as ever, with a header that names them; `strict = yes` refuses
them.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Final
from urllib.parse import quote

from delayqueue.errors import Invalid, Text
from delayqueue.web.http import Doubts, HttpRequest

UNKNOWN_FIELDS: Final = "X-Delayqueue-Unknown-Fields"
LONG_DELAY: Final = "X-Delayqueue-Long-Delay"
# what a header names at most; of a name so many characters
NAMES: Final = 16
NAME_CHARS: Final = 64
HEADER_BYTES: Final = 1000  # many clients take no more than 8 kB of headers


def note(request: HttpRequest, header: str, names: Iterable[str]) -> None:
    """Let the answer have this header with these names; what several jobs of an array have is named once."""
    request.doubts = request.doubts or {}
    found = request.doubts.setdefault(header, {})
    if len(found) < NAMES:
        found |= dict.fromkeys(name[:NAME_CHARS] for name in islice(names, NAMES))


def headers(noted: Doubts) -> Mapping[str, str]:
    """What was noted, as headers of the answer."""
    return {header: _listed(names) for header, names in noted.items()}


def _listed(names: Iterable[str]) -> str:
    """The names with commas between, as long as there is room."""
    listed = ""
    for name in islice(names, NAMES):
        longer = f"{listed}, {quote(name)}" if listed else quote(name)
        if len(longer) > HEADER_BYTES:
            break
        listed = longer
    return listed


def refuse_unknown(name: str, fields: Sequence[str]) -> None:
    """Raises Invalid, which names the unknown field and the one of `fields` that was meant."""
    name = name[:NAME_CHARS]
    meant = get_close_matches(name.lower(), fields, n=1)
    if meant:
        raise Invalid(
            Text(
                f"未知字段 {name}, 是否指 {meant[0]}?",
                f"{name}: unknown field; did you mean {meant[0]}?",
            )
        )
    raise Invalid(
        Text(
            f"未知字段 {name}, 可用字段: {', '.join(fields)}",
            f"{name}: unknown field; there are {', '.join(fields)}",
        )
    )


def refuse_long_delay(delay_s: float) -> None:
    """Raises Invalid, which tells how to send a unix time."""
    raise Invalid(
        Text(
            f"delay {delay_s:.0f} 超过一年, unix时间请用 due",
            f"delay {delay_s:.0f}: more than a year; a unix time is sent as due",
        )
    )
