"""The cursor of a listing: opaque to clients, checked when it comes back."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Self
from zlib import crc32

from delayqueue.errors import Invalid, Text

BAD = Text("cursor 无效, 请用上一页返回的", "cursor: not one that this listing has returned")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page begins: in which bucket, in which of the listed states, at which place of the store's."""

    check: int  # of what is listed, so that a cursor serves its own listing only
    bucket: int = 0
    state: int = 0
    inner: str = ""

    @classmethod
    def read(cls, cursor: str, listing: tuple[object, ...]) -> Self:
        """The cursor that `text` wrote, or the first one for "". Invalid where it was made up."""
        check = crc32(repr(listing).encode())
        if not cursor:
            return cls(check)
        try:
            found = cls(*json.loads(urlsafe_b64decode(cursor.encode("ascii"))))
        except (ValueError, TypeError):
            raise Invalid(BAD) from None
        if found.check != check or found.text() != cursor:
            raise Invalid(BAD)
        return found

    def text(self) -> str:
        """The cursor as clients see it."""
        return urlsafe_b64encode(
            json.dumps([self.check, self.bucket, self.state, self.inner]).encode()
        ).decode()

    def after(self, inner: str, states: int) -> Self:
        """The cursor after a page of the store that ended at `inner`; "" = its bucket's and state's last one."""
        if inner:
            return type(self)(self.check, self.bucket, self.state, inner)
        if self.state + 1 < states:
            return type(self)(self.check, self.bucket, self.state + 1)
        return type(self)(self.check, self.bucket + 1)
