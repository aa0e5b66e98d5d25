"""Requests that are not answered yet.

They stay in memory, so those of all connections together have a limit of bytes.
"""

import asyncio
import logging
from typing import Final, Protocol

from delayqueue.errors import Text
from delayqueue.metrics import REFUSED, Metrics

log = logging.getLogger(__name__)

INCOMPLETE: Final = Text(
    "未收完的请求过多，请稍后再试", "too many requests have not arrived as a whole; try again later"
)
SMALL_BYTES: Final = 16 * 1024  # what a connection may hold without being counted
LONGEST_TOGETHER: Final = 16  # requests of the greatest length that may be under way at once
LEFT: Final = 0.75  # of the limit, when enough has been refused: not one refusal for each packet


class Holder(Protocol):
    """A connection with requests that are not answered."""

    def give_up(self) -> bool:
        """Refuse the incomplete request, and report how many bytes are left (`Unanswered.note_held`).

        Returns whether there was anything.
        """


class Unanswered:
    """The connections that hold more than a little of unanswered requests.

    Beyond `most_bytes` of them, incomplete requests are refused, first those whose size times age is greatest: a client
    that sends all of its request at once is served, beside clients that send half of theirs and wait. A complete
    request is never refused: it may have been carried out.
    """

    def __init__(self, most_bytes: int, metrics: Metrics) -> None:
        self._most_bytes = most_bytes
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._held: dict[Holder, tuple[int, float]] = {}  # bytes, and since when
        self.bytes = 0

    def note_held(self, holder: Holder, size_bytes: int) -> None:
        """Note how many bytes the connection holds now."""
        before_bytes, since_s = self._held.get(holder) or (0, self._loop.time())
        if size_bytes <= SMALL_BYTES:
            if before_bytes:
                self.forget(holder)
            return
        self._held[holder] = size_bytes, since_s
        self.bytes += size_bytes - before_bytes
        if size_bytes > before_bytes:
            self.look()

    def forget(self, holder: Holder) -> None:
        """Forget a connection that holds no bytes any more."""
        if (found := self._held.pop(holder, None)) is not None:
            self.bytes -= found[0]

    def look(self) -> None:
        """Refuse incomplete requests if they are too many bytes together."""
        if self.bytes <= self._most_bytes:
            return
        now_s, refused = self._loop.time(), 0
        weights = {
            holder: size_bytes * (now_s - since_s)
            for holder, (size_bytes, since_s) in self._held.items()
        }
        # of requests of the same age, those that came first
        for holder in sorted(weights, key=weights.__getitem__, reverse=True):
            if self.bytes <= LEFT * self._most_bytes:
                break
            refused += holder.give_up()
        self._metrics.count(REFUSED, "unanswered", by=refused)
        log.debug("refused %d incomplete requests: too many bytes of them", refused)
