"""The receiver of webhooks: it answers as it is told, keeps the requests, and checks signatures with its own code."""

import asyncio
import base64
import hashlib
import hmac
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from tests.processes import LOOPBACK

KEY: Final = b"a key of twenty-four byte"
SECRET: Final = "whsec_" + base64.b64encode(KEY).decode()


@dataclass(frozen=True)
class Call:
    """One request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at_s: float  # unix time
    method: str = "POST"

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def is_signed(self, key: bytes = KEY) -> bool:
        """Whether the signature is that of this id, time and body."""
        timestamp = self.headers["webhook-timestamp"]
        signed = f"{self.id}.{timestamp}.".encode() + self.body
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(digest).decode()
        is_now = abs(int(timestamp) - time.time()) < 300
        return is_now and self.headers.get("webhook-signature") == expected


@dataclass
class Answer:
    """The answer to one call; `hold` = only once that is set."""

    status: int = 200
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    hold: asyncio.Event | None = None


class Receiver:
    """Gives each call of a path the next of its answers, and the last one from then on; 200 and "" if none is set."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: defaultdict[str, list[Answer]] = defaultdict(lambda: [Answer()])
        self.at_once: defaultdict[str, int] = defaultdict(int)
        self.most_at_once: defaultdict[str, int] = defaultdict(int)
        self.port = 0  # 0 = any that is free

    def url(self, path: str) -> str:
        return f"http://{LOOPBACK}:{self.port}/{path}"

    def says(self, path: str, *answers: Answer) -> str:
        """Set the answers of a path; returns its url."""
        self.answers[path] = list(answers)
        return self.url(path)

    def to(self, path: str) -> list[Call]:
        """The calls of a path."""
        return [call for call in self.calls if call.path == path]

    @property
    def paths(self) -> list[str]:
        """The paths that were called, in order."""
        return [call.path for call in self.calls]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path[1:]
        call = Call(path, dict(request.headers), await request.read(), time.time(), request.method)
        self.calls.append(call)
        queue = self.answers[path]
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        self.at_once[path] += 1
        self.most_at_once[path] = max(self.most_at_once[path], self.at_once[path])
        try:
            if answer.hold is not None:
                await answer.hold.wait()
        finally:
            self.at_once[path] -= 1
        return web.Response(status=answer.status, text=answer.text, headers=answer.headers)


@asynccontextmanager
async def receiving(receiver: Receiver | None = None) -> AsyncIterator[Receiver]:
    """A receiver, a new one if none is given, on its loopback port."""
    receiver = receiver or Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, receiver.port).start()
        receiver.port = runner.addresses[0][1]
        yield receiver
    finally:
        await runner.cleanup()
