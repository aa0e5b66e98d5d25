"""The group of a job over HTTP: told wherever the job is, and kept until a push replaces it."""

from typing import Any

from tests.api_client import Api, open_api
from tests.processes import QueueServer

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


async def test_a_group_stays_until_a_push_replaces_it(
    ordered_server: QueueServer, topic: str
) -> None:
    """With one bucket: with several, the id says the group."""
    async with open_api(ordered_server.url) as api:
        job = {"topic": topic, "id": topic, "ttr": 60, "retain": 60, "group": GROUP}

        async def group() -> str:
            told: str = (await api.call("/get", {"id": topic})).ok()["group"]
            return told

        (await api.call("/push", job)).ok()
        receipt = (await api.pop(topic)).ok()["receipt"]
        (await api.call("/release", {"id": topic, "receipt": receipt, "delay": 60})).ok()
        assert await group() == GROUP
        (await api.call("/reschedule", {"id": topic, "delay": 3600, "priority": 7})).ok()
        assert await group() == GROUP
        (await api.call("/bury", {"id": topic})).ok()
        (await api.call("/kick", {"id": topic, "body": "another"})).ok()
        assert (await api.pop(topic)).ok()["group"] == GROUP
        (await api.call("/finish", {"id": topic})).ok()
        assert await group() == GROUP
        (await api.call("/push", job | {"group": "customer-8", "if_exists": "keep"})).ok()
        assert await group() == GROUP
        (await api.call("/push", job | {"group": "customer-8"})).ok()
        assert await group() == "customer-8"
