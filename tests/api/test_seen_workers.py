"""/workers: who polls, what they have in hand, and whether they are alive."""

import asyncio
from collections.abc import Callable
from typing import Final

from tests.api_client import Api, Json
from tests.waiting import until_async

from .conftest import in_one_setup

Pair = tuple["Api", "Api"]
TTR_S: Final = 50


async def seen(api: Api, name: str) -> Json | None:
    found = (await api.call("/workers", {})).ok()
    return next((one for one in found if one["name"] == name), None)


async def until_seen(api: Api, name: str, is_so: Callable[[Json], bool]) -> Json:
    """The worker, as soon as it is seen like that."""
    found: Json = {}

    async def holds() -> bool:
        nonlocal found
        found = await seen(api, name) or {}
        return bool(found) and is_so(found)

    await until_async(holds)
    return found


async def test_all_servers_tell_who_has_a_job_and_what_became_of_it(
    pair: Pair, topic: str, name: Callable[[str], str]
) -> None:
    one, other = pair
    who: Json = {
        "name": name("w"),
        "version": "2.4",
        "host": "web1",
        "pid": 4711,
        "concurrency": 3,
    }
    for job in "abc":
        (await one.push(topic=topic, id=f"{topic}/{job}", ttr=TTR_S)).ok()
    taken: list[Json] = []
    while len(taken) < 3:
        taken += (await one.pop(topic, count=3, worker=who)).ok()
    view = await until_seen(other, who["name"], lambda view: view["in_hand"] == 3)
    assert {field: view[field] for field in who} == who
    assert (view["topics"], view["address"], view["gone"]) == ([topic], "127.0.0.1", False)
    assert view["since"] <= view["seen"]
    for job in view["jobs"]:
        assert TTR_S - 1 < job["until"] - job["since"] < TTR_S + 1
    a, b, c = sorted(taken, key=lambda job: str(job["id"]))
    assert (await other.get(a["id"])).ok()["worker"] == who["name"]
    listed = (await other.call("/list", {"topic": topic, "state": "reserved"})).ok()["jobs"]
    assert [job["worker"] for job in listed] == [who["name"]] * 3
    # it finishes one here and one there, and gives the third back
    (await one.finish(a["id"], receipt=a["receipt"])).ok()
    (await other.finish(b["id"], receipt=b["receipt"])).ok()
    (await other.call("/release", {"id": c["id"], "receipt": c["receipt"], "delay": 60})).ok()
    view = await until_seen(other, who["name"], lambda view: view["in_hand"] == 0)
    names = [one["name"] for one in (await other.call("/workers", {})).ok()]
    assert names.count(who["name"]) == 1  # though both servers have seen it
    assert (view["finished"], view["failed"], view["until"], view["jobs"]) == (2, 1, None, [])
    assert "worker" not in (await one.get(c["id"])).ok()


@in_one_setup
async def test_one_that_vanishes_with_jobs_in_hand_is_seen_before_their_ttr(
    api: Api, topic: str, name: Callable[[str], str]
) -> None:
    who = {"name": name("w")}
    (await api.push(topic=topic, id=topic, ttr=TTR_S)).ok()
    job = (await api.pop(topic, worker=who)).ok()
    assert job["id"] == topic
    poll = asyncio.create_task(api.pop(topic, worker=who, timeout=25))
    await until_seen(api, who["name"], lambda view: view["in_hand"] == 1)
    poll.cancel()
    view = await until_seen(api, who["name"], lambda view: bool(view["gone"]))
    assert view["in_hand"] == 1
    assert view["until"] > view["seen"]
    assert (await api.call("/workers", {})).ok()[0] == view  # it comes first
    metrics = await (await api.session.get(f"{api.url}/metrics")).text()
    assert 'delayqueue_workers{state="gone"} 1.0' in metrics
    # it was only its connection
    touched = {"id": topic, "receipt": job["receipt"], "ttr": TTR_S + 10}
    (await api.call("/touch", touched)).ok()
    await until_seen(api, who["name"], lambda view: not view["gone"])
    (await api.finish(topic)).ok()


@in_one_setup
async def test_who_does_not_tell_its_name_is_not_seen(api: Api, topic: str) -> None:
    (await api.push(topic=topic, id=topic, ttr=TTR_S)).ok()
    (await api.pop(topic)).ok()
    (await api.call("/pop", {"topic": topic, "timeout": 0, "worker": None})).ok()
    found = (await api.call("/workers", {})).ok()
    assert not [one for one in found if topic in one["topics"]]
    assert "worker" not in (await api.get(topic)).ok()
    (await api.finish(topic)).ok()


@in_one_setup
async def test_the_longest_description_is_taken(
    api: Api, topic: str, name: Callable[[str], str]
) -> None:
    long = name("w").ljust(256, "x")
    who = {"name": long, "version": "1" * 64, "host": "h" * 256, "pid": 2**32 - 1}
    poll = asyncio.create_task(api.pop(topic, worker=who | {"concurrency": 100_000}, timeout=25))
    assert (await until_seen(api, long, bool))["pid"] == 2**32 - 1
    poll.cancel()


@in_one_setup
async def test_pop_tells_the_tags_of_a_job_that_has_some(api: Api, topic: str) -> None:
    (await api.push(topic=topic, id=f"{topic}/a", tags=["x", "y"])).ok()
    (await api.push(topic=topic, id=f"{topic}/b", priority=5000)).ok()
    found = {job["id"]: job for job in [(await api.pop(topic)).ok() for _ in "ab"]}
    assert found[f"{topic}/a"]["tags"] == ["x", "y"]
    assert "tags" not in found[f"{topic}/b"]
