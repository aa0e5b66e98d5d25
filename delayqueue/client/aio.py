"""The client for asyncio programs."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp

from delayqueue.client.address import (
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT_S,
    KEEPALIVE,
    ServerAddress,
    limit_s,
)
from delayqueue.client.calls import Answer, Call, TransportError, conversation
from delayqueue.client.jobs import seconds
from delayqueue.client.verbs import Verbs

if TYPE_CHECKING:
    from types import TracebackType

    from delayqueue.client.jobs import Seconds

T = TypeVar("T")


class AsyncClient(Verbs):
    """Client for asyncio: the same methods, to be awaited. Use it in an `async with` block, or await close()."""

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
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: Call[T]) -> T:
        """Make a call, and repeat it where that is allowed. The verbs are built on this."""
        talk = conversation(call, self._retries)
        pause_s = next(talk)
        while True:
            await asyncio.sleep(pause_s)
            try:
                pause_s = talk.send(await self._try(call))
            except StopIteration as end:
                result: T = end.value
                rest = call.rest()
                if rest is None:
                    return result
                call, talk = rest, conversation(rest, self._retries)
                pause_s = next(talk)

    async def _try(self, call: Call[T]) -> Answer | TransportError:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, socket_factory=_probing_socket)
            self._session = aiohttp.ClientSession(
                connector=connector, headers=self._address.headers
            )
        timeout = aiohttp.ClientTimeout(
            total=limit_s(call, self._timeout_s), sock_connect=self._timeout_s
        )
        url = (
            f"{self._address.parts.scheme}://{self._address.parts.netloc}{self._address.path(call)}"
        )
        try:
            async with self._session.post(url, data=call.body, timeout=timeout) as response:
                return Answer(
                    response.status, await response.read(), response.headers.get("Retry-After")
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return TransportError(f"{self._address}: {error or type(error).__name__}")


def _probing_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # Linux has them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
