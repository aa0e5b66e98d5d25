"""The group of a job over HTTP, told wherever the job is. The rest: tests/store/test_kick.py, test_reschedule.py."""

from typing import Any

from tests.api_client import Api

GROUP = "客户-7 {a}"


async def test_a_group_is_told_wherever_the_job_is(api: Api, topic: str) -> None:
    first = f"{{{GROUP}}}{topic}/1"
    (await api.push(topic=topic, id=first, delay=0, group=f" {GROUP}\t")).ok()
    (await api.push(topic=topic, id=f"{topic}/2", delay=0, priority=2000)).ok()
    one, other = {"id": first}, {"id": f"{topic}/2"}
    whole = [(await api.call("/get", each)).ok() for each in (one, other)]
    listed = (await api.call("/list", {"topic": topic})).ok()["jobs"]
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:  # other tests' jobs are in this store
        page = (await api.call("/find", {"topic": topic, "id": topic, "cursor": cursor})).ok()
        found += page["jobs"]
        cursor = page["cursor"] or None
    popped = [(await api.pop(topic)).ok() for _ in whole]
    (await api.push(topic=topic, id=f"{{{GROUP}}}{topic}/3", delay=60, group=GROUP)).ok()
    [taken] = (await api.call("/take", {"topic": topic, "start": 0})).ok()
    for told in (whole, listed, found, popped):
        groups = {job["id"]: job.get("group", "none") for job in told}
        assert groups == {first: GROUP, f"{topic}/2": "none"}
    assert taken["group"] == GROUP
