"""Requests that go together in one call do not share each other's mistakes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from delayqueue.engine.batcher import Batcher
from tests.store.bucket import Bucket, job
from tests.store.conftest import connect

if TYPE_CHECKING:
    from delayqueue.job import JobView

BAD = b"caf\xe9".decode("utf-8", "surrogateescape")


async def test_what_cannot_be_written_costs_its_own_request_only(valkey_server: Any) -> None:
    async with connect(valkey_server) as redis:
        bucket = Bucket.over(redis)
        ids = [f"id-{n}" for n in range(10)]
        await bucket.push(*map(job, ids))
        batcher: Batcher[str, JobView | None] = Batcher(
            lambda some: bucket.store.get(0, some), "get"
        )
        asked = [*ids[:3], BAD, *ids[3:], BAD]
        answers = await asyncio.gather(
            *(batcher.submit([job_id]) for job_id in asked), return_exceptions=True
        )
    for job_id, answer in zip(asked, answers, strict=True):
        if job_id == BAD:
            assert isinstance(answer, UnicodeEncodeError)
        else:
            assert not isinstance(answer, BaseException)
            assert [view and view.id for view in answer] == [job_id]
