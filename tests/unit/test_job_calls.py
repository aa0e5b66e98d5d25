"""What becomes of a job with a call for which the server has no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from delayqueue.delivery import job_calls
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.job_calls import CROWDED_MS, JobCalls
from delayqueue.domain.call import NAME, Call
from delayqueue.domain.job import Reserved
from delayqueue.metrics import SUBSCRIBER_CALLS, Metrics

if TYPE_CHECKING:
    import pytest

CALL: Final = Call(url="http://example.com/")


class Jobs:
    """Takes the last job of a consumer, and notes what is given back or buried."""

    def __init__(self) -> None:
        self.put_off: list[tuple[str, int | None]] = []
        self.buried: list[str] = []

    def requeue(self, jobs: list[Reserved], *, delay_ms: int | None = None) -> None:
        self.put_off += [(job.id, delay_ms) for job in jobs]

    async def bury(self, job_id: str, _receipt: str, message: str) -> None:
        self.buried.append(f"{job_id}: {message}")


def calls_of(jobs: Jobs) -> JobCalls:
    queue: Any = SimpleNamespace(within=lambda _: jobs, metrics=Metrics())
    webhooks: Any = None
    return JobCalls(queue, webhooks, CallGuard(()), secret="", per_host=1)


def reserved(call: Call | None) -> Reserved:
    return Reserved("t", "j", "body", 1, "n-1-0", 0, 60_000, None, call=call)


async def test_a_job_is_put_off_if_the_bodies_in_hand_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_calls, "ROOM_BYTES", -1)
    jobs = Jobs()
    calls = calls_of(jobs)
    await calls._work(reserved(CALL))
    [(job_id, delay_ms)] = jobs.put_off
    assert job_id == "j"
    assert delay_ms is not None
    assert CROWDED_MS[0] <= delay_ms <= CROWDED_MS[1]
    counted = calls._queue.metrics.snapshot()
    assert f"{SUBSCRIBER_CALLS.name}" in str(counted)
    assert (NAME in str(counted), calls._hosts) == (True, {})


async def test_a_call_that_cannot_be_read_is_a_dead_letter() -> None:
    jobs = Jobs()
    await calls_of(jobs)._work(reserved(None))
    assert jobs.buried == ["j: its call cannot be read"]
