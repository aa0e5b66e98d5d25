"""/limit protects the system behind a topic, whichever server its jobs are fetched from."""

import asyncio
import time
from typing import Final

from tests.api_client import Api, open_api
from tests.processes import Processes, StoreServer
from tests.waiting import until_async

from .conftest import Pair

WRONG_STATE: Final = 3
NO_LIMITS: Final = {
    "rate": None,
    "burst": None,
    "concurrency": None,
    "buried_retain": None,
    "declared": False,
}


async def fill(api: Api, topic: str, count: int) -> None:
    """Push ready jobs."""
    jobs = [{"topic": topic, "id": f"{topic}/{n}", "delay": 0, "ttr": 600} for n in range(count)]
    assert all(outcome["code"] == 0 for outcome in (await api.push_all(jobs)).ok())


async def test_a_rate_holds_over_two_servers(pair: Pair, topic: str) -> None:
    """The limits of each bucket: tests/store/test_limits.py."""
    rate, burst, jobs = 100, 8, 208
    arrived_s: list[float] = []

    async def consume(api: Api) -> None:
        while len(arrived_s) < jobs:
            if job := (await api.pop(topic, timeout=1)).ok():
                arrived_s.append(time.monotonic())
                (await api.finish(job["id"], receipt=job["receipt"])).ok()

    await pair[0].call("/limit", {"topic": topic, "rate": rate, "burst": burst})
    await fill(pair[0], topic, jobs)
    began_s = time.monotonic()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(consume(pair[number % 2]))
    for number, at_s in enumerate(arrived_s):
        assert number + 1 <= burst + (at_s - began_s) * rate + 1
    # if a limit woke nobody, only the look once a second would continue: `burst` jobs each time, 26 s for all
    assert arrived_s[-1] - began_s < 18


async def test_what_is_in_force_is_answered_and_stands_among_the_topics(
    api: Api, topic: str
) -> None:
    limits = (await api.call("/limit", {"topic": topic, "rate": 40, "concurrency": 8})).ok()
    assert limits == NO_LIMITS | {"rate": 40, "burst": 4, "concurrency": 8}
    [counts] = (await api.call("/topics", {"topics": [topic]})).ok()
    assert counts["limit"] == limits
    (await api.call("/limit", {"topic": topic, "burst": 40})).ok()
    same_rate = (await api.call("/limit", {"topic": topic, "rate": 40})).ok()
    assert same_rate == limits | {"burst": 40}
    lifted = {"topic": topic, "rate": None, "concurrency": None}
    assert (await api.call("/limit", lifted)).ok() == NO_LIMITS
    assert (await api.call("/limit", {"topic": topic})).ok() == NO_LIMITS


async def test_a_config_file_limits_topics_until_it_says_so_no_more(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    database = redis_server.new_database()
    section = f"[limit {topic}]\nrate = 0.5\nburst = 3\n"
    server = processes.configured(section, redis_server, redis__db=database)
    server.start()
    async with open_api(server.url) as api:
        await fill(api, topic, 5)
        assert len((await api.pop(topic, count=10)).ok()) == 3
        refused = await api.call("/limit", {"topic": topic, "rate": 9})
        refused.refused(WRONG_STATE)
        (await api.call("/limit", {"topic": "other", "rate": 9})).ok()
    server.stop()
    server = processes.configured("", redis_server, redis__db=database)
    server.start()
    async with open_api(server.url) as api:
        assert (await api.call("/limit", {"topic": topic})).ok() == NO_LIMITS
        assert (await api.call("/limit", {"topic": "other"})).ok()["rate"] == 9
        assert len((await api.pop(topic, count=10)).ok()) == 2


async def test_dead_letters_end_by_themselves_after_the_topics_time_or_the_servers(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.configured(
        "[limit kept]\nburied_retain = 1h\n", redis_server, buried_retain=1
    )
    server.start()
    async with open_api(server.url) as api:
        for topic in ("kept", "ends"):
            (await api.push(topic=topic, id=topic, delay=0, ttr=60)).ok()
            (await api.call("/bury", {"id": topic})).ok()
        await until_async(lambda: is_gone(api, "ends"))
        assert (await api.get("kept")).ok()["state"] == "buried"
        declared = (await api.call("/limit", {"topic": "kept"})).ok()
        assert (declared["buried_retain"], declared["declared"]) == (3600, True)
        (await api.call("/limit", {"topic": "ends", "buried_retain": 3600})).ok()


async def is_gone(api: Api, job_id: str) -> bool:
    return (await api.get(job_id)).ok() is None


async def test_a_report_that_would_come_back_is_refused(api: Api, topic: str) -> None:
    (await api.call("/limit", {"topic": topic, "buried_to": f"{topic}-b"})).ok()
    for other, to in ((topic, topic), (f"{topic}-b", topic)):
        refused = await api.call(
            "/limit", {"topic": other, "buried_to": to}, {"Accept-Language": "en"}
        )
        assert refused.refused() == "buried_to: dead letters would come back to the topic"
