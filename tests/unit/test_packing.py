"""The fast packing of script calls gives the very bytes that redis-py's own gives."""

import pytest
from redis.asyncio import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from delayqueue.store.servers.packing import fast


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("EVALSHA", "a" * 40, 2, "{t}", "{t}:q_%s", "id", 1500, 0.5), id="numbers"),
        pytest.param(("EVALSHA", "a" * 40, 0, "订单", b"\x00\r\n\xff"), id="not-ascii"),
        pytest.param(("EVALSHA", "a" * 40, 0, "x" * 100_000, ""), id="large-and-empty"),
        pytest.param(("SCRIPT LOAD", "return 1"), id="two-words"),
        pytest.param(("PING",), id="one-word"),
    ],
)
def test_a_command_is_packed_as_redis_py_packs_it(command: tuple[str | bytes | float, ...]) -> None:
    packed = b"".join(fast(Connection)().pack_command(*command))
    assert packed == b"".join(Connection().pack_command(*command))


async def test_a_connection_that_breaks_while_it_is_made_is_a_connection_that_breaks() -> None:
    """uvloop has an error of its own for it, which would end the server."""

    class Gone(Connection):
        async def send_packed_command(self, *_: object, **__: object) -> None:
            raise RuntimeError("unable to perform operation; the handler is closed")

    with pytest.raises(RedisConnectionError):
        await fast(Gone)().send_packed_command([b"PING"])
