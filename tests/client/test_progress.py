"""job.progress() in a handler: what the server is told, and when."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from delayqueue import AsyncClient, Worker
from delayqueue.testing import Queue
from delayqueue.worker import HandledJob, current_job
from tests.client.conftest import at_work, until_state
from tests.waiting import until_async

if TYPE_CHECKING:
    from tests.processes import QueueServer


async def told(queue: AsyncClient, job_id: str) -> tuple[float | None, str] | None:
    job = await queue.get(job_id)
    if job is None or job.progress is None:
        return None
    return job.progress.percent, job.progress.message


async def until_told(queue: AsyncClient, job_id: str, percent: float | None, message: str) -> None:
    async def is_told() -> bool:
        return await told(queue, job_id) == (percent, message)

    await until_async(is_told)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_handler_tells_how_far_its_job_is(
    server: QueueServer, queue: AsyncClient, topic: str, kind: str
) -> None:
    worker, go = Worker(server.url), threading.Event()

    def fail(job: HandledJob) -> None:
        for page in range(5, 10):
            job.progress(10 * page, f"page {page} of 10")
        raise ValueError("no page 10")

    async def in_loop(job: HandledJob) -> None:
        job.progress(40, "page 4 of 10")
        await asyncio.to_thread(go.wait, 60)
        fail(job)

    def in_thread(job: HandledJob) -> None:
        assert current_job().tell == job.tell
        current_job().progress(40, "page 4 of 10")
        go.wait(60)
        fail(job)

    worker.on(topic, retry=["1h"])(in_loop if kind == "async" else in_thread)
    job_id = await queue.push(topic)
    async with at_work(worker):
        await until_told(queue, job_id, 40, "page 4 of 10")
        go.set()
        await until_state(queue, job_id, "delayed")
        assert await told(queue, job_id) == (90, "page 9 of 10")  # where it stood


async def test_what_cannot_be_told_is_logged_and_fails_no_job(
    server: QueueServer, queue: AsyncClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(server.url)

    @worker.on(topic)
    async def handle(job: HandledJob) -> str:
        job.progress(101)
        await asyncio.sleep(0)  # it is told
        await until_async(lambda: _is_logged(caplog))
        return "done"

    job_id = await queue.push(topic, retain=60)
    async with at_work(worker):
        job = await queue.get(job_id, wait=30)
    assert job is not None
    assert (job.state, job.message, job.progress) == ("finished", "done", None)


async def _is_logged(caplog: pytest.LogCaptureFixture) -> bool:
    return any("cannot tell its progress: progress 101" in line for line in caplog.messages)


async def test_a_message_is_scrubbed_like_any_other(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    worker, go = Worker(server.url), asyncio.Event()

    @worker.scrub
    def scrub(text: str) -> str:
        return text.replace("4111", "****")

    @worker.on(topic)
    async def handle(job: HandledJob) -> None:
        job.progress(None, "card 4111")
        await go.wait()

    job_id = await queue.push(topic)
    async with at_work(worker):
        await until_told(queue, job_id, None, "card ****")
        go.set()


def test_the_queue_of_tests_tells_where_a_job_stood() -> None:
    worker, before = Worker(None), list[Any]()
    fake = Queue()

    @worker.on("import", retry=["1m"])
    def handle(job: HandledJob) -> None:
        before.append(getattr(fake.get(job.id), "progress", None))
        if job.attempt == 1:
            job.progress(40, "page 4 of 10")
            job.progress(None, "page 5 of 10")
            raise ValueError("no page 6")

    fake.add(worker)
    job_id = fake.push("import", retain=60)
    fake.advance()
    job = fake.get(job_id)
    assert job
    assert job.progress
    assert (job.progress.percent, job.progress.message) == (40, "page 5 of 10")
    fake.advance("1m")
    job = fake.get(job_id)
    assert job
    assert (job.state, job.progress, before) == ("finished", None, [None, None])
