"""How many jobs may call one host at once, and how long those without a place are delayed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import uniform
from typing import Final

NEAR_S: Final = 30.0  # within it jobs come back as fast as the host takes them: one that works again is called soon
RETURNS_A_S: Final = 100  # after it, of all hosts that take fewer: what dead hosts cost does not grow with their jobs
LONGEST_S: Final = 3600.0
# of a delay, at random: with more, places stay empty while the last jobs of a burst come
SPREAD: Final = 0.1
LONGEST_SPREAD: Final = 0.5  # of LONGEST_S, which many have
FIRST_S: Final = 0.1  # what a call takes, before one has ended
WEIGHT: Final = 1 / 8  # of the last call in what a call takes


class HostPlaces:
    """The places of one host: `limit` jobs call it, as many wait here for their turn, and the others in the store.

    So a host that is slow, or dead, takes no more than that of the server, and other hosts' jobs pass by.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places = asyncio.Semaphore(limit)
        self.users = 0  # jobs that call or wait
        self._took_s = FIRST_S
        self._began_at: dict[object, float] = {}  # loop time of calls under way, the oldest first
        self._next_at = 0.0  # loop time at which a job that was sent away last should find a place

    @property
    def is_free(self) -> bool:
        """Whether a job finds a place at once."""
        return not self._places.locked()

    @property
    def is_full(self) -> bool:
        """Whether as many jobs wait for a place as may."""
        return self.users >= 2 * self._limit

    def next_delay_ms(self, full_hosts: float = 1) -> int:
        """How long a job that is sent away is delayed: it comes behind those that were sent away before.

        `full_hosts` is how many hosts send jobs away, about; they share RETURNS_A_S.
        """
        now = asyncio.get_running_loop().time()
        oldest_at = next(iter(self._began_at.values()), now)
        took_s = max(self._took_s, now - oldest_at)
        as_it_takes_them = max(self._next_at, now) + took_s / self._limit
        far = max(self._next_at, now + NEAR_S) + full_hosts / RETURNS_A_S
        self._next_at = min(as_it_takes_them, far, now + LONGEST_S)
        spread = SPREAD if self._next_at < now + LONGEST_S else LONGEST_SPREAD
        part = uniform(1 - spread, 1 + spread)  # noqa: S311  # no secret
        return max(1, round(1000 * (self._next_at - now) * part))

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place, for the block; possibly after others."""
        loop = asyncio.get_running_loop()
        self.users += 1
        try:
            async with self._places:
                call = object()
                self._began_at[call] = loop.time()
                try:
                    yield
                finally:
                    took_s = loop.time() - self._began_at.pop(call)
                    self._took_s += (took_s - self._took_s) * WEIGHT
        finally:
            self.users -= 1
