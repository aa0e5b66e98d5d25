"""/kick of many: each job has its own answer."""

from collections.abc import Callable

from tests.api_client import Api


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
