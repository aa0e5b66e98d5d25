"""A socket that connections are accepted on."""

import asyncio
import errno
import ssl
from collections.abc import Callable
from typing import Final

from delayqueue.config.option import variable
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.keepalive import keep_alive

BACKLOG: Final = 4096  # connections that wait to be accepted: thousands of polls come back at once after a restart
SHUTDOWN_S: Final = 4.0  # for what is in flight when the server stops; aiohttp waits for it twice


async def listen(
    connection: Callable[[], asyncio.BaseProtocol],
    address: Address,
    tls: ssl.SSLContext | None,
    *,
    key: str,
    reuse_port: bool,
) -> asyncio.Server:
    """Let `connection` make the protocol of each connection that comes to the address of this setting.

    A client whose machine is gone is noticed within a minute, so that it is not waited for, or handed jobs.

    Raises StartupError if the address cannot be had.
    """
    try:
        server = await asyncio.get_running_loop().create_server(
            connection,
            address.host,
            address.port,
            ssl=tls,
            backlog=BACKLOG,
            reuse_port=reuse_port,
        )
    except OSError as error:
        raise unusable(address, error, key) from error
    for each in server.sockets:
        keep_alive(each)
    return server


def unusable(address: Address, error: OSError, key: str) -> StartupError:
    """What to tell the operator of an address that cannot be listened on."""
    host = str(address).rpartition(":")[0]
    taken = error.errno == errno.EADDRINUSE
    way_out = (
        f"stop what listens there, or choose another port, as with {variable(key)}={host}:PORT"
        if taken
        else "name an address of this machine, and a port that its user may listen on"
    )
    return StartupError(f"{key} = {address}: {error.strerror}; {way_out}", key=key)
