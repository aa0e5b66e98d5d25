"""The limit of connections, without sockets: moments that no client can choose."""

import asyncio
from unittest.mock import Mock

from delayqueue.net.connection_limit import ClientProtocol, ExcessConnection
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


def test_a_connection_that_is_served_hears_of_what_tls_has_yet_to_send_as_it_begins() -> None:
    """It sets the limits of what may be unsent, and is told at once if there is more."""
    protocol, transport = Mock(), Mock(**{"get_extra_info.return_value": None})
    protocol.connection_made.side_effect = lambda its: its.set_protocol.assert_called_with(protocol)
    ExcessConnection(Mock(), ClientProtocol(lambda: protocol, bytes)).connection_made(transport)
    protocol.connection_made.assert_called_once_with(transport)
