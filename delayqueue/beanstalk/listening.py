"""Accepts connections that speak beanstalkd's protocol."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.connection import Connection
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.config.values import Address
from delayqueue.net.connected import Door
from delayqueue.net.group import Group
from delayqueue.net.limits import ClientLimits
from delayqueue.net.listener import SHUTDOWN_S, listen


@asynccontextmanager
async def listening(
    server: BeanstalkServer,
    address: Address,
    tls: ssl.SSLContext | None,
    *,
    limits: ClientLimits,
    reuse_port: bool,
) -> AsyncIterator[None]:
    """Accept connections on the address. At the end of the block they are closed, and their jobs are put back.

    Raises StartupError if the address is not available.
    """
    connections = Group[Connection]()

    def connection() -> Connection:
        return Connection(server, limits, connections)

    limited = limits.connected.limited(Door(connection, lambda: OUT_OF_MEMORY))
    listener = await listen(limited, address, tls, key="beanstalk_address", reuse_port=reuse_port)
    try:
        yield
    finally:
        listener.close()
        await _close(connections)
        await server.close()


async def _close(connections: Group[Connection]) -> None:
    """Close idle connections, let the others have their answers, and cut off those that take too long."""
    for each in connections:
        if each.is_idle:
            each.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(SHUTDOWN_S):
            await connections.emptied()
    for each in connections:
        each.abort()
    await connections.emptied()
