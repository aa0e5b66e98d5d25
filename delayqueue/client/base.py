"""How both clients reach the server, and send requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delayqueue.client.address import DEFAULT_RETRIES, DEFAULT_TIMEOUT_S, ServerAddress
from delayqueue.client.api_request import TransportError
from delayqueue.client.times import seconds

if TYPE_CHECKING:
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

    def _failure(self, error: Exception) -> TransportError:
        return TransportError(f"{self._address}: {str(error) or type(error).__name__}")
