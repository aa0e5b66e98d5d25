"""Parses bytes into commands exactly as beanstalkd does. No IO.

A line is searched for in 224 bytes: up to the first CR, which must be followed by LF. If those bytes are full without
one, they are discarded, and so is everything up to the next end of a line; the answer is BAD_FORMAT.
"""

import re
from typing import Final

from delayqueue.beanstalk.commands import (
    BAD_FORMAT,
    MOST_U32,
    OUT_OF_MEMORY,
    PUT,
    WHOLE,
    Command,
    Refusal,
    is_http,
    parse_line,
)

LINE_BYTES: Final = 224  # including its CRLF: beanstalkd's LINE_BUF_SIZE
END: Final = b"\r\n"

JOB_TOO_BIG: Final = Refusal(b"JOB_TOO_BIG\r\n", PUT)
GIVEN_UP: Final = Refusal(OUT_OF_MEMORY, PUT)
EXPECTED_CRLF: Final = Refusal(b"EXPECTED_CRLF\r\n", PUT)
BAD_PUT: Final = Refusal(BAD_FORMAT.answer, PUT)
NOTHING: Final = bytearray()
Put = tuple[int, int, int, int]  # priority, delay, TTR, size of the body

_PUT: Final = re.compile(rb"put +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+)")


class Parser:
    """One client's input. `feed` takes the bytes, `next` returns the commands one by one."""

    __slots__ = (
        "_at",
        "_body",
        "_data",
        "_is_too_long",
        "_most_bytes",
        "_put",
        "_skip_bytes",
        "_skipping",
    )

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes  # of a job's body
        self._data = b""
        self._at = 0  # parsed up to here
        self._is_too_long = False  # the rest of a line is being discarded
        self._skip_bytes = 0  # left of a body that is not taken
        self._skipping = JOB_TOO_BIG  # why
        self._put: Put | None = None  # waiting for the rest of its body
        self._body = NOTHING  # what has arrived of it

    @property
    def pending_bytes(self) -> int:
        """How many bytes have arrived that are not part of a command yet, without those of a body."""
        return len(self._data) - self._at

    @property
    def held_bytes(self) -> int:
        """How many bytes have arrived that are not part of a complete command."""
        return self.pending_bytes + len(self._body)

    def give_up(self) -> bool:
        """Refuse the put whose body is still arriving. Returns whether there is one."""
        if self._put is None:
            return False
        missing = self._put[3] + len(END) - len(self._body)
        if not missing:  # it is complete, and waits for its turn
            return False
        self._skip_bytes, self._skipping = missing, GIVEN_UP
        self._put, self._body = None, NOTHING
        return True

    def feed(self, data: bytes) -> int:
        """Add bytes that have arrived. Returns how many are held now."""
        if self._put is not None:
            missing = self._put[3] + len(END) - len(self._body)
            self._body += data[:missing]
            data = data[missing:]
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0
        return len(self._data) + len(self._body)

    def next(self) -> Command | Refusal | None:
        """The next command, or the answer to a bad one; None = incomplete."""
        if self._put is not None:
            return self._rest_of_body(self._put)
        if self._skip_bytes:
            return self._skipped()
        if self._at == len(self._data):  # as mostly: a client waits for its answer
            self._data, self._at = b"", 0
            return None
        line = self._line()
        if line is None:
            return None
        if self._is_too_long or b"\0" in line:
            self._is_too_long = False
            return BAD_FORMAT
        found = _PUT.match(line)
        return self._begin_put(found, line) if found else WHOLE.get(line) or parse_line(line)

    def _line(self) -> bytes | None:
        """The next line without its CRLF; if `_is_too_long`, the rest of one."""
        data, at = self._data, self._at
        while True:
            end = data.find(b"\r", at, at + LINE_BYTES - 1)
            if end >= 0 and data[end + 1 : end + 2] == b"\n":
                self._at = end + len(END)
                return data[at:end]
            if len(data) - at < LINE_BYTES:
                self._data, self._at = data[at:], 0
                return None
            if is_http(data[at : at + LINE_BYTES]):
                self._at = at + LINE_BYTES
                return data[at : self._at]
            self._is_too_long = True
            at += LINE_BYTES

    def _begin_put(self, found: re.Match[bytes], line: bytes) -> Command | Refusal | None:
        priority, delay_s, ttr_s, size = map(int, found.groups())
        if max(priority, delay_s, ttr_s, size) > MOST_U32:
            return BAD_FORMAT
        if size > self._most_bytes:
            self._skip_bytes, self._skipping = size + len(END), JOB_TOO_BIG
            return self._skipped()
        if found.end() < len(line):
            return BAD_PUT
        data, at = self._data, self._at
        end = at + size
        if len(data) < end + len(END):
            self._put = priority, delay_s, ttr_s, size
            self._body = bytearray(data[at:])
            self._data, self._at = b"", 0
            return None
        self._at = end + len(END)
        if data[end : self._at] != END:
            return EXPECTED_CRLF
        return Command(PUT, (priority, delay_s, ttr_s, data[at:end]))

    def _rest_of_body(self, put: Put) -> Command | Refusal | None:
        *numbers, size = put
        if len(self._body) < size + len(END):
            return None
        body, ending = bytes(self._body[:size]), bytes(self._body[size:])
        self._put, self._body = None, NOTHING
        return Command(PUT, (*numbers, body)) if ending == END else EXPECTED_CRLF

    def _skipped(self) -> Refusal | None:
        """Discard what has arrived of a body that is not taken; returns the answer once that is all."""
        dropped = min(self._skip_bytes, self.pending_bytes)
        self._at += dropped
        self._skip_bytes -= dropped
        return None if self._skip_bytes else self._skipping
