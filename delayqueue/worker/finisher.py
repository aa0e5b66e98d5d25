"""Ends jobs together that are done at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.jobs import Outcome, ReservedJob


class Finisher:
    """Finishes jobs, those of one turn of the loop in one request.

    Nobody waits for others: a job that is done alone is finished alone, and a request that hangs holds up no later one.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._jobs: list[ReservedJob] = []
        self._request: asyncio.Task[Sequence[Outcome]] | None = None
        self._requests: set[asyncio.Task[Sequence[Outcome]]] = set()

    async def close(self) -> None:
        """Give up what is under way: those jobs come again."""
        for request in self._requests:
            request.cancel()
        if self._requests:
            await asyncio.wait(self._requests)

    async def finish(self, job: ReservedJob) -> None:
        """As AsyncClient.finish(), and raises the same."""
        if self._request is None or len(self._jobs) == MAX_BATCH:
            self._jobs = []
            self._request = asyncio.create_task(self._send(self._jobs), name="finish")
            self._requests.add(self._request)
            self._request.add_done_callback(self._requests.discard)
        place, request = len(self._jobs), self._request
        self._jobs.append(job)
        # one that is stopped must not take the others along
        outcomes = await asyncio.shield(request)
        if not outcomes or outcomes[place].code != Code.OK:
            await self._client.finish(job)  # it says what is wrong

    async def _send(self, jobs: list[ReservedJob]) -> Sequence[Outcome]:
        """What became of each job; nothing is done about a single one."""
        if self._jobs is jobs:
            self._request = None
        return await self._client.finish_many(jobs) if len(jobs) > 1 else ()
