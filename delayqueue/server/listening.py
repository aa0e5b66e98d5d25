"""Accepts connections of both protocols, and ends them when the server stops."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.connection import Connection
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.config.values import Address
from delayqueue.errors import TooMany
from delayqueue.net.connection_limit import FULL, ClientProtocol, Exemption
from delayqueue.net.group import Group
from delayqueue.net.limits import ClientLimits
from delayqueue.net.listener import ON_THE_WAY_S, SHUTDOWN_S, listen
from delayqueue.tasks import at_most
from delayqueue.web.express import Express
from delayqueue.web.front import HasFront
from delayqueue.web.head import END, asked_by

LONGEST_HEAD_BYTES: Final = 16 * 1024  # of a request that is served beyond max_connections


@asynccontextmanager
async def http(
    server: HasFront,
    address: Address,
    tls: ssl.SSLContext | None,
    *,
    limits: ClientLimits,
    most_bytes: int,
    reuse_port: bool,
) -> AsyncIterator[None]:
    """Let the front of `server` answer on the address; `most_bytes` limits a request's body.

    Raises StartupError if the address is not available.
    """
    express = Express(server, limits, most_bytes)

    def for_operators(head: bytes) -> asyncio.Protocol | None:
        return express.once() if server.front.is_for_operators(*asked_by(head)) else None

    clients = ClientProtocol(
        express.connection,
        lambda: express.refusal(TooMany(FULL)),
        Exemption(END, LONGEST_HEAD_BYTES, for_operators),
    )
    connection = limits.connections.limited(clients)
    listener = await listen(connection, address, tls, key="bind_address", reuse_port=reuse_port)
    try:
        yield
    finally:
        listener.close()
        await express.close(SHUTDOWN_S)


@asynccontextmanager
async def beanstalk(
    server: BeanstalkServer,
    address: Address,
    tls: ssl.SSLContext | None,
    *,
    limits: ClientLimits,
    reuse_port: bool,
) -> AsyncIterator[None]:
    """Accept clients of beanstalkd on the address. At the end their jobs are put back.

    Raises StartupError if the address is not available.
    """
    connections = Group[Connection]()

    def connection() -> Connection:
        return Connection(server, limits, connections)

    limited = limits.connections.limited(ClientProtocol(connection, lambda: OUT_OF_MEMORY))
    listener = await listen(limited, address, tls, key="beanstalk_address", reuse_port=reuse_port)
    server.listener = listener
    try:
        yield
    finally:
        listener.close()
        await _close(connections)
        await server.close()


async def _close(connections: Group[Connection]) -> None:
    """Close idle connections, let the others have their answers, and cut off those that take too long."""
    if connections:
        await asyncio.sleep(ON_THE_WAY_S)
    for each in connections:
        if each.is_idle:
            each.close()
    async with at_most(SHUTDOWN_S):
        await connections.emptied()
    for each in connections:
        each.abort()
    await connections.emptied()
