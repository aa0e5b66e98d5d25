"""Groups over HTTP: each in turn, one at a time, in order; in one bucket, whatever the number of buckets."""

import pytest

from tests.api_client import Api, open_api
from tests.processes import Processes, StoreServer

from .conftest import Pair


def name(group: str, number: int | str) -> str:
    return f"{{{group}}}{number}"


async def push(api: Api, topic: str, group: str, *numbers: int) -> list[str]:
    ids = [name(f"{topic}-{group}", number) for number in numbers]
    shared = {"topic": topic, "delay": 0, "ttr": 600, "group": f"{topic}-{group}"}
    assert all(
        one["code"] == 0 for one in (await api.push_all([{"id": i, **shared} for i in ids])).ok()
    )
    return ids


async def test_a_group_is_limited_over_two_servers(pair: Pair, topic: str) -> None:
    one, other = pair
    limits = (await one.call("/limit", {"topic": topic, "group_concurrency": 1})).ok()
    assert (limits["group_concurrency"], "group_order" in limits) == (1, False)
    a0, a1 = await push(one, topic, "a", 0, 1)
    [b0] = await push(other, topic, "b", 0)
    popped = [job for api in pair for job in (await api.pop(topic, count=10)).ok()]
    held = {job["id"]: job for job in popped}
    assert held.keys() == {a0, b0}
    [told] = (await other.call("/topics", {"topics": [topic], "groups": True})).ok()
    assert told["groups"] == {
        "ready": 0,
        "held": 1,
        "most": [{"group": f"{topic}-a", "ready": 1, "reserved": 1}],
    }
    (await other.finish(a0, receipt=held[a0]["receipt"])).ok()
    assert (await other.pop(topic, timeout=20)).ok()["id"] == a1


@pytest.mark.parametrize("name_of", ["{}", "{}}}b", "{{{}", "{}{{}}b", "a\0{}", "{} 客户-7"])
async def test_ids_that_the_server_makes_keep_a_group_together_whatever_its_name(
    api: Api, topic: str, name_of: str
) -> None:
    """Only a group that begins with } has no bucket of its own, where there are several."""
    (await api.call("/limit", {"topic": topic, "group_concurrency": 1})).ok()
    group = name_of.format(topic)
    made = [
        (await api.push(topic=topic, id="*", delay=0, group=group)).ok()["id"] for _ in range(9)
    ]
    assert len({*made}) == 9
    assert all(job_id.startswith(name(group, "")) for job_id in made)
    assert (await api.pop(topic, timeout=20)).ok()["group"] == group
    for _ in range(8):  # the buckets
        assert (await api.pop(topic, count=10, timeout=0)).ok() == []


async def test_with_several_buckets_an_id_elsewhere_is_refused(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, bucket_size=4, language="en")
    braces = "id: with several buckets the id of a job begins with its group in braces, like {a}"
    async with open_api(server.url) as api:
        for job_id, group, reason in (
            ("order-1", "a", f"{braces}order-1"),
            ("{b}order-1", "a", braces + "{b}order-1"),
            ("{}a}1", "}a", "group: must not begin with }"),
        ):
            assert (await api.push(topic="t", id=job_id, group=group)).refused() == reason
        (await api.push(topic="t", id=name("a", "order-1"), group="a")).ok()
