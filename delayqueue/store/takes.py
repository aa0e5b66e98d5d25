"""Takes jobs out of the store, in the order of their due times over all buckets."""

import asyncio
from typing import Any

from delayqueue.domain.job import State
from delayqueue.errors import Code, Unavailable
from delayqueue.store.due_order import DELAYED, READY, DueOrder
from delayqueue.store.listings import fitting
from delayqueue.store.record import live_view, text
from delayqueue.store.store import Store
from delayqueue.store.types import Found, Range, Taken

PIECE = 150  # ids per script call: somewhat more than it takes before it has done enough


async def take(store: Store, topic: str, due: Range, most: int) -> list[Taken]:
    """Remove and return the first jobs of a range, up to `most` and MAX_ANSWER_BYTES; each goes to one caller only.

    If the store fails, returns what was taken before; raises Unavailable if that is nothing.
    """
    taken: list[Taken] = []
    order = DueOrder(store, topic, (*READY, DELAYED), due)
    has_lost = True  # another client was faster, so there may be more
    while has_lost and len(taken) < most:
        found = await _first(order, most - len(taken))
        held_bytes = sum(len(job.record) + len(job.run) for job in taken)
        room = fitting([job.bytes for job in found], held_bytes)
        by_bucket: dict[int, list[bytes]] = {}
        for job in found[:room]:
            by_bucket.setdefault(job.bucket, []).append(job.position.id)
        answers = await asyncio.gather(
            *(_take(store, order, bucket, [topic, *due], by_bucket[bucket]) for bucket in by_bucket)
        )
        for jobs, _ in answers:
            taken += jobs
        has_lost = room == len(found) and any(lost for _, lost in answers)
    if not taken:
        for error in order.away.values():
            raise error
    return sorted(taken, key=lambda job: (job.view.due_ms, job.raw_id))


async def _take(
    store: Store, order: DueOrder, bucket: int, where: list[Any], ids: list[bytes]
) -> tuple[list[Taken], int]:
    """Take jobs of one bucket; returns those that nobody else took first, and how many were taken first."""
    taken: list[Taken] = []
    lost = 0
    try:
        while ids:
            results = (await store.bucket(bucket).run("take", [*where, *ids[:PIECE]])).results
            taken += [
                _taken(job_id, *result)
                for job_id, result in zip(ids, results, strict=False)
                if not isinstance(result, int)
            ]
            lost += results.count(Code.NO_SUCH_JOB)
            ids = ids[len(results) :]
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


def _taken(raw_id: bytes, raw: bytes, run: bytes) -> Taken:
    view = live_view(text(raw_id), State.FINISHED, raw, run)
    return Taken(view, raw_id, raw, run)
