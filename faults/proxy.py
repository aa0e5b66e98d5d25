"""A TCP proxy that breaks connections as networks do."""

import asyncio
from contextlib import suppress
from typing import Final, Self

from tests.processes import LOOPBACK, free_port

CHUNK_BYTES: Final = 65_536
TURNS: Final = 10  # of the loop, in which a connection that was accepted just now becomes a link


class Proxy:
    """Passes connections on to `target_port` while the `async with` block runs."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.delay_s = 0.0  # before each piece of an answer is passed on
        self._target_port = target_port
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._server:
            self._server.close()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        while self._links:
            self.cut()
            await asyncio.sleep(0)

    def cut(self) -> None:
        """Reset all connections."""
        for link in list(self._links):
            link.cut()

    def half_open(self) -> None:
        """All present connections stay open and carry nothing more; new ones work."""
        for link in self._links:
            link.silent = True

    def hold(self) -> None:
        """What is sent on the present connections is kept, even if its sender gives up; new ones work."""
        for link in self._links:
            link.flows.clear()

    async def let_go(self) -> None:
        """Pass on what was kept, and wait until all of it has an answer, but for connections that are half open."""
        holding = [link for link in self._links if link.keeps and not link.silent]
        for link in self._links:
            link.flows.set()
        for link in holding:
            await link.answered.wait()

    def drop_next_answers(self) -> None:
        """On each present connection: the next answer is swallowed and the connection reset."""
        for link in self._links:
            link.drops_answer = True

    async def _accept(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        link = _Link(self, client, answers)
        self._links.add(link)
        try:
            await link.run(self._target_port)
        finally:
            self._links.discard(link)


class _Link:
    """One connection through the proxy."""

    def __init__(
        self, proxy: Proxy, client: asyncio.StreamReader, answers: asyncio.StreamWriter
    ) -> None:
        self.silent = False
        self.drops_answer = False
        self.flows = asyncio.Event()
        self.flows.set()
        self.keeps = False  # something that came while it did not flow
        self.answered = asyncio.Event()  # set by each answer
        self._proxy = proxy
        self._client = client
        self._writers = [answers]

    async def run(self, target_port: int) -> None:
        with suppress(OSError):
            target, requests = await asyncio.open_connection(LOOPBACK, target_port)
            self._writers.append(requests)
            passing = (self._pass_requests(requests), self._pass_answers(target))
            tasks = [asyncio.create_task(one) for one in passing]
            _, other = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in other:
                task.cancel()
        self.cut()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _pass_requests(self, requests: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while content := await self._client.read(CHUNK_BYTES):
                if not self.flows.is_set():
                    await self._keep()
                if not self.silent:
                    requests.write(content)
                    await requests.drain()
                if self.keeps:
                    await self.answered.wait()

    async def _keep(self) -> None:
        """Wait until it flows again."""
        self.answered.clear()
        self.keeps = True
        await self.flows.wait()

    async def _pass_answers(self, target: asyncio.StreamReader) -> None:
        answers = self._writers[0]
        with suppress(OSError):
            while content := await target.read(CHUNK_BYTES):
                self.answered.set()
                if self.drops_answer:
                    return
                await asyncio.sleep(self._proxy.delay_s)
                if not self.silent:
                    answers.write(content)
                    await answers.drain()
