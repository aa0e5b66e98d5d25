"""Ranges of due times in /list and /take: their ends, and their order."""

import time
from typing import Any

import pytest

from tests.api_client import Api

LATER_S = round(time.time()) + 3600


@pytest.fixture
async def due_one_after_the_other(api: Api, topic: str) -> str:
    """The topic of five jobs, whose ids end in "0" to "4", due one second after the other."""
    jobs = [{"topic": topic, "id": f"{topic}/{n}", "due": LATER_S + n} for n in range(5)]
    assert {each["code"] for each in (await api.push_all(jobs)).ok()} == {0}
    return topic


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ({"start": 1, "end": 3}, "123"),
        ({"after": 1, "before": 3}, "2"),
        ({"start": 1, "before": 3}, "12"),
        ({"after": 1, "end": 3}, "23"),
        ({"after": 0.999, "before": 3.001}, "123"),
        ({"after": 2.9}, "34"),
        ({"before": 2.1}, "012"),
        ({"after": 1, "before": 2}, ""),
    ],
)
async def test_the_ends_of_a_range_are_in_or_out(
    api: Api, due_one_after_the_other: str, ends: dict[str, float], found: str
) -> None:
    topic = due_one_after_the_other
    request: Any = {"topic": topic} | {name: LATER_S + end for name, end in ends.items()}
    listed = (await api.call("/list", request)).ok()["jobs"]
    assert "".join(job["id"][-1] for job in listed) == found
    taken = (await api.call("/take", request)).ok()
    assert "".join(job["id"][-1] for job in taken) == found
    assert (await api.call("/list", request)).ok()["jobs"] == []


async def test_take_answers_all_that_a_job_was_pushed_with(api: Api, topic: str) -> None:
    told = {
        "ttr": 77,
        "tags": ["order:1", "user:7"],
        "priority": 0,
        "group": "customer-7",
        "retain": 300.0,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "idempotency_key": "payment 1",
    }
    full_id = f"{{customer-7}}{topic}/1"
    retries = {"retry": {"delays": [1.5, 60]}, "expire": 90}
    (await api.push(topic=topic, id=full_id, body="b", due=LATER_S, **told, **retries)).ok()
    (await api.push(topic=topic, id=f"{topic}/2", due=LATER_S + 1)).ok()
    [full, plain] = (await api.call("/take", {"topic": topic, "start": 0})).ok()
    here = {"topic": topic, "due": LATER_S}
    also = {"retry": [1.5, 60.0], "expires": LATER_S + 90}
    assert full == {"id": full_id, "body": "b"} | here | told | also
    assert plain == {"id": f"{topic}/2", "body": "", "ttr": 60} | here | {"due": LATER_S + 1}
