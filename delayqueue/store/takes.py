"""Takes jobs out of the store, in the order of their due times over all buckets."""

import asyncio
from collections.abc import Iterable

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.ranges import Ranges
from delayqueue.store.due_order import DELAYED, READY, DueOrder
from delayqueue.store.lookup import fitting
from delayqueue.store.types import Found, Range, Taken

PIECE = 500  # jobs per script call: about 5 ms of the store's time


class Takes:
    """Removes and returns jobs; each goes to one caller only."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self._ranges = Ranges(store)

    async def take(self, topic: str, due: Range, most: int) -> list[Taken]:
        """The first jobs of a range, up to `most` and MAX_ANSWER_BYTES.

        If the store fails, returns what was taken before; raises Unavailable if that is nothing.
        """
        taken: list[Taken] = []
        order = DueOrder(
            self._ranges, range(self._store.buckets.count), topic, (*READY, DELAYED), due
        )
        has_lost = True  # another client was faster, so there may be more
        while has_lost and len(taken) < most:
            found = await _first(order, most - len(taken))
            held_bytes = sum(len(job.record) + len(job.run) for job in taken)
            room = fitting([job.bytes for job in found], held_bytes)
            answers = await asyncio.gather(
                *(
                    self._take_of(order, bucket, topic, due, found[:room])
                    for bucket in {job.bucket for job in found[:room]}
                )
            )
            for jobs, _ in answers:
                taken += jobs
            has_lost = room == len(found) and any(lost for _, lost in answers)
        if not taken:
            for error in order.away.values():
                raise error
        return sorted(taken, key=lambda job: (job.due_ms, job.raw_id))

    async def _take_of(
        self, order: DueOrder, bucket: int, topic: str, due: Range, found: Iterable[Found]
    ) -> tuple[list[Taken], int]:
        """Take what was found in one bucket; returns what nobody else took first, and how many were taken first."""
        ids = [job.position.id for job in found if job.bucket == bucket]
        taken: list[Taken] = []
        lost = 0
        try:
            while ids:
                took = await self._ranges.take(bucket, topic, due, ids[:PIECE])
                taken += took.jobs
                lost += took.gone
                ids = ids[took.looked :]
        except Unavailable as error:
            order.away[bucket] = error
        return taken, lost


async def _first(order: DueOrder, most: int) -> list[Found]:
    """The first jobs in the order."""
    found: list[Found] = []
    part = order.start()
    while True:
        section = await order.read(part, None, most - len(found))
        found += section.jobs
        if section.part.is_last or len(found) >= most:
            return found[:most]
        part = section.part.following()
