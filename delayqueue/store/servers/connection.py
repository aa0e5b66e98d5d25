"""Connections to the store that write what they are given, and no more.

redis-py's own make a task and a timeout for each write: another 40 µs.
"""

from collections.abc import Iterable

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError


class _Writing(AbstractConnection):
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


def fast(connection: type[AbstractConnection]) -> type[AbstractConnection]:
    """This kind of connection, as described above."""
    return type(f"Fast{connection.__name__}", (_Writing, connection), {})
