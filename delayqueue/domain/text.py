"""Other people's text: what UTF-8 cannot hold, what moves a cursor, what is kept of errors and results. Pure.

Control characters move a cursor, or hide or reverse text; half of a surrogate pair has no place in UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from delayqueue.domain.job import MAX_MESSAGE_CHARS

_HALF: Final = re.compile("[\ud800-\udfff]")
# C0 without the line end, DEL and C1 (U+009B is what ESC [ is), ends of lines, and those that turn the direction
CONTROLS: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
LEAST_SECRET_CHARS: Final = 8


def not_unicode(text: str) -> str | None:
    """Why UTF-8 cannot hold the text; None = it can."""
    if text.isascii() or (half := _HALF.search(text)) is None:
        return None
    found = ord(half[0])
    is_byte = 0xDC80 <= found <= 0xDCFF  # of errors="surrogateescape": file names, arguments
    what = (
        f"the byte {found - 0xDC00:#x}" if is_byte else f"\\u{found:x}, half of a surrogate pair,"
    )
    return f"text that is not valid Unicode: {what} at character {half.start() + 1}"


def not_unicode_in(value: Any, place: str = "") -> str | None:
    """Why UTF-8 cannot hold a text in this JSON value, and which, such as "tags.0"; None = it can hold all."""
    if isinstance(value, str):
        why = not_unicode(value)
        return why and f"{place}: {why}"
    return next(filter(None, (not_unicode_in(one, at) for one, at in _parts(value, place))), None)


def _parts(value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """What an object or an array has in it, and where; the name of a member is at the object."""
    dot = "." if place else ""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield name, place
            yield one, f"{place}{dot}{name}"
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield one, f"{place}{dot}{number}"


def readable(text: str) -> str:
    """The text with U+FFFD for each byte that is not UTF-8 and that errors="surrogateescape" has kept."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def escaped(text: str, escape: str = "\\") -> str:
    r"""The text with \u001b for a control character; `escape` is the backslash as the text's format has it."""
    return CONTROLS.sub(lambda found: f"{escape}u{ord(found[0]):04x}", text)


def json_line(data: Any) -> str:
    """JSON that is safe to show on a terminal, and has the same value for programs."""
    return escaped(json.dumps(data, ensure_ascii=False))


def clean(text: str) -> str:
    """The start of the text, with escapes as in text_of()."""
    return _valid(text[:MAX_MESSAGE_CHARS])[:MAX_MESSAGE_CHARS]


def without(secrets: Iterable[str], text: str) -> str:
    """The text with "***" instead of each secret, also where JSON has escaped it.

    Of "Bearer abc", what follows the space is one by itself. What is shorter than LEAST_SECRET_CHARS stays.
    """
    parts = {part for each in secrets for part in (each, each.partition(" ")[2].strip())}
    long = {part for part in parts if len(part) >= LEAST_SECRET_CHARS}
    as_json = {json.dumps(part)[1:-1] for part in long}
    # the last ones: JSON as PHP writes it
    forms = long | as_json | {form.replace("/", "\\/") for form in as_json}
    for form in sorted(forms, key=len, reverse=True):  # one may be a part of another
        text = text.replace(form, "***")
    return text


def message_of(value: object) -> str:
    """The start of a return value as text, whatever its `__str__` does."""
    return clean(text_of(value))


def text_of(value: object) -> str:
    r"""A return value as text, whatever its `__str__` does; a dict, a list or a tuple as JSON.

    Lone surrogates, which UTF-8 does not have, are written as escapes: \udce9.
    """
    try:
        return _valid(_json(value) if isinstance(value, (dict, list, tuple)) else str(value))
    except BaseException as error:  # it is other people's code
        return f"({type(value).__name__}, whose text is not available: {type(error).__name__})"


def error_message(error: BaseException) -> str:
    """An exception as text, with its type."""
    text, kind = message_of(error), type(error).__name__
    return clean(f"{kind}: {text}" if text else kind)


def _json(value: object) -> str:
    """The value as JSON, with text for values that JSON lacks; if that is impossible, its Python notation."""
    try:
        return json.dumps(
            value, default=str, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except (TypeError, ValueError):  # keys, NaN
        return str(value)


def _valid(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
