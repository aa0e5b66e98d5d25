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
