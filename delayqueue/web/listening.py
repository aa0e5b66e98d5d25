"""Accepts connections: the express lane takes them, aiohttp what is not for it."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.web.app import build_server
from delayqueue.web.express import Express
from delayqueue.web.front import Front
from delayqueue.web.unread import Unread

BACKLOG: Final = 4096  # connections that wait to be accepted: thousands of polls come back at once after a restart
SHUTDOWN_S: Final = 4.0  # for requests in flight; aiohttp waits for it twice


@asynccontextmanager
async def listening(
    front: Front,
    address: Address,
    tls: ssl.SSLContext | None,
    *,
    most_bytes: int,
    reuse_port: bool,
) -> AsyncIterator[None]:
    """Let `front` answer on the address; a request's body has at most so many bytes.

    Raises StartupError if the address cannot be had.
    """
    unread = Unread()
    other = build_server(front, most_bytes, unread)
    express = Express(front, front.paths("POST"), unread, other, most_bytes)
    try:
        listener = await asyncio.get_running_loop().create_server(
            express.connection,
            address.host,
            address.port,
            ssl=tls,
            backlog=BACKLOG,
            reuse_port=reuse_port,
        )
    except OSError as error:
        raise unusable(address, error) from error
    try:
        yield
    finally:
        listener.close()
        other.pre_shutdown()
        await asyncio.gather(express.close(SHUTDOWN_S), other.shutdown(SHUTDOWN_S))


def unusable(address: Address, error: OSError) -> StartupError:
    """What to tell the operator of an address that cannot be listened on."""
    taken = error.errno == errno.EADDRINUSE
    way_out = (
        "stop what listens there or choose another port"
        if taken
        else "name an address of this machine, and a port that its user may listen on"
    )
    return StartupError(
        f"bind_address = {address}: {error.strerror}; {way_out}", key="bind_address"
    )
