"""/limit protects the system behind a topic, whichever server its jobs are fetched from."""

from typing import Final

from tests.api_client import Api, open_api
from tests.processes import Processes, StoreServer
from tests.waiting import until_async

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
