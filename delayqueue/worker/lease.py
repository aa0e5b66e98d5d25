"""Keeps a reservation alive while its handlers run."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from delayqueue.client.calls import TransportError
from delayqueue.errors import NoSuchJob, QueueError, StaleReceipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.client.aio import AsyncClient

log = logging.getLogger(__name__)

FIRST_S: Final = 0.4  # most jobs are done by then and cost nothing; the shortest TTR is 1 s
SHARE: Final = 3  # a lease is extended after this fraction of the TTR


@contextmanager
def kept(client: AsyncClient, job: ReservedJob, lost: Callable[[], object]) -> Iterator[None]:
    """Extend the reservation during the block; calls `lost` if somebody else may have the job by now."""
    keeping: list[asyncio.Task[None]] = []

    def begin() -> None:
        keeping.append(asyncio.create_task(_keep(client, job, lost), name=f"lease of {job.id}"))

    # a timer costs less than a task
    timer = asyncio.get_running_loop().call_later(FIRST_S, begin)
    try:
        yield
    finally:
        timer.cancel()
        for task in keeping:
            task.cancel()


async def _keep(client: AsyncClient, job: ReservedJob, lost: Callable[[], object]) -> None:
    ttr_s = None
    while True:
        try:
            if ttr_s is None:
                details = await client.get(job.id)
                ttr_s = details.ttr if details else None
            await client.touch(job)
        except (StaleReceipt, NoSuchJob):
            log.warning("job %s no longer belongs to this worker", job.id)
            lost()
            return
        except (QueueError, TransportError) as error:
            log.warning("job %s could not be extended: %s", job.id, error)
        await asyncio.sleep(FIRST_S if ttr_s is None else ttr_s / SHARE)
