"""The limit of connections, without sockets: moments that no client can choose."""

import asyncio
from unittest.mock import Mock

from tests.shared_limits import limits
from tests.waiting import until


async def test_a_connection_that_begins_as_the_last_are_cut_off_does_not_keep_the_server() -> None:
    """Its TLS handshake ends between the two."""
    connections, loop = limits().connections, asyncio.get_running_loop()

    def abort() -> None:
        connections.opened(Mock())
        loop.call_soon(connections.closed, last)

    last = Mock(abort=abort)
    connections.opened(last)
    ending = asyncio.create_task(connections.abort())
    await until(ending.done)
    assert connections.count == 1
