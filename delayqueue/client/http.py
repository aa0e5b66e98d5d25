"""HTTP for the clients: one request after the other over a kept-alive connection. No IO."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from delayqueue.client.api_request import Answer

MAX_HEAD_BYTES: Final = 65_536
VERSION: Final = b"HTTP/1."
REMEMBERED: Final = 16  # heads
MOST_DIGITS: Final = 16  # of a length in bytes
HEX: Final = b"0123456789abcdefABCDEF"


class BadResponse(Exception):
    """The server's answer is not valid HTTP."""


class _Head(NamedTuple):
    """The head of a response. `length` of the body in bytes; None = in chunks, or until the connection ends."""

    status: int
    keeps_alive: bool
    length: int | None
    is_chunked: bool
    retry_after: str | None


class Response:
    """Parses a response piece by piece. Afterwards `keeps_alive` says whether the connection may be used again."""

    def __init__(self) -> None:
        self.keeps_alive: bool = False
        self._data = bytearray()
        self._head: _Head | None = None
        self._chunks = bytearray()

    def feed(self, data: bytes) -> Answer | None:
        """Parse more bytes; returns the answer once it is complete. Raises BadResponse if it is not HTTP."""
        self._data += data
        while self._head is None:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                if len(self._data) > MAX_HEAD_BYTES or not self._may_be_http():
                    raise BadResponse(f"this is not HTTP: {bytes(self._data[:80])!r}")
                return None
            head = _read_head(bytes(self._data[:end]))
            del self._data[: end + 4]
            if head.status >= 200:  # else the final one follows
                self._head, self.keeps_alive = head, head.keeps_alive
        if self._head.is_chunked:
            return self._next_chunks(self._head)
        if self._head.length is None or len(self._data) < self._head.length:
            return None
        return self._answer(self._head, self._data)

    def end(self) -> Answer:
        """The answer, if the connection's end is also the body's end. Raises BadResponse if more was to come."""
        head = self._head
        if head is None or head.is_chunked or head.length is not None:
            raise BadResponse("the connection was closed before the answer was complete")
        return self._answer(head, self._data)

    def _may_be_http(self) -> bool:
        beginning = self._data[: len(VERSION)]
        return VERSION.startswith(beginning)

    def _next_chunks(self, head: _Head) -> Answer | None:
        while (end := self._data.find(b"\r\n")) >= 0:
            size = _chunk_bytes(bytes(self._data[:end]))
            if not size:  # trailers may follow
                return self._answer(head, self._chunks) if self._has_trailer(end) else None
            begin = end + 2
            if len(self._data) < begin + size + 2:
                return None
            self._chunks += self._data[begin : begin + size]
            del self._data[: begin + size + 2]
        return None

    def _has_trailer(self, end: int) -> bool:
        last = self._data.find(b"\r\n\r\n", end)
        if last < 0:
            return False
        del self._data[: last + 4]
        return True

    def _answer(self, head: _Head, body: bytearray) -> Answer:
        if head.length is not None and len(body) > head.length:
            self.keeps_alive = False  # more bytes than the answer has: no request asked for them
            del body[head.length :]
        elif head.is_chunked and self._data:
            self.keeps_alive = False
        return Answer(head.status, bytes(body), head.retry_after)


@lru_cache(REMEMBERED)  # a server sends the same head for a second: the time of day is in it
def _read_head(raw: bytes) -> _Head:
    first, *lines = raw.split(b"\r\n")
    version, _, status = first.partition(b" ")
    if not version.startswith(VERSION) or not status[:3].isdigit():
        raise BadResponse(f"this is not HTTP: {first[:80]!r}")
    headers = {}
    for line in lines:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    number = int(status[:3])
    is_chunked = b"chunked" in headers.get(b"transfer-encoding", b"").lower()
    length = None if is_chunked or number < 200 else _length(number, headers.get(b"content-length"))
    ends_with_connection = length is None and not is_chunked
    closes = b"close" in headers.get(b"connection", b"").lower()
    retry_after = headers.get(b"retry-after")
    return _Head(
        number,
        version == b"HTTP/1.1" and not closes and not ends_with_connection,
        length,
        is_chunked,
        None if retry_after is None else retry_after.decode("latin-1"),
    )


def _chunk_bytes(line: bytes) -> int:
    """The size of the chunk that begins so. Raises BadResponse if it has none."""
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > MOST_DIGITS or digits.strip(HEX):  # int() takes signs, too
        raise BadResponse(f"a chunk begins with {line[:80]!r}")
    return int(digits, 16)


def _length(status: int, told: bytes | None) -> int | None:
    """The length of the body by the head of the response; None = unknown. Raises BadResponse if it is no number."""
    if status in {204, 304}:
        return 0
    if told is not None and not (told.isdigit() and len(told) <= MOST_DIGITS):
        raise BadResponse(f"the answer's length is {told[:80]!r}")
    return None if told is None else int(told)
