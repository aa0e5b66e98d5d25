"""Connections to the store fail as connections do."""

import pytest
from redis.asyncio import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from delayqueue.store.servers.connection import fast


async def test_a_connection_that_breaks_while_it_is_made_is_a_connection_that_breaks() -> None:
    """uvloop has an error of its own for it, which would end the server."""

    class Gone(Connection):
        async def send_packed_command(self, *_: object, **__: object) -> None:
            raise RuntimeError("unable to perform operation; the handler is closed")

    with pytest.raises(RedisConnectionError):
        await fast(Gone)().send_packed_command([b"PING"])


async def test_what_redis_py_sends_by_itself_goes_the_same_way() -> None:
    """Of its own accord it would make a task and a timeout for each write."""
    sent: list[bytes] = []

    class Seen(fast(Connection)):  # type: ignore[misc]  # made at run time
        async def send_packed_command(self, command: list[bytes], **_: object) -> None:
            sent.extend(command)

    await Seen().send_command("PING")
    assert b"".join(sent) == b"*1\r\n$4\r\nPING\r\n"
