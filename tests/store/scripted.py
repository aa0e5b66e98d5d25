"""A server that answers with what a test says, when it says it, and what calls it through our pipelines."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import hiredis
from redis.asyncio import ConnectionPool

from delayqueue.store.connect import our_driver
from delayqueue.store.connection import Links
from delayqueue.store.server import Pipeline
from tests.processes import LOOPBACK
from tests.waiting import until

SECONDS: Final = 10.0
PLACES: Final = 6
LOGIN: Final = b"CLIENT"
CUT: Final = b"CUT"  # here the connection ends
Say = Callable[[int, list[bytes]], Coroutine[Any, Any, bytes]]


class Call(asyncio.Future[Any]):
    """A call as a pipeline takes it, and the future of its answer; cancelled before it is sent, it is not sent."""

    def __init__(self, *words: Any) -> None:
        super().__init__()
        self.packed: Final[bytes] = hiredis.pack_command(words)
        self.made_s: Final = time.monotonic()

    @property
    def waiter(self) -> asyncio.Future[Any] | None:
        return self

    def answered(self, answer: Any) -> None:
        if not self.done():  # it was given up
            self.set_result(answer)

    def failed(self, error: Exception) -> None:
        self.set_exception(error)


class Server:
    """It answers with what `say(connection, words)` gives; connections count from 0."""

    def __init__(self, say: Say) -> None:
        self.port = 0
        self.connections = 0
        self._say = say
        self._tasks = set[asyncio.Task[None]]()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Self]:
        async with await asyncio.start_server(self._accept, LOOPBACK) as listener:
            self.port = listener.sockets[0].getsockname()[1]
            yield self
            for task in self._tasks:
                task.cancel()
            await until(lambda: not self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(self.connections, reader, writer))
        self.connections += 1
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        parser = hiredis.Reader()
        try:
            while data := await reader.read(1 << 16):
                parser.feed(data)
                while (words := parser.gets()) is not False:
                    said = await self._say(connection, words)
                    writer.write(said.removesuffix(CUT))
                    if said.endswith(CUT):
                        return
        except ConnectionError:
            return
        finally:
            writer.close()


@asynccontextmanager
async def links_to(
    say: Say, most: int = PLACES, wait_s: float = SECONDS, **options: Any
) -> AsyncIterator[tuple[Links, Server]]:
    async with Server(say).listening() as server:
        pool = ConnectionPool(host=LOOPBACK, port=server.port, driver_info=our_driver(), **options)
        links = Links(pool, most, wait_s)
        yield links, server
        await links.aclose()


def made(way: Pipeline, *words: Any) -> Call:
    call = Call(*words)
    way.send(call)
    return call


async def answers(*calls: Awaitable[Any]) -> list[Any]:
    """Their answers or errors; each must have one in time."""
    async with asyncio.timeout(3 * SECONDS):
        return await asyncio.gather(*calls, return_exceptions=True)
