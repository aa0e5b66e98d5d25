"""How many connections a process has, and what those beyond the limit are told."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from delayqueue.errors import Text
from delayqueue.metrics import REFUSED, Metrics

FULL: Final = Text(
    "连接过多，请稍后再试", "too many connections (max_connections); try again later"
)
LINGER_S: Final = 1.0  # for a client to read why it is refused


class Connected:
    """The number of connections of this process, over all protocols; at most `most`, 0 = no limit."""

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most = most
        self._metrics = metrics
        self.count = 0

    def came(self) -> None:
        """A connection begins."""
        self.count += 1

    def left(self) -> None:
        """A connection has ended."""
        self.count -= 1

    def limited(
        self, make: Callable[[], asyncio.Protocol], refusal: Callable[[], bytes]
    ) -> Callable[[], asyncio.Protocol]:
        """`make`, or beyond the limit what sends `refusal` and closes the connection."""

        def protocol() -> asyncio.Protocol:
            if not 0 < self._most <= self.count:
                return make()
            self._metrics.count(REFUSED, "connections")
            return Refusing(refusal())

        return protocol


class Refusing(asyncio.Protocol):
    """A connection that is told why it is refused, whatever it sends."""

    def __init__(self, refusal: bytes) -> None:
        self._refusal = refusal

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send it. Closing at once would reset a connection whose client sends, and it would not see the answer."""
        transport = cast("asyncio.Transport", transport)
        transport.write(self._refusal)
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
