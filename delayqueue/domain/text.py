"""Text that UTF-8 cannot hold: one with half of a surrogate pair in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HALF: Final = re.compile("[\ud800-\udfff]")


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
