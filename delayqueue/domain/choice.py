"""A choice of a few words."""

from enum import StrEnum
from typing import TypeVar

from delayqueue.errors import BadValue

Word = TypeVar("Word", bound=StrEnum)


def check_choice(kind: type[Word], text: str) -> Word:
    """The member with this value. Raises BadValue if there is none."""
    try:
        return kind(text)
    except ValueError:
        raise BadValue(f"只能是 {'、'.join(kind)}", f"must be one of {', '.join(kind)}") from None
