"""The heads of plain requests: the part of HTTP that the express lane understands, strictly by RFC 9112.

And the heads of its answers.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple

from delayqueue.web.http import SERVER, HttpResponse

END: Final = b"\r\n\r\n"
END_BYTES: Final = len(END)
MAX_HEAD_BYTES: Final = 4096  # a longer head is not plain
# A client sends the same head again and again: the latest ones are cached. 0.1 µs instead of 3 to 6 (measured).
REMEMBERED: Final = 512  # they take 10 MB if somebody sends the longest ones

_REQUEST: Final = re.compile(rb"POST (/[a-z]+) HTTP/1\.1\r\n")
# each byte is read once: nothing that a client can send takes long to refuse
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]++):([\t\x20-\x7e]*+)\r\n")
_LENGTH: Final = re.compile("[0-9]{1,9}")
_MOST_FIELDS: Final = 128  # aiohttp refuses more
# Headers that ask for more than an answer to a body of known length.
_NOT_PLAIN: Final = frozenset(
    {"transfer-encoding", "content-encoding", "expect", "te", "trailer", "proxy-connection"}
)
# What else a connection that stays open can be asked: an offer to speak another protocol, as Java's HttpClient makes it
# on each new connection, may be ignored.
_STAYS_OPEN: Final = frozenset({"keep-alive", "upgrade", "http2-settings"})


class Head(NamedTuple):
    """Path and headers (by their names in lower case) of a plain request, and the length of its body in bytes.

    `closes`: the client wants to send no other request on this connection.
    """

    path: str
    headers: Mapping[str, str]
    length: int
    closes: bool


@lru_cache(REMEMBERED)
def read_head(raw: bytes) -> Head | None:
    """Parse bytes up to and including the empty line; None if they are not a plain head."""
    request = _REQUEST.match(raw)
    if request is None:
        return None
    headers: dict[str, str] = {}
    at, end = request.end(), len(raw) - 2
    while at < end:
        field = _FIELD.match(raw, at, end)
        if field is None:
            return None
        name = field[1].decode("ascii").lower()
        if name in headers:
            return None
        headers[name] = field[2].decode("ascii").strip(" \t")
        at = field.end()
    length = headers.get("content-length", "")
    connection = headers.get("connection", "keep-alive").lower()
    closes = connection == "close"
    if (
        "host" not in headers
        or len(headers) > _MOST_FIELDS
        or not _LENGTH.fullmatch(length)
        or not (closes or _STAYS_OPEN.issuperset(map(str.strip, connection.split(","))))
        or not _NOT_PLAIN.isdisjoint(headers)
    ):
        return None
    return Head(request[1].decode("ascii"), headers, int(length), closes)


def may_become_plain(beginning: bytes) -> bool:
    """Whether these bytes can be the start of a plain head."""
    return beginning[:6] == b"POST /"[: len(beginning)] and b"\n" not in beginning.replace(
        b"\r\n", b""
    )


def asked_by(head: bytes) -> tuple[str, str]:
    """Method and path, without the query, in any request's first line; two empty ones if it is not HTTP."""
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path, _, version = rest.partition(" ")
    return (method, path.partition("?")[0]) if version.startswith("HTTP/1.") else ("", "")


def start_of(response: HttpResponse) -> bytes:
    """An answer's first bytes, up to the value of its Content-Length.

    Raises ValueError if a header would end early.
    """
    lines = [f"HTTP/1.1 {response.status:d} {HTTPStatus(response.status).phrase}"]
    lines.append(f"Server: {SERVER}")
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header contains a line end")
    return "\r\n".join([*lines, "Content-Length: "]).encode()
