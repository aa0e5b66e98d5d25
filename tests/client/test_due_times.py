"""When a job is due: what programs give as its delay."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from delayqueue import Worker
from delayqueue.client import Invalid, Job
from delayqueue.testing import Queue, Released
from delayqueue.worker import Retry
from tests.client.conftest import Caller

PASSED = [-5, -0.5, timedelta(days=-1)]


@pytest.mark.parametrize("delay", PASSED)
async def test_a_time_that_has_passed_is_now(client: Caller, topic: str, delay: Any) -> None:
    """As for Celery's countdown: a program that counts the time until something may be late."""
    one = await client.push(topic, delay=delay, id=f"{topic}-1")
    [outcome] = await client.push_many([Job(topic=topic, id=f"{topic}-2", delay=delay)])
    assert outcome.code == 0
    job = await client.pop(topic, wait=20)
    assert job.id == one
    await client.release(job, delay=delay)
    assert len(await client.pop_many(topic, count=5, wait=20)) == 2
    later = await client.push(topic, delay="1h")
    await client.reschedule(later, delay=delay)
    assert (await client.pop(topic, wait=20)).id == later


async def test_a_date_is_no_moment_and_a_time_is_no_length(client: Caller, topic: str) -> None:
    day = date(2026, 12, 1)
    say_when = r"2026-12-01 has no time of day: pass a datetime, such as datetime\(2026, 12, 1, 9\)"
    for call in (
        client.push(topic, due=day),
        client.push_many([Job(topic=topic, due=day)]),  # type: ignore[arg-type]
        client.reschedule("a", due=day),
        client.list_jobs(topic, start=day),
        client.take(topic, before=day),
    ):
        with pytest.raises(TypeError, match=say_when):
            await call
    for moment in (day, datetime(2026, 12, 1, 9)):  # noqa: DTZ001  # as a user has it
        with pytest.raises(TypeError, match="is a time, not a length of time: pass it as `due`"):
            await client.push(topic, delay=moment)


@pytest.mark.parametrize("delay", PASSED)
def test_a_handler_may_ask_for_a_time_that_has_passed(delay: Any) -> None:
    worker = Worker()

    @worker.on("t", max_attempts=2)
    def again(_: str) -> None:
        raise Retry(delay)

    queue = Queue(worker)
    queue.push("t", delay=delay)
    first, _second = queue.advance()
    assert first.verdict == Released("to be tried again", 0)


async def test_a_delay_and_a_due_time_are_not_both_taken(client: Caller, topic: str) -> None:
    pairs: list[dict[str, Any]] = [{"delay": delay, "due": 1_900_000_000} for delay in (5, 0)]
    for both in pairs:
        with pytest.raises(ValueError, match=r"^delay and due: give one of them$"):
            await client.push(topic, **both)
        with pytest.raises(ValueError, match=r"^delay and due: give one of them$"):
            Job(topic=topic, **both).request()
    job_id = await client.push(topic, due=1_900_000_000)
    with pytest.raises(Invalid, match="delay"):
        await client.reschedule(job_id, delay=5, due=1_900_000_000)
    assert (await client.get(job_id)).due == 1_900_000_000
