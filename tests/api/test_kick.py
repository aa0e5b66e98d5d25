"""/kick of many: each job has its own answer."""

from collections.abc import Callable

import pytest

from delayqueue.errors import Code
from tests.api_client import INVALID, LARGE_BYTES, TOO_LARGE, Api


async def test_each_of_many_ids_has_its_own_result(api: Api, name: Callable[[str], str]) -> None:
    topic, delayed, ready = name("topic"), name("delayed"), name("ready")
    await api.push(topic=topic, id=delayed, delay=60)
    await api.push(topic=topic, id=ready)
    kicked = (await api.call("/kick", {"ids": [delayed, ready, "unknown"]})).ok()
    results = [(delayed, 0), (ready, 3), ("unknown", 2)]
    assert kicked == {
        "count": 1,
        "results": [{"id": job_id, "code": code} for job_id, code in results],
    }
    assert (await api.call("/kick", {"topic": topic})).ok() == {"count": 0}


async def test_delayed_jobs_are_not_delivered_early_where_few_are_buried_or_none(
    api: Api, topic: str
) -> None:
    ids = [f"{topic}-{number}" for number in range(21)]
    await api.push_all([{"topic": topic, "id": job_id, "delay": 600} for job_id in ids])
    (await api.call("/bury", {"id": ids[0]})).ok()
    kicks = [await api.call("/kick", {"topic": topic, "count": 15}) for _ in range(2)]
    assert [kick.ok() for kick in kicks] == [{"count": 1}, {"count": 0}]
    assert [job["id"] for job in (await api.pop(topic, count=21)).ok()] == ids[:1]


async def test_delayed_jobs_are_kicked_where_the_state_is_said(api: Api, topic: str) -> None:
    ids = [f"{topic}-{number}" for number in range(8)]
    await api.push_all([{"topic": topic, "id": job_id, "delay": 600} for job_id in ids])
    kick = {"topic": topic, "state": "delayed", "count": 5}
    assert (await api.call("/kick", kick)).ok() == {"count": 5}
    [counts] = (await api.call("/topics", {"topics": [topic]})).ok()
    assert (counts["delayed"], counts["ready"]) == (3, 5)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"topic": "t", "state": "ready"}, "buried、delayed"),
        ({"id": "a", "state": "buried"}, "state"),
        ({"ids": ["a"], "body": "b"}, "body"),
        ({"topic": "t", "body": "b"}, "body"),
        ({"tag": "t", "body": "b"}, "body"),
        ({"id": "a", "body": 5}, "body"),
    ],
)
async def test_what_cannot_be_kicked_is_named(
    api: Api, asked: dict[str, object], named: str
) -> None:
    assert named in (await api.call("/kick", asked)).refused(INVALID)


async def test_a_job_is_kicked_with_another_body_unless_it_is_too_large(
    api: Api, topic: str
) -> None:
    await api.push(topic=topic, id=topic, body="broken")
    (await api.call("/bury", {"id": topic})).ok()
    (await api.call("/kick", {"id": topic, "body": "x" * (LARGE_BYTES + 1)})).refused(
        TOO_LARGE, 413
    )
    (job,) = [(await api.call("/get", {"id": topic})).ok()]
    assert (job["state"], job["body"]) == ("buried", "broken")
    kick = {"id": topic, "body": "whole"}
    assert (await api.call("/kick", kick)).ok() == {"count": 1}
    (await api.call("/kick", kick)).refused(Code.WRONG_STATE)
    assert (await api.pop(topic)).ok()["body"] == "whole"


async def test_a_bad_element_of_an_array_is_named_in_the_words_of_json(api: Api) -> None:
    (outcome,) = (await api.call("/push", [5])).ok()
    assert outcome["code"] == INVALID
    assert "须为对象" in outcome["message"]
    assert "PushRequest" not in outcome["message"]


async def test_a_step_that_is_too_short_is_named(api: Api) -> None:
    asked = {"start": 0, "end": 10, "step": 0.0001}
    message = (await api.call("/forecast", asked)).refused(INVALID)
    assert "step" in message
    assert "start" not in message
