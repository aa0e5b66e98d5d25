"""A socket that accepts connections."""

import asyncio
import errno
import ssl
from collections.abc import Callable
from typing import Final

from delayqueue.config.option import variable
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.keepalive import keep_alive

BACKLOG: Final = 4096  # not yet accepted: thousands of polls come back at once after a restart
HANDSHAKE_S: Final = 10.0  # a connection counts for max_connections only after its TLS handshake


async def listen(
    connection: Callable[[], asyncio.BaseProtocol],
    address: Address,
    tls: ssl.SSLContext | None,
    *,
    key: str,
    reuse_port: bool,
) -> asyncio.Server:
    """Listen on this setting's address; `connection` makes the protocol of each connection.

    A client whose machine is gone is noticed within a minute, so that it gets no more jobs. Raises StartupError if the
    address is not available.
    """
    try:
        server = await asyncio.get_running_loop().create_server(
            connection,
            address.host,
            address.port,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_S if tls else None,
            backlog=BACKLOG,
            reuse_port=reuse_port,
        )
    except OSError as error:
        raise unusable(address, error, key) from error
    for each in server.sockets:
        keep_alive(each)
    return server


def unusable(address: Address, error: OSError, key: str) -> StartupError:
    """The error for an address that cannot be listened on."""
    host = str(address).rpartition(":")[0]
    taken = error.errno == errno.EADDRINUSE
    way_out = (
        f"stop what listens there, or choose another port, as with {variable(key)}={host}:PORT"
        if taken
        else "choose an address of this machine, and a port that its user may listen on"
    )
    return StartupError(f"{key} = {address}: {error.strerror}; {way_out}", key=key)
