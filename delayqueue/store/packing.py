"""The way of a call over a connection: packed in C, without a task for each step, failing as connections do.

redis-py's asyncio connections pack every command in Python: 90 µs for a batch of 16 pushes, of which hiredis needs 14.
Its client and its timeouts around sending take another 40 µs a call.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError

FCALL: Final = "FCALL"
EVALSHA: Final = "EVALSHA"
CALLS: Final = (FCALL, EVALSHA)


class _FastPacking(AbstractConnection):
    def pack_command(self, *args: Any) -> list[bytes]:
        if args[0] in CALLS:
            return [hiredis.pack_command(args)]
        return super().pack_command(*args)  # takes the words of "SCRIPT LOAD" apart

    async def send_packed_command(
        self,
        command: bytes | str | Iterable[bytes],
        check_health: bool = True,  # noqa: ARG002  # it has been checked: health_check_interval is 0
    ) -> None:
        """Hand the command to the transport. The wait for the answer is limited, so this need not be."""
        if self._writer is None:
            await self.connect_check_health(check_health=False)
        if self._writer is None:
            raise RedisConnectionError("Connection closed by server.")
        if isinstance(command, str):
            command = command.encode()
        try:
            self._writer.writelines([command] if isinstance(command, bytes) else command)
        except (RuntimeError, OSError) as error:  # RuntimeError: of uvloop, where it is closed
            await self.disconnect(nowait=True)
            raise RedisConnectionError("Connection closed by server.") from error


async def run(
    redis: Redis, command: str, name: str, keys: Sequence[str], args: Sequence[Any]
) -> Any:
    """What a function (FCALL) or a script (EVALSHA) says. Who calls it limits the time."""
    pool = redis.connection_pool
    connection: AbstractConnection = await pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        await connection.send_command(command, name, len(keys), *keys, *args, check_health=False)
        return await connection.read_response(timeout=math.inf)
    finally:
        await pool.release(connection)


def fast(connection: type[AbstractConnection]) -> type[AbstractConnection]:
    """This kind of connection, with the fast packing."""
    return type(f"Fast{connection.__name__}", (_FastPacking, connection), {})
