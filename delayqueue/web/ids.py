"""Ids that the server makes for `"id": "*"`."""

import secrets
import time


class IdMaker:
    """Makes unique ids of 32 hex digits; of one maker, later ones sort after earlier ones.

    64 bits of unix nanoseconds, 64 random bits. Order between machines is as good as their clocks; uniqueness does not
    depend on them.
    """

    def __init__(self) -> None:
        self._last_ns = 0

    def __call__(self) -> str:
        """The next id."""
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return f"{self._last_ns:016x}{secrets.token_hex(8)}"
