"""What becomes of a job with a call for which the server has no room."""

import asyncio
from functools import partialmethod
from types import SimpleNamespace
from typing import Any, Final

import pytest

from delayqueue.delivery import job_calls
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.host_places import HostPlaces
from delayqueue.delivery.job_calls import CROWDED_MS, JobCalls
from delayqueue.domain.call import NAME, Call
from delayqueue.domain.job import Reserved
from delayqueue.metrics import SUBSCRIBER_CALLS, Metrics

CALL: Final = Call(url="http://example.com/")


class Jobs:
    """Takes the last job of a consumer, and notes what is given back or buried."""

    def __init__(self) -> None:
        self.polls = self
        self.put_off: list[tuple[str, int | None]] = []
        self.buried: list[str] = []

    def requeue(self, jobs: list[Reserved], *, delay_ms: int | None = None) -> None:
        self.put_off += [(job.id, delay_ms) for job in jobs]

    async def bury(self, job_id: str, _nonce: str, message: str) -> None:
        self.buried.append(f"{job_id}: {message}")


def calls_of(jobs: Jobs, per_host: int = 1) -> JobCalls:
    queue: Any = SimpleNamespace(within=lambda _: jobs, metrics=Metrics())
    webhooks: Any = None
    return JobCalls(queue, webhooks, CallGuard(()), secrets={}, per_host=per_host)


def reserved(call: Call | None, job_id: str = "j") -> Reserved:
    return Reserved("t", job_id, b"body", 1, "n-1-0", 0, 60_000, None, call=call)


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


class Hanging:
    """A delivery to a host that does not answer."""

    def __init__(
        self, _: JobCalls, _job: Reserved, _call: Call, host: HostPlaces, *_others: object
    ) -> None:
        self._host = host

    async def run(self) -> None:
        async with self._host.place():
            await asyncio.Event().wait()


async def test_many_hosts_that_hang_leave_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobCalls, "_delivery", partialmethod(Hanging))
    jobs = Jobs()
    calls = calls_of(jobs, per_host=10)
    async with asyncio.TaskGroup() as tasks:
        dead = [
            tasks.create_task(calls._work(reserved(Call(url=f"http://dead-{n % 100}.example/"))))
            for n in range(2 * job_calls.ROOM)
        ]
        await asyncio.sleep(0)
        in_hand = sum(not task.done() for task in dead)
        assert job_calls.ROOM / 2 < in_hand < job_calls.ROOM
        jobs.put_off.clear()
        alive = tasks.create_task(calls._work(reserved(CALL, "alive")))
        await asyncio.sleep(0)
        assert (jobs.put_off, alive.done()) == ([], False)
        for task in (*dead, alive):
            task.cancel()


async def test_a_call_that_cannot_be_read_is_a_dead_letter() -> None:
    jobs = Jobs()
    await calls_of(jobs)._work(reserved(None))
    assert jobs.buried == ["j: its call cannot be read"]
