"""HTTP for the clients: one request after the other over a kept-alive connection. No IO."""

from __future__ import annotations

from typing import Final

from delayqueue.client.calls import Answer

MAX_HEAD_BYTES: Final = 65_536
VERSION: Final = b"HTTP/1."


class BadResponse(Exception):
    """The server's answer is not valid HTTP."""


class Response:
    """Parses a response piece by piece. Afterwards `keeps_alive` says whether the connection may be used again."""

    def __init__(self) -> None:
        self.keeps_alive: bool = False
        self._data = bytearray()
        self._status = 0  # 0 until the head is complete
        self._headers: dict[bytes, bytes] = {}
        # bytes of the body; None = in chunks, or until the connection ends
        self._length: int | None = None
        self._chunks: bytearray | None = None

    def feed(self, data: bytes) -> Answer | None:
        """Parse more bytes; returns the answer once it is complete. Raises BadResponse if it is not HTTP."""
        self._data += data
        while not self._status:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                if len(self._data) > MAX_HEAD_BYTES or not self._may_be_http():
                    raise BadResponse(f"this is not HTTP: {bytes(self._data[:80])!r}")
                return None
            self._read_head(bytes(self._data[:end]))
            del self._data[: end + 4]
        if self._chunks is not None:
            return self._next_chunks()
        if self._length is None or len(self._data) < self._length:
            return None
        return self._answer(self._data)

    def end(self) -> Answer:
        """The answer, if the connection's end is also the body's end. Raises BadResponse if more was to come."""
        if not self._status or self._chunks is not None or self._length is not None:
            raise BadResponse("the connection was closed before the answer was complete")
        return self._answer(self._data)

    def _may_be_http(self) -> bool:
        beginning = self._data[: len(VERSION)]
        return VERSION.startswith(beginning)

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        version, _, status = first.partition(b" ")
        if not version.startswith(VERSION) or not status[:3].isdigit():
            raise BadResponse(f"this is not HTTP: {first[:80]!r}")
        number = int(status[:3])
        if 100 <= number < 200:  # the final one follows
            return
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        self._status, self._headers = number, headers
        self.keeps_alive = (
            version == b"HTTP/1.1" and b"close" not in headers.get(b"connection", b"").lower()
        )
        self._find_length()

    def _find_length(self) -> None:
        length = self._headers.get(b"content-length")
        if b"chunked" in self._headers.get(b"transfer-encoding", b"").lower():
            self._chunks = bytearray()
        elif self._status in {204, 304}:
            self._length = 0
        elif length is None:
            self.keeps_alive = False
        elif length.isdigit():
            self._length = int(length)
        else:
            raise BadResponse(f"the answer's length is {length[:80]!r}")

    def _next_chunks(self) -> Answer | None:
        while (end := self._data.find(b"\r\n")) >= 0:
            try:
                size = int(self._data[:end].partition(b";")[0], 16)
            except ValueError:
                raise BadResponse(f"a chunk begins with {bytes(self._data[:80])!r}") from None
            if not size:  # trailers may follow
                return self._answer(self._chunks) if self._has_trailer(end) else None
            begin = end + 2
            if len(self._data) < begin + size + 2:
                return None
            assert self._chunks is not None  # noqa: S101  # for the type checker
            self._chunks += self._data[begin : begin + size]
            del self._data[: begin + size + 2]
        return None

    def _has_trailer(self, end: int) -> bool:
        last = self._data.find(b"\r\n\r\n", end)
        if last < 0:
            return False
        del self._data[: last + 4]
        return True

    def _answer(self, body: bytearray | None) -> Answer:
        body = body or bytearray()
        if self._length is not None and len(body) > self._length:
            self.keeps_alive = False  # more bytes than the answer has: no request asked for them
            del body[self._length :]
        elif self._chunks is not None and self._data:
            self.keeps_alive = False
        retry_after = self._headers.get(b"retry-after")
        return Answer(
            self._status,
            bytes(body),
            None if retry_after is None else retry_after.decode("latin-1"),
        )
