"""How both clients reach the server, and send requests."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

from delayqueue.client.address import DEFAULT_RETRIES, DEFAULT_TIMEOUT_S, ServerAddress
from delayqueue.client.api_request import TransportError
from delayqueue.client.times import seconds

if TYPE_CHECKING:
    import socket

    from delayqueue.client.times import Seconds


class BaseClient:
    """A server's address, and connections to it."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: Seconds = DEFAULT_TIMEOUT_S,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        self._address = ServerAddress.of(url, token)
        self._timeout_s = seconds(timeout)
        self._retries = retries
        self._tls = self._address.tls()
        if not self._timeout_s > 0:
            raise ValueError(f"timeout {timeout}: must be more than 0 seconds")
        if retries < 0:
            raise ValueError(f"retries {retries}: must be at least 0")

    def _failure(self, error: Exception) -> TransportError:
        return TransportError(f"{self._address}: {str(error) or type(error).__name__}")


def is_readable(idle: socket.socket) -> bool:
    """Whether there is something to read: no request is open, so that can only be the connection's end."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([idle], [], [], 0)[0])
    poll = select.poll()
    poll.register(idle, select.POLLIN)
    return bool(poll.poll(0))
