"""One call moves all jobs of a tag, or many by their ids."""

import time
from typing import Any

from tests.api_client import Api

COUNT = 30


async def push_order(api: Api, topic: str, **options: Any) -> list[str]:
    """Delayed jobs of one order, half of them in another topic; the tag is the topic's name."""
    ids = [f"{topic}-{number}" for number in range(COUNT)]
    jobs = [
        {"topic": topic if n % 2 else f"{topic}-other", "id": job_id, "tags": [topic], "delay": 600}
        for n, job_id in enumerate(ids)
    ]
    await api.push_all([job | options for job in jobs])
    return ids


async def test_all_jobs_of_a_tag_are_rescheduled_to_the_same_time(api: Api, topic: str) -> None:
    ids = await push_order(api, topic)
    (await api.call("/bury", {"id": ids[1]})).ok()
    (await api.push(topic=topic, id=f"{topic}-bystander", delay=600)).ok()
    (await api.push(topic=f"{topic}-held", id=f"{topic}-held", tags=[topic])).ok()
    (await api.pop(f"{topic}-held")).ok()
    answer = await api.call("/reschedule", {"tag": topic, "delay": 3600})
    assert answer.ok() == {"count": COUNT}
    found = (await api.call("/get", {"ids": ids})).ok()
    assert {job["state"] for job in found} == {"delayed"}
    (due,) = {job["due"] for job in found}
    assert 3500 < due - time.time() <= 3600
    assert (await api.get(f"{topic}-held")).ok()["state"] == "reserved"
    assert (await api.get(f"{topic}-bystander")).ok()["due"] < due
    # they are there already
    assert (await api.call("/reschedule", {"tag": topic, "due": due})).ok() == {"count": 0}


async def test_the_jobs_of_a_tag_are_rescheduled_in_one_topic(api: Api, topic: str) -> None:
    await push_order(api, topic)
    moved = {"tag": topic, "topic": topic, "delay": 0}
    assert (await api.call("/reschedule", moved)).ok() == {"count": COUNT // 2}
    jobs = (await api.pop(topic, count=COUNT)).ok()
    while len(jobs) < COUNT // 2:
        jobs += (await api.pop(topic, count=COUNT)).ok()
    assert {job["topic"] for job in jobs} == {topic}
    assert (await api.pop(f"{topic}-other", timeout=0)).ok() is None


async def test_each_job_of_a_tag_is_moved_by_a_distance_from_its_own_time(
    api: Api, topic: str
) -> None:
    now = time.time()
    dues = {f"{topic}-early": now + 1000, f"{topic}-late": now + 5000.25}
    for job_id, due in dues.items():
        (await api.push(topic=topic, id=job_id, due=due, tags=[topic])).ok()

    async def moved(by: float) -> dict[str, float]:
        assert (await api.call("/reschedule", {"tag": topic, "by": by})).ok() == {"count": 2}
        found = (await api.call("/get", {"ids": [*dues]})).ok()
        return {job["id"]: round(job["due"] - dues[job["id"]], 2) for job in found}

    assert await moved(3600) == dict.fromkeys(dues, 3600)
    assert await moved(-3700.5) == dict.fromkeys(dues, -100.5)


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


async def test_the_buried_jobs_of_a_tag_are_kicked_and_delayed_ones_where_it_is_said(
    api: Api, topic: str
) -> None:
    ids = await push_order(api, topic)
    for job_id in ids[:4]:
        (await api.call("/bury", {"id": job_id})).ok()
    kick = {"tag": topic, "topic": topic}
    assert (await api.call("/kick", kick)).ok() == {"count": 2}
    assert (await api.call("/kick", {"tag": topic})).ok() == {"count": 2}
    assert (await api.call("/kick", {"tag": topic})).ok() == {"count": 0}
    assert (await api.call("/kick", {"tag": topic, "state": "delayed"})).ok() == {
        "count": COUNT - 4
    }
    found = (await api.call("/get", {"ids": ids})).ok()
    assert {job["state"] for job in found} == {"ready"}
