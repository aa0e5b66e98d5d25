"""What is true of every connection that a server accepts."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from delayqueue.config.values import Address
from delayqueue.net.listener import listen
from tests.certificates import make
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


async def test_a_client_that_does_not_finish_its_tls_handshake_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.net.listener.HANDSHAKE_S", 0.1)
    own = make(tmp_path, "own")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own.cert, own.key)
    async with await listen(
        asyncio.Protocol, Address(LOOPBACK, 0), tls, key="bind_address", reuse_port=False
    ) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()
