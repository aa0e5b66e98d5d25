"""A ready job whose group is held says by which job, wherever its state is told."""

from tests.api_client import Api, Json

from .test_find import found


async def told(api: Api, topic: str, job_id: str) -> Json | None:
    """What the job is held by, as all endpoints tell it."""
    lists = ({"topic": topic}, {"topic": topic, "state": "ready"}, {"tag": topic})
    pages = [(await api.call("/list", asked)).ok()["jobs"] for asked in lists]
    jobs = [(await api.call("/get", {"ids": [job_id]})).ok(), *pages]
    jobs.append(await found(api, topic=topic, id=job_id))
    [answer, *others] = [
        job.get("held_by", "not told") for each in jobs for job in each if job["id"] == job_id
    ]
    assert others == [answer] * 4
    assert answer is not None  # it is left out
    return None if answer == "not told" else answer


async def test_a_held_job_says_which_one_its_group_waits_for(api: Api, topic: str) -> None:
    (await api.call("/limit", {"topic": topic, "group_order": True})).ok()
    first, second, third = (f"{{{topic}}}{n}" for n in range(3))
    for job_id in (first, second, third):
        job = {"topic": topic, "id": job_id, "ttr": 600, "group": topic, "tags": [topic]}
        (await api.push(**job)).ok()
    assert await told(api, topic, second) is None  # it waits for its turn
    popped = (await api.pop(topic, timeout=20)).ok()
    assert popped["id"] == first
    receipt = {"id": first, "receipt": popped["receipt"]}
    deadline = (await api.call("/touch", receipt | {"ttr": 60})).ok()["deadline"]
    for job_id in (second, third):
        assert await told(api, topic, job_id) == {
            "id": first,
            "state": "reserved",
            "until": deadline,
        }
    due = (await api.call("/release", receipt | {"delay": 3600})).ok()["due"]
    for job_id in (second, third):
        assert await told(api, topic, job_id) == {"id": first, "state": "delayed", "until": due}
    assert "held_by" not in (await api.get(first)).ok()
    (await api.call("/delete", {"id": first})).ok()
    assert await told(api, topic, third) is None
