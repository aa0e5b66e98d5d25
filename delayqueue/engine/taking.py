"""Takes jobs out of the queue for a client, and puts them back where the client is gone before it can have got them."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from itertools import count

from delayqueue.engine.due_order import DELAYED, DueOrder
from delayqueue.engine.lookup import fitting
from delayqueue.engine.migration import Migration
from delayqueue.engine.spread import Spread
from delayqueue.errors import Unavailable
from delayqueue.store.caller import LayoutChanged
from delayqueue.store.ranges import Ranges
from delayqueue.store.store import Store
from delayqueue.store.types import Found, Range, Stir, Taken

log = logging.getLogger(__name__)

PIECE = 500  # jobs that one script call takes: about 5 ms of the store's time


class Taking:
    """`stir(bucket, stir)` hears what is put back."""

    def __init__(
        self, store: Store, migration: Migration, stir: Callable[[int, Stir], None]
    ) -> None:
        self._store = store
        self._ranges = Ranges(store)
        self._stir = stir
        self._returns = Spread(migration, self._restore, "restore", bytes_of=_bytes_of)
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, topic: str, due: Range, most: int) -> list[Taken]:
        """Remove and return the first jobs of a range, up to `most` and MAX_ANSWER_BYTES; each goes to one caller only.

        What was taken before the store failed is returned; Unavailable where that is nothing. A caller that is
        cancelled takes nothing.
        """
        work = asyncio.create_task(self._take(topic, due, most), name="take")
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._in_background(self._undo(work))
            raise

    def put_back(self, jobs: Sequence[Taken]) -> None:
        """Undo takes whose client is gone, in the background."""
        self._in_background(self._put_back(jobs))

    async def close(self) -> None:
        """Wait for what is being put back."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _take(self, topic: str, due: Range, most: int) -> list[Taken]:
        taken: list[Taken] = []
        order = DueOrder(
            self._ranges, range(self._store.buckets.count), topic, ("ready", DELAYED), due
        )
        has_lost = True  # somebody else was faster, so there may be more
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
        """What was found in one bucket, as far as nobody else was faster; and how often somebody was."""
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

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="restore")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _undo(self, work: asyncio.Task[list[Taken]]) -> None:
        with suppress(Unavailable):
            await self._put_back(await work)

    async def _put_back(self, jobs: Sequence[Taken]) -> None:
        lost = await self._returns.many([job.id for job in jobs], jobs)
        if number := sum(lost):
            log.warning("%d jobs are lost: their client was gone, and so was the store", number)

    async def _restore(self, bucket: int, jobs: list[Taken]) -> list[bool]:
        """Whether each is lost."""
        try:
            self._stir(bucket, await self._ranges.restore(bucket, jobs))
        except LayoutChanged:
            raise
        except Unavailable:
            return [True] * len(jobs)
        return [False] * len(jobs)


def _bytes_of(job: Taken) -> int:
    return len(job.record)


async def _first(order: DueOrder, most: int) -> list[Found]:
    """The first jobs in the order."""
    found: list[Found] = []
    for number in count():
        section = await order.section(number, None, most - len(found))
        found += section.jobs
        if section.is_last or len(found) >= most:
            break
    return found[:most]
