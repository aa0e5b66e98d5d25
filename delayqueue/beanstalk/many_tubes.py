"""Reserves from more tubes than one poll can take: a call would search them for too long."""

import asyncio
from typing import Final

from delayqueue.domain.job import Reserved
from delayqueue.engine.queue import DelayQueue
from delayqueue.tasks import cancel_all

MOST_TUBES: Final = 500  # per poll: about 3 ms of the store's time


async def pop_one(queue: DelayQueue, tubes: tuple[str, ...], wait_s: float) -> list[Reserved]:
    """The most urgent job of these tubes, [] if none comes in time.

    With more tubes than one poll takes, it is the most urgent one of some of them. Raises what DelayQueue.pop raises; a
    cancelled caller takes nothing.
    """
    if len(tubes) <= MOST_TUBES:
        return await queue.pop(tubes, 1, wait_s, by_priority=True)
    pieces = [tubes[at : at + MOST_TUBES] for at in range(0, len(tubes), MOST_TUBES)]
    if not wait_s:
        for piece in pieces:
            if jobs := await queue.pop(piece, 1, 0, by_priority=True):
                return jobs
        return []
    return await _first(queue, pieces, wait_s)


async def _first(queue: DelayQueue, pieces: list[tuple[str, ...]], wait_s: float) -> list[Reserved]:
    """What the first poll to finish brings; jobs that others bring at the same time are put back."""
    polls = [
        asyncio.create_task(
            queue.pop(piece, 1, wait_s, by_priority=True), name="poll of some tubes"
        )
        for piece in pieces
    ]
    first = None
    try:
        first = await _first_with_jobs(polls)
        return first.result() if first else []
    finally:
        try:
            await cancel_all(polls)
        except asyncio.CancelledError:
            first = None
            raise
        finally:
            queue.requeue(job for poll in polls if poll is not first for job in _brought(poll))


Polling = asyncio.Task[list[Reserved]]


async def _first_with_jobs(polls: list[Polling]) -> Polling | None:
    """The first poll that brings something; None if none does."""
    waiting = set(polls)
    while waiting:
        ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for poll in ended:
            if poll.result():
                return poll
    return None


def _brought(poll: Polling) -> list[Reserved]:
    return [] if poll.cancelled() or poll.exception() else poll.result()
