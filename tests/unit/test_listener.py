"""What is true of every connection that a server accepts."""

from __future__ import annotations

import asyncio
import socket

from delayqueue.config.values import Address
from delayqueue.net.listener import listen
from tests.processes import LOOPBACK


async def test_a_client_whose_machine_vanishes_is_noticed_within_a_minute() -> None:
    accepted: asyncio.Future[asyncio.BaseTransport] = asyncio.get_running_loop().create_future()

    class Seen(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.set_result(transport)

    address = Address(LOOPBACK, 0)
    async with await listen(Seen, address, None, key="bind_address", reuse_port=False) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        client: socket.socket = (await accepted).get_extra_info("socket")
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        names = ("TCP_KEEPIDLE", "TCP_KEEPCNT", "TCP_KEEPINTVL")
        idle, count, each = (
            client.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names
        )
        assert idle + count * each <= 60
        writer.close()
        (await accepted).close()
