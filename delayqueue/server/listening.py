"""Accepts connections of both protocols, and ends them when the server stops."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.connection import Connection
from delayqueue.config.config import Config
from delayqueue.errors import TooMany
from delayqueue.metrics import CONNECTIONS, UNANSWERED_BYTES, Metrics
from delayqueue.net.connection_limit import FULL, ClientProtocol, ConnectionLimit, Exemption
from delayqueue.net.limits import ClientLimits
from delayqueue.net.listener import listen
from delayqueue.net.unanswered import LONGEST_TOGETHER, Unanswered
from delayqueue.net.unread import Unread
from delayqueue.server.frontend import Frontend
from delayqueue.server.open_files import most_connections
from delayqueue.web.express import Express
from delayqueue.web.head import END, asked_by

log = logging.getLogger(__name__)

LONGEST_HEAD_BYTES: Final = 16 * 1024  # of a request that is served beyond max_connections
# A request holds at most this many times max_body: a batch of jobs, or one body in JSON escapes.
BODIES_PER_REQUEST: Final = 8
SHUTDOWN_S: Final = 4.0  # for requests in flight when the server stops


@asynccontextmanager
async def accepting_clients(
    config: Config, frontend: Frontend, metrics: Metrics
) -> AsyncIterator[None]:
    """Answer clients of HTTP, and of beanstalkd if the config has an address for them.

    What they take together is limited, and shown in `metrics`. At the end the jobs of beanstalkd's clients are put
    back. Raises StartupError if an address is not available.
    """
    most_bytes = BODIES_PER_REQUEST * config.max_body_bytes
    connections = ConnectionLimit(most_connections(config.max_connections), metrics)
    unanswered = Unanswered(LONGEST_TOGETHER * most_bytes, metrics)
    metrics.show(CONNECTIONS, lambda: connections.count)
    metrics.show(UNANSWERED_BYTES, lambda: unanswered.bytes)
    limits = ClientLimits(connections, unanswered, Unread())
    express, beanstalk = Express(frontend, limits, most_bytes), frontend.beanstalk
    listen_for = partial(listen, reuse_port=config.workers > 1)
    try:
        if address := config.beanstalk_address:
            tls = frontend.tls if config.beanstalk_tls else None
            clients = ClientProtocol(lambda: Connection(beanstalk, limits), lambda: OUT_OF_MEMORY)
            beanstalk.listener = await listen_for(
                connections.limited(clients, tls=tls is not None),
                address,
                tls,
                key="beanstalk_address",
            )
            log.info("serving beanstalkd clients on %s", address)
        # last: its /readyz says that all is open
        listener = await listen_for(
            connections.limited(_clients(express, frontend), tls=frontend.tls is not None),
            config.bind_address,
            frontend.tls,
            key="bind_address",
        )
        try:
            yield
        finally:
            listener.close()
    finally:
        beanstalk.drain()
        express.drain()
        await connections.finish(SHUTDOWN_S)
        await express.cancel()
        await connections.abort()
        await beanstalk.close()


def _clients(express: Express, frontend: Frontend) -> ClientProtocol:
    """How clients of HTTP are served."""

    def for_operators(head: bytes) -> asyncio.Protocol | None:
        return express.once() if frontend.front.is_for_operators(*asked_by(head)) else None

    return ClientProtocol(
        express.connection,
        lambda: express.refusal(TooMany(FULL)),
        Exemption(END, LONGEST_HEAD_BYTES, for_operators),
    )
