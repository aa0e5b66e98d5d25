"""A client that sends raw bytes and returns the answers one by one."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final, cast

ANSWER_S: Final = 30.0
WITH_DATA: Final = {b"OK", b"RESERVED", b"FOUND"}


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def opened(cls, port: int, tls: ssl.SSLContext | None = None) -> "AsyncIterator[Wire]":
        """A connection for as long as the block runs."""
        wire = await cls.open(port, tls)
        try:
            yield wire
        finally:
            wire.close()

    @classmethod
    async def open(cls, port: int, tls: ssl.SSLContext | None = None) -> "Wire":
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=2**24))

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, within_s: float = ANSWER_S) -> bytes:
        """The next answer, with its data; b"" if the connection was closed."""
        async with asyncio.timeout(within_s):
            line = await self._reader.readline()
            word, _, rest = line.partition(b" ")
            if word not in WITH_DATA:
                return line
            return line + await self._reader.readexactly(int(rest.split()[-1]) + 2)

    async def ask(self, command: bytes) -> bytes:
        """The answer to a line, which is given without its CRLF."""
        await self.send(command + b"\r\n")
        return await self.answer()

    async def put(self, body: bytes, *numbers: int) -> int:
        """Put a job with this priority, delay and TTR. Returns its number."""
        priority, delay_s, ttr_s = (*numbers, *(1024, 0, 60)[len(numbers) :])
        answer = await self.ask(
            b"put %d %d %d %d\r\n%b" % (priority, delay_s, ttr_s, len(body), body)
        )
        word, number = answer.split()
        assert word == b"INSERTED", answer
        return int(number)

    async def reserve(self, within_s: int = 20) -> tuple[int, bytes]:
        """The number and the body of a job."""
        answer = await self.ask(b"reserve-with-timeout %d" % within_s)
        line, _, rest = answer.partition(b"\r\n")
        word, number, size = line.split()
        assert word == b"RESERVED", answer
        assert len(rest) == int(size) + 2
        return int(number), rest[:-2]

    async def stats(self, command: bytes) -> dict[str, str]:
        """The answer of `stats`, `stats-job` or `stats-tube`."""
        answer = (await self.ask(command)).decode()
        assert answer.startswith("OK "), answer
        lines = answer.splitlines()[2:]
        return dict(line.split(": ", 1) for line in lines if line)

    def read_nothing(self) -> None:
        """Read nothing that arrives."""
        cast("asyncio.ReadTransport", self._writer.transport).pause_reading()

    async def end(self) -> bytes:
        """Send nothing more. Returns all that still arrives."""
        with suppress(OSError):  # it may be closed by now
            self._writer.write_eof()
        async with asyncio.timeout(ANSWER_S):
            return await self._reader.read()

    async def rest(self) -> bytes:
        """All that arrives until the server closes."""
        async with asyncio.timeout(ANSWER_S):
            return await self._reader.read()

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        """Vanish without a word."""
        self._writer.transport.abort()


async def say_at_once(port: int, pieces: Iterable[bytes]) -> bytes:
    """All that a server answers to these pieces, sent one after the other, and then to the end of the connection."""
    async with Wire.opened(port) as wire:
        for piece in pieces:
            await wire.send(piece)
            await asyncio.sleep(0)
        return await wire.end()
