"""/kick of many: each job has its own answer."""

from collections.abc import Callable

from delayqueue.errors import Code
from tests.api_client import LARGE_BYTES, TOO_LARGE, Api


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
