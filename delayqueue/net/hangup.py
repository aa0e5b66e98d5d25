"""Ends a connection so that nothing of what was sent on it arrives later."""

import asyncio
import socket
import struct
from typing import Final

AT_ONCE: Final = struct.pack("ii", 1, 0)  # SO_LINGER: the system does not keep sending


def hang_up(transport: asyncio.Transport | asyncio.WriteTransport) -> None:
    """Close a connection at once: what has not left this machine by then is never sent."""
    # the descriptor of a connection that is closing may be another one's by now; uvloop may have none of a connection
    # that was given up while it was made
    connection = None if transport.is_closing() else transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    transport.abort()
