"""The cursor of a listing: opaque to clients, checked when it comes back.

A made-up cursor gives access to nothing that the listing does not show anyway: it only says where to go on.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable
from typing import Annotated, Final, TypeVar
from zlib import crc32

from pydantic import StringConstraints, TypeAdapter

from delayqueue.errors import Invalid, Text

BAD = Text("cursor 无效，请用上一页返回的", "cursor: not one that this listing returned")
MOST_NUMBER: Final = 10**9
# a topic with thousands of jobs in many buckets has two marks for each
MOST_CHARS: Final = 1024 * 1024
# bytes as latin-1, as an id; and a mark as _marks.lua writes it
Raw = Annotated[str, StringConstraints(pattern=r"^[\x00-\xff]+$")]
Mark = Annotated[str, StringConstraints(pattern=r"^g?(?:[0-9]{1,15} [\x00-\xff]+)?$")]

Place = TypeVar("Place")
Item = TypeVar("Item")


def write_cursor(listing: tuple[object, ...], number: int, place: str) -> str:
    """The cursor with which this listing continues at that place."""
    return urlsafe_b64encode(json.dumps([_check(listing), number, place]).encode()).decode()


def read_cursor(cursor: str, listing: tuple[object, ...]) -> tuple[int, str]:
    """The arguments of write_cursor(); 0 and "" for "". Raises Invalid if the cursor was made up."""
    if not cursor:
        return 0, ""
    try:
        check, number, place = json.loads(urlsafe_b64decode(cursor[:MOST_CHARS].encode("ascii")))
    except (ValueError, TypeError, RecursionError):
        raise Invalid(BAD) from None
    is_sound = type(number) is int and 0 <= number <= MOST_NUMBER and isinstance(place, str)
    if check != _check(listing) or not is_sound:
        raise Invalid(BAD)
    return number, place


def read_place(kind: TypeAdapter[Place], place: str) -> Place:
    """The JSON in a cursor's place. Raises Invalid if it cannot have been written."""
    try:
        return kind.validate_json(place, strict=True)
    except ValueError:
        raise Invalid(BAD) from None


def page_of(
    items: list[Item],
    key: Callable[[Item], tuple[str | int, ...]],
    listing: tuple[object, ...],
    limit: int,
    cursor: str,
) -> tuple[list[Item], str]:
    """At most `limit` of the items, which are sorted by `key`; and the cursor of the next page, "" at the end.

    What comes and goes between two pages moves none of the others. Raises Invalid if the cursor was made up.
    """
    start = 0
    if cursor:
        _, place = read_cursor(cursor, listing)
        try:
            start = bisect_right(items, tuple(json.loads(place)), key=key)
        except (ValueError, TypeError):
            raise Invalid(BAD) from None
    page, has_more = items[start : start + limit], start + limit < len(items)
    return page, write_cursor(listing, 0, json.dumps(key(page[-1]))) if has_more else ""


def _check(listing: tuple[object, ...]) -> int:
    return crc32(repr(listing).encode())
