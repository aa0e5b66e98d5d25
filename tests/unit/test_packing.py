"""The fast packing of script calls gives the very bytes that redis-py's own gives."""

import pytest
from redis.asyncio import Connection

from delayqueue.store.packing import fast


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
