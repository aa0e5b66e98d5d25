"""Numbers for job ids: this protocol knows only numbers."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

# A number is below 2**53: JSON and Lua represent those exactly. From here on they stand for ids that are not such
# numbers.
ALIASES_FROM: Final = 2**52
BLOCK: Final = 1000  # numbers that are fetched at once
MOST_ALIASES: Final = 100_000  # about 25 MB with ids of 30 bytes

_CANONICAL: Final = re.compile(r"0|[1-9][0-9]{0,15}")


class Numbers:
    """Numbers that no other process gets. `fetch(count)` returns the first of `count` numbers."""

    def __init__(self, fetch: Callable[[int], Awaitable[int]]) -> None:
        self._fetch = fetch
        self._next = self._end = 0
        self._skip = 0  # numbers to leave out before the next block
        self._fetching = asyncio.Lock()

    def take(self, count: int) -> range | None:
        """`count` new numbers; None if some must first be fetched by next()."""
        first = self._next
        if self._end - first < count:
            return None
        self._next += count
        return range(first, self._next)

    async def next(self) -> int:
        """A new number. Raises Unavailable if the store does not answer."""
        while self._next == self._end:
            async with self._fetching:
                if self._next == self._end:  # otherwise another caller has fetched some meanwhile
                    skip = self._skip
                    self._next = await self._fetch(skip + BLOCK) + skip
                    self._end = self._next + BLOCK
                    self._skip = 0
        self._next += 1
        return self._next - 1

    def leave(self, number: int, skip: int) -> None:
        """Skip the rest of this number's block, and `skip` more, on all servers: the number is a job's id."""
        if self._end - BLOCK <= number < self._end:
            self._next = self._end = 0
            self._skip = skip


class Ids:
    """Maps job ids to numbers and back.

    An id that is a number, and not too large, is its own number. Others get a number when they are first shown, one
    that is no such id; beyond MOST_ALIASES the least recently used one is forgotten. A connection also remembers the
    ids of the jobs that it holds (session.py).
    """

    def __init__(self, numbers: Numbers, most: int = MOST_ALIASES) -> None:
        self._numbers = numbers
        self._most = most
        self._ids: OrderedDict[int, str] = OrderedDict()
        self._aliases: dict[str, int] = {}

    def __len__(self) -> int:
        """How many ids have a number that is not their own."""
        return len(self._ids)

    def id_of(self, number: int) -> str:
        """The id of the job with this number."""
        job_id = self._ids.get(number)
        if job_id is None:
            return str(number)
        self._ids.move_to_end(number)
        return job_id

    def find(self, job_id: str) -> int | None:
        """The number of the job with this id; None if it has none yet."""
        if _CANONICAL.fullmatch(job_id):
            number = int(job_id)
            if number < ALIASES_FROM:
                return number
        known = self._aliases.get(job_id)
        if known is not None:
            self._ids.move_to_end(known)
        return known

    async def number_of(self, job_id: str) -> int:
        """The number of the job with this id, a new one if necessary.

        Raises Unavailable if the store does not answer.
        """
        known = self.find(job_id)
        if known is not None:
            return known
        number = ALIASES_FROM + await self._numbers.next()
        known = self._aliases.setdefault(job_id, number)  # another caller may have been first
        self._ids[known] = job_id
        self._ids.move_to_end(known)
        if len(self._ids) > self._most:
            _, forgotten = self._ids.popitem(last=False)
            del self._aliases[forgotten]
        return known
