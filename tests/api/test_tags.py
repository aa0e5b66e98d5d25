"""One call moves all jobs of a tag, or many by their ids. The rest: tests/store/test_reschedule.py, test_kick.py."""

import time

from tests.api_client import Api


async def test_the_jobs_of_a_tag_are_moved_in_one_topic_and_kicked_in_all(
    api: Api, topic: str
) -> None:
    now = time.time()
    dues = {f"{topic}-early": now + 1000, f"{topic}-late": now + 5000.25}
    for job_id, due in dues.items():
        (await api.push(topic=topic, id=job_id, due=due, tags=[topic])).ok()
    for job_id in (f"{topic}-other", f"{topic}-buried"):
        (await api.push(topic=f"{topic}-other", id=job_id, delay=600, tags=[topic])).ok()
    (await api.call("/bury", {"id": f"{topic}-buried"})).ok()

    async def moved(**how: object) -> dict[str, float]:
        asked = {"tag": topic, "topic": topic, **how}
        assert (await api.call("/reschedule", asked)).ok() == {"count": 2}
        found = (await api.call("/get", {"ids": [*dues]})).ok()
        return {job["id"]: round(job["due"] - dues[job["id"]], 2) for job in found}

    assert await moved(by=3600) == dict.fromkeys(dues, 3600)
    assert await moved(by=-3700.5) == dict.fromkeys(dues, -100.5)
    together = round(now) + 7200
    assert await moved(due=together) == {
        job_id: round(together - due, 2) for job_id, due in dues.items()
    }
    assert (await api.call("/kick", {"tag": topic})).ok() == {"count": 1}
    kick = {"tag": topic, "state": "delayed"}
    assert (await api.call("/kick", kick | {"topic": topic})).ok() == {"count": 2}
    assert (await api.call("/kick", kick)).ok() == {"count": 1}


async def test_ids_are_moved_by_a_distance_once_and_get_a_priority(api: Api, topic: str) -> None:
    due = int(time.time()) + 600
    (await api.push(topic=topic, id=topic, due=due)).ok()
    asked = {"ids": [topic, "never-pushed", topic], "by": -60, "priority": 3}
    row = {"id": topic, "code": 0, "due": due - 60}
    assert (await api.call("/reschedule", asked)).ok() == {
        "count": 2,
        "results": [row, {"id": "never-pushed", "code": 2, "due": None}, row],
    }
    assert (await api.call("/reschedule", {"id": topic, "priority": 5})).ok() == {"due": due - 60}
    found = (await api.get(topic)).ok()
    assert (found["priority"], found["due"]) == (5, due - 60)
