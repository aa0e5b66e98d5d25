"""A small client for tests: it sends any request, valid or not, and shows the whole answer."""

import io
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from delayqueue.web.endpoints import ENDPOINTS

Json = dict[str, Any]

HTTP_OK: Final = 200
OK: Final = 0
NO_SUCH_JOB: Final = 2
INVALID: Final = 1
EXISTS: Final = 5
UNAVAILABLE: Final = 6
UNAUTHORIZED: Final = 7
FORBIDDEN: Final = 8
TOO_LARGE: Final = 9
TOO_MANY: Final = 10

# the codes that each endpoint declares
DECLARED: Final = {one.path: {OK, *(error.code for error in one.errors)} for one in ENDPOINTS}
TIMEOUT_S: Final = 120.0  # longer than any poll
LARGE_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Envelope:
    """An answer: the HTTP status and headers, and the three members that every answer has."""

    status: int
    headers: Mapping[str, str]
    code: int
    message: str
    data: Any

    def ok(self) -> Any:
        """The data of an answer that must be a success."""
        assert (self.status, self.code) == (HTTP_OK, OK), self
        return self.data

    def refused(self, code: int = INVALID, status: int = HTTP_OK) -> str:
        """The message of an answer that must be this error."""
        assert (self.status, self.code, self.data) == (status, code, None), self
        assert self.message, self
        return self.message


class Api:
    """The server at `url`; one method for each endpoint."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def request(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Envelope:
        """Send raw bytes. The answer must be an envelope, whatever its status; its code must be declared."""
        # aiohttp warns of large bytes, which it would copy in one piece
        data = io.BytesIO(content) if len(content) > LARGE_BYTES else content
        async with self.session.request(
            method, self.url + path, data=data, headers=headers
        ) as response:
            answer = json.loads(await response.read())
            assert list(answer) == ["code", "message", "data"], answer
            envelope = Envelope(response.status, response.headers, **answer)
        # a code with another status is one of any request
        if envelope.status == HTTP_OK and path in DECLARED:
            assert envelope.code in DECLARED[path], f"@endpoint({path!r}) lacks its error: {answer}"
        return envelope

    async def call(
        self, path: str, payload: object, headers: Mapping[str, str] | None = None
    ) -> Envelope:
        """POST any value as JSON."""
        return await self.request("POST", path, json.dumps(payload).encode(), headers)

    async def push(self, **job: object) -> Envelope:
        return await self.call("/push", {"ttr": 60} | job)

    async def push_all(self, jobs: Sequence[Json]) -> Envelope:
        return await self.call("/push", [{"ttr": 60} | job for job in jobs])

    async def pop(self, topic: str, *, timeout: float = 20, **options: object) -> Envelope:
        return await self.call("/pop", {"topic": topic, "timeout": timeout} | options)

    async def finish(self, job_id: str, **options: object) -> Envelope:
        return await self.call("/finish", {"id": job_id} | options)

    async def delete(self, job_id: str) -> Envelope:
        return await self.call("/delete", {"id": job_id})

    async def get(self, job_id: str) -> Envelope:
        return await self.call("/get", {"id": job_id})


@dataclass(frozen=True)
class Sent:
    """A job that was pushed, and the earliest unix second at which it may be delivered."""

    id: str
    due_s: float


async def push_due_in(api: Api, delay_s: float, **job: Any) -> Sent:
    """Push a job that is due in `delay_s` seconds."""
    before_s = time.time()
    (await api.push(delay=delay_s, **job)).ok()
    return Sent(job["id"], before_s + delay_s)


@asynccontextmanager
async def open_api(
    url: str,
    token: str = "",
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Api]:
    """A client with as many connections as it needs, its token if it has one, and these headers with each request."""
    connector = aiohttp.TCPConnector(limit=0, ssl=tls or True)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    headers = dict(headers or {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, headers=headers
    ) as session:
        yield Api(session, url)
