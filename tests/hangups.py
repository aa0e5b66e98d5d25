"""Ways in which a client disconnects."""

import socket
import struct
from typing import Final

NO_LINGER: Final = struct.pack("ii", 1, 0)


def close(connection: socket.socket) -> None:
    connection.close()


def reset(connection: socket.socket) -> None:
    """Close with RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    connection.close()


def half_close(connection: socket.socket) -> None:
    """Announce that nothing more will be sent, and continue reading."""
    connection.shutdown(socket.SHUT_WR)
