"""Generates ids for `"id": "*"`."""

import secrets
import time


class IdMaker:
    """Generates unique ids of 32 hex digits; ids from one generator sort in order.

    64 bits of unix nanoseconds, 64 random bits. Order between machines is as good as their clocks; uniqueness does not
    depend on them.
    """

    def __init__(self) -> None:
        self._last_ns = 0

    def __call__(self) -> str:
        """The next id."""
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return f"{self._last_ns:016x}{secrets.token_hex(8)}"
