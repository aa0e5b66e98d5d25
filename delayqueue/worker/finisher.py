"""Finishes jobs together that end at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.answers import Outcome, ReservedJob


class _Batch(NamedTuple):
    jobs: list[ReservedJob]
    request: asyncio.Task[Sequence[Outcome]]


class Finisher:
    """Finishes jobs; those of one turn of the loop with the same message share a request.

    No job waits for others: a single one is finished alone, and a request that hangs does not delay later ones.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._batches: dict[str, _Batch] = {}  # not sent so far, by message
        self._requests: set[asyncio.Task[Sequence[Outcome]]] = set()

    async def close(self) -> None:
        """Abandon requests in flight: their jobs are delivered again."""
        for request in self._requests:
            request.cancel()
        if self._requests:
            await asyncio.wait(self._requests)

    async def finish(self, job: ReservedJob, message: str = "") -> None:
        """Finish a job that this worker holds. Raises what AsyncClient.finish() raises."""
        batch = self._batches.get(message)
        if batch is None or len(batch.jobs) == MAX_BATCH:
            batch = self._batches[message] = self._begin(message)
        place = len(batch.jobs)
        batch.jobs.append(job)
        # cancelling one must not cancel the others
        outcomes = await asyncio.shield(batch.request)
        if not outcomes or outcomes[place].code != Code.OK:
            await self._client.finish(job, message=message or None)  # the error is its own

    def _begin(self, message: str) -> _Batch:
        jobs: list[ReservedJob] = []
        request = asyncio.create_task(self._send(jobs, message), name="finish")
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        return _Batch(jobs, request)

    async def _send(self, jobs: list[ReservedJob], message: str) -> Sequence[Outcome]:
        """The outcome of each job; [] for a single one, which is finished by itself."""
        if message in self._batches and self._batches[message].jobs is jobs:
            del self._batches[message]
        if len(jobs) < 2:
            return ()
        return await self._client.finish_many(jobs, message=message or None)
