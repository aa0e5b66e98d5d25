"""Requests and responses, whichever protocol carries them."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol

from delayqueue.net.later import Later

Warnings = dict[str, dict[str, None]]  # by header, the names in it, each once

SLASHES: Final = re.compile(r"/(?:\.?/)+")  # in //push, of a client whose base URL ends in a slash
SERVER: Final = "delay-queue"  # the header Server of answers; a version would help attackers only
# to look it up there takes Python 3.11 a third of a microsecond
HTTP_OK: Final = HTTPStatus.OK.value
# a header that the page at /admin sends; other programs need not
ADMIN_PAGE: Final = "x-admin-page"
JSON: Final[Mapping[str, str]] = {"Content-Type": "application/json; charset=utf-8"}

# A larger answer is written in pieces of this size: all at once, one of 12 MB kept the loop for up to 0.1 s.
PIECE_BYTES: Final = 256 * 1024


def without_slashes(path: str) -> str:
    """The path that the original redirects to from one with doubled slashes, or with /./ in it."""
    return SLASHES.sub("/", path)


@dataclass(slots=True, eq=False)
class HttpRequest:
    """A request, whichever protocol brought it.

    `path` is without query and %-escapes, `headers` are by their names in lower case, the first one of each name;
    `repeated` has the names that came more than once.
    `peer` is the client's address, None if it is not known. `warnings` are for the answer's headers.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    peer: str | None
    warnings: Warnings | None = None
    repeated: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class HttpResponse:
    """An answer. Nobody changes it: one that `repeats` is sent again and again."""

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    status: int = HTTP_OK
    repeats: bool = False


async def pieces(data: bytes) -> AsyncIterator[memoryview]:
    """The data piece by piece; the loop's other work gets its turn in between."""
    whole = memoryview(data)
    for start in range(0, len(data), PIECE_BYTES):
        yield whole[start : start + PIECE_BYTES]
        await asyncio.sleep(0)


class Peer(Protocol):
    """The client's end of a connection, for one request."""

    def read(self) -> asyncio.Future[bytes]:
        """The request's body, which has not arrived so far. Raises TooLarge, SlowRequest or TooMany."""

    def awaits(self, later: Later[Any], then: Callable[[asyncio.Future[Any]], object]) -> None:
        """The answer depends on `later`, whose call is cancelled if the client leaves; `then` is called at its end.

        With a `leave`, the call waits for something to happen: a client that closes its half of the connection leaves.
        """

    def write(
        self, response: HttpResponse, *, must_arrive: bool = False
    ) -> asyncio.Future[None] | None:
        """Write the answer. Raises ConnectionError if the client is gone.

        Returns what ends once all of it is sent, if that takes time, or it `must_arrive` and the client reads slowly;
        it is cancelled if the client leaves meanwhile.
        """
