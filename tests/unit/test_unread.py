"""A client that does not read its answer is cut off: after a time, or at once if too much is unread by such clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, cast

from delayqueue.net.unread import Unread
from tests.processes import LOOPBACK
from tests.waiting import until, until_async

ANSWER: Final = b"x" * (8 << 20)  # more than the system buffers for a client


class Connection(asyncio.Protocol):
    """Writes its answer when it is made."""

    def __init__(self, unread: Unread, made: "list[Connection]") -> None:
        self._unread = unread
        self._made = made
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._unread.watch(self.transport)
        self._made.append(self)
        self.transport.write(ANSWER)

    def pause_writing(self) -> None:
        self._unread.stalled(self.transport, len(ANSWER))

    def resume_writing(self) -> None:
        self._unread.forget(self.transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._unread.forget(self.transport)
        self.is_lost = True


@asynccontextmanager
async def clients(
    unread: Unread, count: int
) -> AsyncIterator[tuple[list[Connection], list[socket.socket]]]:
    """Clients in the order in which they came, and the server's side of each."""
    made: list[Connection] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(unread, made), LOOPBACK, 0)
    sockets = []
    for _ in range(count):
        client = socket.socket()
        client.setblocking(False)
        await loop.sock_connect(client, server.sockets[0].getsockname())
        sockets.append(client)
        await until(lambda: len(made) == len(sockets))
    try:
        yield made, sockets
    finally:
        server.close()
        for client in sockets:
            client.close()


async def read(client: socket.socket, size_bytes: int) -> None:
    """Read this much."""
    async with asyncio.timeout(10):
        while size_bytes:
            got = await asyncio.get_running_loop().sock_recv(client, min(size_bytes, 1 << 20))
            assert got, "the connection ended"
            size_bytes -= len(got)


async def test_who_reads_nothing_is_cut_off_after_a_time() -> None:
    async with clients(Unread(patience_s=0.3, slowest_bytes_per_s=100 << 20), 1) as (made, _):
        await until(lambda: made[0].is_lost)


async def test_who_reads_too_slowly_is_cut_off() -> None:
    unread = Unread(patience_s=0.5, slowest_bytes_per_s=100 << 20)
    async with clients(unread, 1) as (made, [client]):

        async def trickle() -> bool:
            with suppress(ConnectionError):
                await read(client, 1000)
            return made[0].is_lost

        await until_async(trickle)


async def test_who_reads_in_time_gets_all_of_it() -> None:
    async with clients(Unread(patience_s=4.0, slowest_bytes_per_s=8 << 20), 1) as (made, [client]):
        await read(client, 1 << 20)
        await asyncio.sleep(0.3)
        await read(client, len(ANSWER) - (1 << 20))
        await asyncio.sleep(4.2)  # no timer is left of it
        assert not made[0].is_lost


async def test_where_too_much_waits_who_has_not_read_for_longest_is_cut_off() -> None:
    unread = Unread(patience_s=60, most_bytes=3 * len(ANSWER))
    async with clients(unread, 6) as (made, sockets):
        await until(lambda: made[0].is_lost)
        assert not made[-1].is_lost
        await read(sockets[-1], len(ANSWER))


async def test_what_was_read_counts_no_more() -> None:
    unread = Unread(patience_s=60, most_bytes=2 * len(ANSWER))
    for _ in range(4):
        async with clients(unread, 1) as (made, [client]):
            await read(client, len(ANSWER))
            assert not made[0].is_lost
