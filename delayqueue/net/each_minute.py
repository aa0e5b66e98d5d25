"""Log lines of what can happen thousands of times a second."""

import asyncio
from collections.abc import Callable
from typing import Final

MINUTE_S: Final = 60.0


class EachMinute:
    """Reports events that can come thousands of times a second: the first one at once, then once a minute.

    `tell` gets how many there were.
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._count = 0
        self._next: asyncio.TimerHandle | None = None

    def happened(self) -> None:
        """Count one more event; needs a running loop."""
        self._count += 1
        if self._next is None:
            self._look()

    def _look(self) -> None:
        self._next = None
        if self._count:
            self._next = asyncio.get_running_loop().call_later(MINUTE_S, self._look)
            count, self._count = self._count, 0
            self._tell(count)
