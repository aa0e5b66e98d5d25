"""A load that speaks beanstalkd's protocol: its clients replace `Api`, and put, reserve and delete."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, Final

from faults.checker import GONE
from faults.history import History
from faults.load import STALE, Load, Shape
from tests.api_client import HTTP_OK, OK, UNAVAILABLE, Api, Envelope
from tests.beanstalk.wire import Wire

BODY: Final = "body of "
# the server cannot do it now; it may have been done
REFUSED: Final = ("OUT_OF_MEMORY",)


class _Line:
    """A connection, opened when it is needed. Raises OSError if it breaks; the next command opens a new one."""

    def __init__(self, port: int, greeting: bytes) -> None:
        self._port = port
        self._greeting = greeting
        self._wire: Wire | None = None

    async def ask(self, command: bytes) -> tuple[list[str], str]:
        """The words of the answer, and the body that comes with it."""
        answer = b""
        try:
            with suppress(EOFError):
                if self._wire is None:
                    self._wire = await Wire.open(self._port)
                    await self._wire.ask(self._greeting)
                answer = await self._wire.ask(command)
            if not answer.endswith(b"\r\n"):
                raise ConnectionError(f"{command[:20]!r}: {answer!r}")
        except OSError:
            self.close()
            raise
        line, _, body = answer.partition(b"\r\n")
        return line.decode().split(), body[:-2].decode()

    def close(self) -> None:
        if self._wire:
            self._wire.close()
            self._wire = None


class BeanstalkApi(Api):
    """A producer and a worker of one topic. A job's id is in its body; only this object knows its number."""

    def __init__(self, port: int, topic: str, history: History) -> None:
        self._producer = _Line(port, b"use %b" % topic.encode())
        self._worker = _Line(port, b"watch %b" % topic.encode())
        self._history = history
        self._numbers: dict[str, int] = {}

    def close(self) -> None:
        self._producer.close()
        self._worker.close()

    async def push(self, **job: Any) -> Envelope:
        body = job["body"].encode()
        head = b"put 1024 %d %d %d\r\n" % (job["delay"], job["ttr"], len(body))
        words, _ = await self._producer.ask(head + body)
        return _answer(words, "INSERTED")

    async def pop(self, *_: object, **__: object) -> Envelope:
        """A job of the topic that it is for; waits for up to a second."""
        words, body = await self._worker.ask(b"reserve-with-timeout 1")
        if words[0] != "RESERVED":
            return _answer(words, "TIMED_OUT")
        job_id = body.removeprefix(BODY)
        self._numbers[job_id] = int(words[1])
        return _answer(words, "RESERVED", {"id": job_id, "body": body})

    async def call(self, path: str, payload: Any, *_: object) -> Envelope:
        if path == "/get":  # the states of jobs that are left: not all their numbers are known
            return _answer(["OK"], "OK")
        assert path == "/finish"
        return await self._delete(payload["id"])

    async def _delete(self, job_id: str) -> Envelope:
        number = self._numbers[job_id]
        try:
            words, _ = await self._worker.ask(b"delete %d" % number)
        except OSError:
            # its reservation ended with the connection
            self._history.invoke("release", [{"id": job_id}])
            raise
        if words != ["NOT_FOUND"]:
            return _answer(words, "DELETED")
        words, _ = await self._worker.ask(b"stats-job %d" % number)
        return _envelope(STALE if words[0] == "OK" else GONE)  # another worker has it by now


def _answer(words: list[str], expected: str, data: object = None) -> Envelope:
    """Raises AssertionError if the protocol has no such answer here."""
    assert words[0] in {expected, *REFUSED}, words
    return _envelope(OK if words[0] == expected else UNAVAILABLE, data)


def _envelope(code: int, data: object = None) -> Envelope:
    return Envelope(HTTP_OK, {}, code, "", data)


@asynccontextmanager
async def running(
    path: Path, topic: str, port: int, *, shape: Shape, seed: int
) -> AsyncIterator[Load]:
    """A load on the server that speaks the protocol at this port; its history goes to `path`."""
    with History(path) as history, ExitStack() as stack:
        clients = [
            stack.enter_context(closing(BeanstalkApi(port, topic, history)))
            for _ in range(max(shape.producers, shape.consumers))
        ]
        load = Load(history, topic, clients, shape, seed)
        try:
            yield load
        finally:
            load.cancel()
