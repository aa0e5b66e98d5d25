"""Requests and responses, whichever protocol carries them."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol

Warnings = dict[str, dict[str, None]]  # by header, the names in it, each once

# Requests to these always wait (HttpRequest.waits).
WAITING_PATHS: Final = frozenset({"/pop"})
SLASHES: Final = re.compile(r"/(?:\.?/)+")  # in //push, of a client whose base URL ends in a slash
SERVER: Final = "delay-queue"  # the header Server of answers; a version would help attackers only
HTTP_OK: Final = (
    HTTPStatus.OK.value
)  # to look it up there takes Python 3.11 a third of a microsecond
ADMIN_PAGE: Final = (
    "x-admin-page"  # a header that the page at /admin sends; other programs need not
)
JSON: Final[Mapping[str, str]] = {"Content-Type": "application/json; charset=utf-8"}

# A larger answer is written in pieces of this size: all at once, one of 12 MB kept the loop for up to 0.1 s.
PIECE_BYTES: Final = 256 * 1024


def without_slashes(path: str) -> str:
    """The path that the original redirects to from one with doubled slashes, or with /./ in it."""
    return SLASHES.sub("/", path)


@dataclass(slots=True, eq=False)
class HttpRequest:
    """One request.

    `path` is without query and %-escapes, `headers` are by their names in lower case, the first one of each name;
    `repeated` has the names that came more than once.
    `peer` is the client's address, None if it is not known. `warnings` are for the answer's headers. `waits`: for
    something to happen; if its client closes the connection, or its half of it, it counts as gone.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    peer: str | None
    body: bytes | None = None
    warnings: Warnings | None = None
    waits: bool = False
    repeated: frozenset[str] = frozenset()

    async def read(self) -> bytes:
        """The whole body. Raises TooLarge, SlowRequest or TooMany."""
        return self.body or b""


@dataclass(slots=True, eq=False)
class HttpResponse:
    """One answer. `must_arrive`: its sender waits until all of it is sent."""

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    status: int = HTTP_OK
    must_arrive: bool = False


async def pieces(data: bytes) -> AsyncIterator[memoryview]:
    """The data piece by piece; the loop's other work gets its turn in between."""
    whole = memoryview(data)
    for start in range(0, len(data), PIECE_BYTES):
        yield whole[start : start + PIECE_BYTES]
        await asyncio.sleep(0)


class Peer(Protocol):
    """The client's end of a connection, to which the answer is written."""

    async def send(self, response: HttpResponse) -> None:
        """Write the answer; one that must arrive is waited for. Raises ConnectionError if the client is gone."""


class DirectPeer(Peer, Protocol):
    """A receiver that need not wait to write."""

    # what the answer waits for; if the client leaves, it is cancelled
    pending: asyncio.Future[Any] | None

    def write(self, response: HttpResponse) -> asyncio.Future[None] | None:
        """Write the answer. Raises ConnectionError if the client is gone.

        Returns what ends once all of it is sent, if it must arrive and the client reads it slowly.
        """
