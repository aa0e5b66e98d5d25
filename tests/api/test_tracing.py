"""A job is delivered with the trace that pushed it."""

from typing import Final

import pytest

from tests.api.jobs import take
from tests.api_client import Api

TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER: Final = "00-ffffffffffffffffffffffffffffffff-00f067aa0ba902b7-00"


async def test_the_header_of_a_push_comes_back_at_each_delivery(api: Api, topic: str) -> None:
    job = {"topic": topic, "id": topic, "ttr": 60, "tags": ["x"], "retry": {"delays": [0, 0]}}
    (await api.call("/push", job, {"traceparent": TRACE})).ok()
    for attempt in (1, 2):
        popped = (await api.pop(topic)).ok()
        assert (popped["attempt"], popped["traceparent"]) == (attempt, TRACE)
        (await api.call("/release", {"id": topic})).ok()


async def test_a_jobs_own_trace_wins_over_the_header(api: Api, topic: str) -> None:
    jobs = [{"topic": topic, "id": f"{topic}/{n}", "ttr": 60} for n in range(2)]
    jobs[1]["traceparent"] = OTHER
    (await api.call("/push", jobs, {"traceparent": TRACE})).ok()
    taken = {job["id"]: job["traceparent"] for job in await take(api, topic, 2)}
    assert taken == {f"{topic}/0": TRACE, f"{topic}/1": OTHER}


async def test_a_job_without_a_trace_has_none(api: Api, topic: str) -> None:
    (await api.push(topic=topic, id=topic, tags=['"traceparent"'])).ok()
    assert "traceparent" not in (await api.pop(topic)).ok()


@pytest.mark.parametrize("header", ["", "x", TRACE.upper()])
async def test_a_wrong_header_is_ignored(api: Api, topic: str, header: str) -> None:
    """What is none: tests/unit/test_refusals.py."""
    job = {"topic": topic, "id": topic, "ttr": 60}
    (await api.call("/push", job, {"traceparent": header})).ok()
    assert "traceparent" not in (await api.pop(topic)).ok()
