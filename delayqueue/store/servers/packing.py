"""The way of a call over a connection: packed in C, without a task for each step, failing as connections do.

redis-py's asyncio connections pack every command in Python: 90 µs for a batch of 16 pushes, of which hiredis needs 14.
Its client and its timeouts around sending take another 40 µs a call.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

FCALL: Final = "FCALL"
EVALSHA: Final = "EVALSHA"
CALLS: Final = (FCALL, EVALSHA)
WAIT: Final = "WAIT"


class Wait(NamedTuple):
    """So many replicas must have a call, each within that time."""

    replicas: int
    timeout_ms: int


class NotReplicatedError(RedisError):
    """Too few replicas have said in time that they have what a call did; it is done on the master."""


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
    redis: Redis,
    command: str,
    name: str,
    keys: Sequence[str],
    args: Sequence[Any],
    wait: Wait | None = None,
) -> Any:
    """What a function (FCALL) or a script (EVALSHA) says. Who calls it limits the time.

    With `wait` only once so many replicas have it, and all that it has read: NotReplicatedError.
    """
    words = (command, name, len(keys), *keys, *args)
    pool = redis.connection_pool
    connection: AbstractConnection = await pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        if wait is None:
            await connection.send_command(*words, check_health=False)
            return await connection.read_response(timeout=math.inf)
        # behind each other: the store waits for what this connection has written, and nobody waits for it twice
        waiting: Any = (WAIT, str(wait.replicas), str(wait.timeout_ms))
        packed = [hiredis.pack_command(words), hiredis.pack_command(waiting)]
        await connection.send_packed_command(packed, check_health=False)
        return await _replicated(connection, wait)
    finally:
        await pool.release(connection)


async def _replicated(connection: AbstractConnection, wait: Wait) -> Any:
    try:
        answer = await connection.read_response(timeout=math.inf)
    except ResponseError:
        with suppress(
            ResponseError
        ):  # both answers are taken, as the next call is given this connection
            await connection.read_response(timeout=math.inf)
        raise
    reached = await connection.read_response(timeout=math.inf)
    if reached < wait.replicas:
        raise NotReplicatedError(
            f"{reached} of {wait.replicas} replicas have it within {wait.timeout_ms} ms"
        )
    return answer


def fast(connection: type[AbstractConnection]) -> type[AbstractConnection]:
    """This kind of connection, with the fast packing."""
    return type(f"Fast{connection.__name__}", (_FastPacking, connection), {})
