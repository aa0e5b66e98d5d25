"""Connections that pack a script's call in C, and that fail as connections do.

redis-py's asyncio connections pack every command in Python: 90 µs for a batch of 16 pushes, of which hiredis needs 14.
"""

from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError


class _FastPacking(AbstractConnection):
    def pack_command(self, *args: Any) -> list[bytes]:
        if args[0] == "EVALSHA":
            return [hiredis.pack_command(args)]
        return super().pack_command(*args)  # takes the words of "SCRIPT LOAD" apart

    async def send_packed_command(self, *args: Any, **options: Any) -> None:
        try:
            await super().send_packed_command(*args, **options)
        except RuntimeError as error:  # of uvloop, where the store was killed while we connected
            raise RedisConnectionError("Connection closed by server.") from error


def fast(connection: type[AbstractConnection]) -> type[AbstractConnection]:
    """This kind of connection, with the fast packing."""
    return type(f"Fast{connection.__name__}", (_FastPacking, connection), {})
