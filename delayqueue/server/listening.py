"""Accepts connections of both protocols, and ends them when the server stops."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.connection import Connection
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.errors import TooMany
from delayqueue.metrics import CONNECTIONS, UNANSWERED_BYTES, Metrics
from delayqueue.net.connection_limit import FULL, ClientProtocol, ConnectionLimit, Exemption
from delayqueue.net.group import Group
from delayqueue.net.limits import ClientLimits
from delayqueue.net.listener import ON_THE_WAY_S, SHUTDOWN_S, listen
from delayqueue.net.unanswered import LONGEST_TOGETHER, Unanswered
from delayqueue.net.unread import Unread
from delayqueue.server.frontend import Frontend
from delayqueue.server.open_files import most_connections
from delayqueue.tasks import at_most
from delayqueue.web.express import Express
from delayqueue.web.head import END, asked_by

log = logging.getLogger(__name__)

LONGEST_HEAD_BYTES: Final = 16 * 1024  # of a request that is served beyond max_connections
# A request holds at most this many times max_body: a batch of jobs, or one body in JSON escapes.
BODIES_PER_REQUEST: Final = 8


@asynccontextmanager
async def accepting_clients(
    config: Config, frontend: Frontend, metrics: Metrics
) -> AsyncIterator[None]:
    """Answer clients of HTTP, and of beanstalkd if the config has an address for them.

    What they take together is limited, and shown in `metrics`. Raises StartupError if an address is not available.
    """
    most_bytes = BODIES_PER_REQUEST * config.max_body_bytes
    connections = ConnectionLimit(most_connections(config.max_connections), metrics)
    unanswered = Unanswered(LONGEST_TOGETHER * most_bytes, metrics)
    metrics.show(CONNECTIONS, lambda: connections.count)
    metrics.show(UNANSWERED_BYTES, lambda: unanswered.bytes)
    limits = ClientLimits(connections, unanswered, Unread())
    async with AsyncExitStack() as listeners:
        begin = listeners.enter_async_context
        if address := config.beanstalk_address:
            tls = frontend.tls if config.beanstalk_tls else None
            reuse_port = config.workers > 1
            await begin(
                beanstalk(frontend.beanstalk, address, tls, limits=limits, reuse_port=reuse_port)
            )
            log.info("serving beanstalkd clients on %s", address)
        # last: its /readyz says that all is open
        await begin(_http(config, frontend, limits, most_bytes))
        yield


@asynccontextmanager
async def _http(
    config: Config, frontend: Frontend, limits: ClientLimits, most_bytes: int
) -> AsyncIterator[None]:
    """Let the front answer; `most_bytes` limits a request's body."""
    express = Express(frontend, limits, most_bytes)

    def for_operators(head: bytes) -> asyncio.Protocol | None:
        return express.once() if frontend.front.is_for_operators(*asked_by(head)) else None

    clients = ClientProtocol(
        express.connection,
        lambda: express.refusal(TooMany(FULL)),
        Exemption(END, LONGEST_HEAD_BYTES, for_operators),
    )
    listener = await listen(
        limits.connections.limited(clients, tls=frontend.tls is not None),
        config.bind_address,
        frontend.tls,
        key="bind_address",
        reuse_port=config.workers > 1,
    )
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

    clients = ClientProtocol(connection, lambda: OUT_OF_MEMORY)
    limited = limits.connections.limited(clients, tls=tls is not None)
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
