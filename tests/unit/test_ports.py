"""A port that several workers share, and nobody else."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.net.listener import listen
from delayqueue.server.ports import bound, check_addresses, hold
from tests.processes import LOOPBACK, free_port

CONNECTIONS = 50


@pytest.fixture(params=[LOOPBACK, "0.0.0.0", "", "::1", "::"])
def address(request: pytest.FixtureRequest) -> Address:
    found = Address(request.param, free_port())
    if ":" in found.host:
        try:
            # `::` can be had without it, and nobody can connect
            socket.create_server(("::1", found.port), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("there is no IPv6 here")
    return found


@pytest.fixture
def held(address: Address) -> Iterator[socket.socket]:
    with closing(bound(address)) as port:
        hold(port)
        yield port


async def worker(address: Address) -> asyncio.Server:
    """A listener, as each worker has one; it ends connections at once."""

    class Closing(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.close()

    return await listen(Closing, address, None, key="bind_address", reuse_port=True)


async def test_a_port_is_held_for_the_workers_also_while_none_listens(
    address: Address, held: socket.socket
) -> None:
    for _ in range(2):
        with pytest.raises(OSError, match="in use"):
            bound(address)
        async with await worker(address), await worker(address):
            with pytest.raises(OSError, match="in use"):
                bound(address)
    held.close()
    bound(address).close()


def test_of_two_servers_that_start_together_one_gets_the_port(address: Address) -> None:
    with closing(bound(address)) as ours, closing(bound(address)) as theirs:
        hold(ours)
        with pytest.raises(OSError, match="in use"):
            hold(theirs)


async def test_only_workers_accept_on_a_port_that_is_held(
    address: Address, held: socket.socket
) -> None:
    here = {"": LOOPBACK, "0.0.0.0": LOOPBACK, "::": "::1"}.get(address.host, address.host)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(here, address.port)
    async with await worker(address), await worker(address):
        for _ in range(CONNECTIONS):
            reader, writer = await asyncio.open_connection(here, address.port)
            assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize(
    ("http", "beanstalk", "is_free"),
    [
        (LOOPBACK, LOOPBACK, False),
        ("0.0.0.0", LOOPBACK, False),
        (LOOPBACK, "", False),
        ("::", "::1", False),
        (LOOPBACK, "127.0.0.2", True),
        ("0.0.0.0", "::", True),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_two_protocols_do_not_share_an_address(
    http: str, beanstalk: str, is_free: bool, workers: int
) -> None:
    port = free_port()
    config = Config(
        bind_address=Address(http, port),
        beanstalk_address=Address(beanstalk, port),
        workers=workers,
    )
    if is_free:
        check_addresses(config)
        return
    with pytest.raises(StartupError) as refused:
        check_addresses(config)
    assert str(refused.value) == (
        f"beanstalk_address = {config.beanstalk_address}: bind_address is there; choose another port"
    )


def test_workers_do_not_each_take_a_port_of_their_own() -> None:
    free = Address(LOOPBACK, 0)
    check_addresses(Config(bind_address=free, beanstalk_address=free))
    for config in (
        Config(bind_address=free, workers=2),
        Config(bind_address=Address(LOOPBACK, free_port()), beanstalk_address=free, workers=2),
    ):
        with pytest.raises(StartupError, match="each worker would listen on another port; name"):
            check_addresses(config)
