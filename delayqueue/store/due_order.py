"""Finds a topic's jobs in the order of their due times, over all buckets and states."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.ranges import Ranges
from delayqueue.store.types import Found, Position, Range

# Entries of an index that are sorted together. Only delayed jobs are kept in that order, and sorting all others would
# take time that grows with their number.
SECTION: Final = 1000
DELAYED: Final = "delayed"


class Section(NamedTuple):
    """Jobs in order; `is_last`: no other section follows."""

    jobs: list[Found]
    is_last: bool


class DueOrder:
    """The order of a topic's jobs, for one request.

    The n-th section has the n-th thousand of each bucket's ready, reserved and buried jobs and kept results; the last
    one has all delayed jobs, too. So the order is exact if no bucket has more jobs in a state than that; otherwise it
    is exact within each section, and jobs that are or were due come before delayed ones.
    """

    def __init__(
        self, ranges: Ranges, buckets: Iterable[int], topic: str, states: Sequence[str], due: Range
    ) -> None:
        self._ranges = ranges
        self._buckets = list(buckets)
        self._topic = topic
        self._states = [state for state in states if state != DELAYED]
        self._has_delayed = DELAYED in states
        self._due = due
        self.away: dict[int, Unavailable] = {}  # buckets that failed; they are not asked again

    async def section(self, number: int, behind: Position | None, limit: int) -> Section:
        """The jobs of a section after a position: at least the first `limit`, if there are that many."""
        found: dict[tuple[int, bytes], Found] = {}
        is_last = True
        for state in self._states:
            for jobs, has_more in await self._ask(state, behind, number):
                found.update(((job.bucket, job.position.id), job) for job in jobs)
                is_last = is_last and not has_more
        if is_last and self._has_delayed:
            for jobs, _ in await self._ask(DELAYED, behind, 0, limit):
                found.update(((job.bucket, job.position.id), job) for job in jobs)
        return Section(sorted(found.values()), is_last)

    async def _ask(
        self, state: str, behind: Position | None, number: int, limit: int = SECTION
    ) -> list[tuple[list[Found], bool]]:
        """Each bucket's jobs in one state, and whether there are more."""
        buckets = [bucket for bucket in self._buckets if bucket not in self.away]
        answers = await asyncio.gather(
            *(self._ask_one(bucket, state, behind, number, limit) for bucket in buckets)
        )
        return [answer for answer in answers if answer is not None]

    async def _ask_one(
        self, bucket: int, state: str, behind: Position | None, number: int, limit: int
    ) -> tuple[list[Found], bool] | None:
        jobs: list[Found] = []
        place, end = number * SECTION, number * SECTION + limit
        try:
            while 0 <= place < end:
                more, place = await self._ranges.find(
                    bucket,
                    self._topic,
                    state,
                    self._due,
                    behind=behind,
                    limit=end - place,
                    place=place,
                )
                jobs += more
        except Unavailable as error:
            self.away[bucket] = error
            return None
        return jobs, place != -1
