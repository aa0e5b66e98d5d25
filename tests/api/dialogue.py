"""Sends bytes to a server and reads what comes back: what a client can see."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.processes import LOOPBACK

STATUS: Final = re.compile(
    rb"HTTP/\d\.\d \d{3} "
)  # aiohttp answers in the version that it was asked in
ANSWER_S: Final = 20.0
LAST: Final = "the-last-request"
# aiohttp's own name, and headers that the reader of answers needs
NOT_COMPARED: Final = frozenset({"server", "content-length"})
OF_ITS_OWN: Final = frozenset({"id", "delay", "due", "created"})  # of each job
NOT_HTTP: Final = "不是有效的HTTP请求"


def post(path: str, payload: object, headers: Mapping[str, str] | None = None) -> bytes:
    """A request; `payload` is sent as JSON."""
    body = json.dumps(payload).encode()
    lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """Status and JSON of the next answer, which may come before its request is complete."""
    async with asyncio.timeout(ANSWER_S):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        [length] = re.findall(r"(?i)^content-length: (\d+)\r$", head, re.MULTILINE)
        return int(head.split()[1]), json.loads(await reader.readexactly(int(length)))


@dataclass(frozen=True)
class Answer:
    """One answer. `body` is the JSON in it, else its bytes; `headers` by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Seen:
    """All answers, and whether the server would have answered more on this connection.

    `was_reset`: a server that closes a connection before it has read all resets it, and answers on their way are lost.
    """

    answers: tuple[Answer, ...]
    stays_open: bool
    was_reset: bool = field(compare=False)


def last_request(request_id: str = LAST, job: str = "-") -> bytes:
    """A request that shows whether the connection is still open."""
    body = f'{{"id":"{job}"}}'
    head = ["POST /get HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*head, f"X-Request-Id: {request_id}", "", body]).encode()


async def talk(port: int, pieces: Iterable[bytes], *, pause_s: float, quiet_s: float) -> Seen:
    """Send the pieces, each after a pause; when nothing has come for `quiet_s`, close our side, and read to the end."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    got = Received()
    reading = asyncio.create_task(got.read(reader))
    try:
        for piece in pieces:
            if writer.is_closing():
                break
            writer.write(piece)
            await asyncio.sleep(pause_s)
        await asyncio.wait([reading], timeout=quiet_s)
        if not reading.done() and not writer.is_closing():
            writer.write_eof()
        async with asyncio.timeout(ANSWER_S):
            await reading
    finally:
        writer.transport.abort()
    answers, left = _read(got.content)
    assert got.was_reset or not left, left
    last = [n for n, each in enumerate(answers) if each.headers.get("x-request-id") == LAST]
    return Seen(tuple(answers[: last[0]] if last else answers), bool(last), got.was_reset)


class Received:
    """What has come so far, and whether a reset ended it."""

    def __init__(self) -> None:
        self.content = b""
        self.was_reset = False

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Read to the end."""
        try:
            while more := await reader.read(1 << 16):
                self.content += more
        except ConnectionError:
            self.was_reset = True


def _read(got: bytes) -> tuple[list[Answer], bytes]:
    """The answers in these bytes, and what is left."""
    found = []
    while STATUS.match(got) and b"\r\n\r\n" in got:
        head, _, rest = got.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name.lower() not in headers, f"{name} twice"
            headers[name.lower()] = value
        length = int(headers.get("content-length", 0))
        if STATUS.match(rest) or not rest:  # the answer to a HEAD
            length = 0
        if len(rest) < length:
            break
        found.append(Answer(int(first.split()[1]), _compared(headers), _body(rest[:length])))
        got = rest[length:]
    return found, got


def _compared(headers: dict[str, str]) -> dict[str, str]:
    if "date" in headers:
        assert headers["date"].endswith(" GMT")
        headers["date"] = "a date"
    return {name: value for name, value in headers.items() if name not in NOT_COMPARED}


def _body(raw: bytes) -> Any:
    try:
        return json.loads(raw, object_hook=_lasting)
    except ValueError:
        return raw


def _lasting(found: dict[str, Any]) -> dict[str, Any]:
    """Without ids and times, and without why something is not HTTP: the parsers word and place it differently."""
    if str(found.get("message")).startswith(NOT_HTTP):
        found["message"] = NOT_HTTP
    return {name: value for name, value in found.items() if name not in OF_ITS_OWN}
