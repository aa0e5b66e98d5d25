"""Ends a connection so that nothing of what was sent on it arrives later."""

import asyncio
import socket
import struct
from typing import Final

AT_ONCE: Final = struct.pack("ii", 1, 0)  # SO_LINGER: the system does not keep sending


def hang_up(transport: asyncio.Transport | asyncio.WriteTransport) -> None:
    """Close it at once: whatever has not left this machine never will."""
    if not transport.is_closing():  # else its descriptor may be another connection's by now
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    transport.abort()
