"""Answers that clients do not read.

They stay in memory, so each has a time limit, and all together a limit of bytes.
"""

import asyncio
import logging
from typing import Final

from delayqueue.net.hangup import hang_up

log = logging.getLogger(__name__)

PATIENCE_S: Final = 30.0  # for a client that reads nothing
SLOWEST_BYTES_PER_S: Final = 64 * 1024  # a long answer gets the time that it takes at this pace
# for these answers in a process; beyond it, the client that has stalled longest is cut off
MOST_BYTES: Final = 64 << 20


class Unread:
    """The connections that have more to send than their clients read."""

    def __init__(
        self,
        patience_s: float = PATIENCE_S,
        slowest_bytes_per_s: int = SLOWEST_BYTES_PER_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._patience_s = patience_s
        self._slowest_bytes_per_s = slowest_bytes_per_s
        self._most_bytes = most_bytes
        self._loop = asyncio.get_running_loop()
        # the answer's size, and when our patience ends; the connection that has stalled for the longest time comes
        # first
        self._stalled: dict[asyncio.Transport, tuple[int, asyncio.TimerHandle]] = {}
        self._bytes = 0

    @staticmethod
    def watch(transport: asyncio.Transport) -> None:
        """Report (pause_writing) if anything is left to send, however little: an answer is held as a whole."""
        # uvloop pauses above the limit, but with TLS at the limit: 0 would never be reached
        is_tls = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=1 if is_tls else 0, low=0)

    def stalled(self, transport: asyncio.Transport, answer_bytes: int) -> None:
        """Note that a client reads its answer, of which only a part may be written, more slowly than we write it."""
        wait_s = max(self._patience_s, answer_bytes / self._slowest_bytes_per_s)
        timer = self._loop.call_later(wait_s, self._cut_off, transport)
        self._stalled[transport] = answer_bytes, timer
        self._bytes += answer_bytes
        while self._bytes > self._most_bytes:
            self._cut_off(next(iter(self._stalled)))

    def forget(self, transport: asyncio.Transport) -> None:
        """Forget a client that has caught up, or is gone (resume_writing, connection_lost)."""
        if (found := self._stalled.pop(transport, None)) is not None:
            answer_bytes, timer = found
            self._bytes -= answer_bytes
            timer.cancel()

    def _cut_off(self, transport: asyncio.Transport) -> None:
        self.forget(transport)
        peer, left_bytes = transport.get_extra_info("peername"), transport.get_write_buffer_size()
        log.info("cut off %s: it left %d bytes of its answer unread", peer, left_bytes)
        hang_up(transport)
