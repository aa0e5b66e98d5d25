"""Runs a job through a worker's handlers, without a server."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from delayqueue.tasks import cancel_all
from delayqueue.worker.handled_job import ignore_progress

if TYPE_CHECKING:
    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.worker import Verdict, Worker
    from delayqueue.worker.executor import Executor
    from delayqueue.worker.handled_job import Tell


async def verdict_on(
    worker: Worker, job: ReservedJob, context: Any, executor: Executor, tell: Tell = ignore_progress
) -> Verdict:
    """What the worker would report about this attempt. `context`: ... = what the worker's lifespan yields."""
    given = worker.handlers.context() if context is ... else nullcontext(context)
    async with given as shared:
        ends: list[Verdict] = []

        async def work() -> None:
            verdict, _ = await worker.handlers.run(job, executor, shared, tell)
            ends.append(verdict)

        run = asyncio.create_task(work(), name=f"job {job.id}")  # which its handler may cancel
        try:
            await asyncio.wait([run])
        finally:
            await cancel_all([run])
        return worker.handlers.scrubbed(ends[0])
