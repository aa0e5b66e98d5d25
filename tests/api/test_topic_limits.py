"""/limit protects the system behind a topic, whichever server its jobs are fetched from."""

import asyncio
import json
import time
from contextlib import closing
from typing import Final

import pytest

from tests.api_client import FORBIDDEN, Api, Json, open_api
from tests.processes import ProcessError, Processes, StoreServer
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


class Consumers:
    """Waiting polls at both servers, one job each, until all jobs are finished; they record how limits are kept."""

    def __init__(self, pair: Pair, topic: str, wanted: int) -> None:
        self._pair = pair
        self._topic = topic
        self._wanted = wanted
        self.arrived_s: list[float] = []
        self.at_once = self.most_at_once = 0

    async def run(self, count: int, work_s: float = 0.0) -> None:
        """This many consumers; each works for this long on a job."""
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self._consume(self._pair[number % 2], work_s))

    async def _consume(self, api: Api, work_s: float) -> None:
        while len(self.arrived_s) < self._wanted:
            job: Json | None = (await api.pop(self._topic, timeout=1)).ok()
            if job is None:
                continue
            self.arrived_s.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await asyncio.sleep(work_s)
            self.at_once -= 1
            (await api.finish(job["id"], receipt=job["receipt"])).ok()


async def test_a_rate_holds_over_two_servers(pair: Pair, topic: str) -> None:
    rate, burst, jobs = 100, 8, 208
    await pair[0].call("/limit", {"topic": topic, "rate": rate, "burst": burst})
    await fill(pair[0], topic, jobs)
    consumers = Consumers(pair, topic, jobs)
    began_s = time.monotonic()
    await consumers.run(10)
    for number, at_s in enumerate(consumers.arrived_s):
        assert number + 1 <= burst + (at_s - began_s) * rate + 1
    # if a limit woke nobody, only the look once a second would continue: `burst` jobs each time, 26 s for all
    assert consumers.arrived_s[-1] - began_s < 18


async def test_so_many_are_reserved_at_once_over_two_servers(pair: Pair, topic: str) -> None:
    concurrency, jobs, work_s = 8, 200, 0.05
    await pair[0].call("/limit", {"topic": topic, "concurrency": concurrency})
    await fill(pair[0], topic, jobs)
    consumers = Consumers(pair, topic, jobs)
    began_s = time.monotonic()
    await consumers.run(12, work_s)
    assert consumers.most_at_once == concurrency
    assert time.monotonic() - began_s < 18, "those who wait are woken"  # else it takes 25 s


async def test_what_is_in_force_is_answered_and_stands_among_the_topics(
    api: Api, topic: str
) -> None:
    limits = (await api.call("/limit", {"topic": topic, "rate": 40, "concurrency": 8})).ok()
    assert limits == NO_LIMITS | {"rate": 40, "burst": 4, "concurrency": 8}
    [counts] = (await api.call("/topics", {"topics": [topic]})).ok()
    assert counts["limit"] == limits
    lifted = {"topic": topic, "rate": None, "concurrency": None}
    assert (await api.call("/limit", lifted)).ok() == NO_LIMITS
    assert (await api.call("/limit", {"topic": topic})).ok() == NO_LIMITS


async def test_a_config_file_limits_topics_until_it_says_so_no_more(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    database = redis_server.new_database()
    section = f"[limit {topic}]\nrate = 0.5\nburst = 3\n"
    with closing(processes.configured(section, redis_server, redis__db=database)) as server:
        server.start()
        async with open_api(server.url) as api:
            await fill(api, topic, 5)
            assert len((await api.pop(topic, count=10)).ok()) == 3
            refused = await api.call("/limit", {"topic": topic, "rate": 9})
            refused.refused(WRONG_STATE)
            (await api.call("/limit", {"topic": "other", "rate": 9})).ok()
    with closing(processes.configured("", redis_server, redis__db=database)) as server:
        server.start()
        async with open_api(server.url) as api:
            assert (await api.call("/limit", {"topic": topic})).ok() == NO_LIMITS
            assert (await api.call("/limit", {"topic": "other"})).ok()["rate"] == 9
            assert len((await api.pop(topic, count=10)).ok()) == 2


async def test_each_bucket_needs_a_job_to_let_through(
    processes: Processes, redis_server: StoreServer
) -> None:
    with closing(processes.server(redis_server, bucket_size=4, language="en")) as server:
        async with open_api(server.url) as api:
            few = await api.call("/limit", {"topic": "t", "concurrency": 3})
            assert few.refused() == (
                "concurrency: must be at least 4, one for each bucket (bucket_size)"
            )
            (await api.call("/limit", {"topic": "t", "concurrency": 4})).ok()


async def test_dead_letters_end_by_themselves_after_the_topics_time_or_the_servers(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.configured(
        "[limit kept]\nburied_retain = 1h\n", redis_server, buried_retain=1
    )
    server.start()
    with closing(server):
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


async def test_each_dead_letter_is_a_job_of_another_topic(api: Api, topic: str) -> None:
    """In each setup: with several buckets the report is in that of the dead letter, and can be finished by its id."""
    dead = f"{topic}-dead"
    answer = await api.call("/limit", {"topic": topic, "buried_to": dead})
    assert answer.ok() == NO_LIMITS | {"buried_to": dead}
    await fill(api, topic, 20)
    for number in range(20):
        (await api.call("/bury", {"id": f"{topic}/{number}", "message": "no"})).ok()
    jobs: list[Json] = []
    while len(jobs) < 20:
        jobs += (await api.pop(dead, count=20, timeout=5)).ok()
    assert {json.loads(job["body"])["id"] for job in jobs} == {f"{topic}/{n}" for n in range(20)}
    for job in jobs:
        (await api.finish(job["id"], receipt=job["receipt"])).ok()
        assert (await api.get(job["id"])).ok() is None
    assert (await api.pop(dead, timeout=0)).ok() is None
    assert (await api.call("/limit", {"topic": topic, "buried_to": None})).ok() == NO_LIMITS


async def test_a_report_that_would_come_back_is_refused(api: Api, topic: str) -> None:
    (await api.call("/limit", {"topic": topic, "buried_to": f"{topic}-b"})).ok()
    for other, to in ((topic, topic), (f"{topic}-b", topic)):
        refused = await api.call(
            "/limit", {"topic": other, "buried_to": to}, {"Accept-Language": "en"}
        )
        assert refused.refused() == "buried_to: dead letters would come back to the topic"


@pytest.mark.parametrize("buckets", [1, 3])
async def test_a_config_file_says_where_dead_letters_are_reported(
    processes: Processes, redis_server: StoreServer, buckets: int
) -> None:
    server = processes.configured(
        "[limit a]\nburied_to = b\n[limit b]\nburied_to = c\n",
        redis_server,
        bucket_size=buckets,
    )
    server.start()
    with closing(server):
        async with open_api(server.url) as api:
            assert (await api.call("/limit", {"topic": "a"})).ok()["buried_to"] == "b"
            refused = await api.call("/limit", {"topic": "a", "buried_to": "c"})
            assert refused.refused(WRONG_STATE)
            (await api.push(topic="a", id="1", delay=0, retry={"delays": []}, ttr=1)).ok()
            (await api.pop("a")).ok()
            report = (await api.pop("b")).ok()
            assert json.loads(report["body"])["reason"] == "ttr expired"


def test_a_server_does_not_start_if_dead_letters_would_come_back(
    processes: Processes, redis_server: StoreServer
) -> None:
    text = "[limit a]\nburied_to = b\n[limit b]\nburied_to = a\n"
    with pytest.raises(ProcessError) as caught:
        processes.configured(text, redis_server).start()
    assert "[limit a]: buried_to: dead letters would come back" in str(caught.value)


async def test_a_token_reports_only_to_its_own_topics(
    processes: Processes, redis_server: StoreServer
) -> None:
    token = "admin-token-12345678"
    server = processes.server(redis_server, auth_tokens=f"admin:{token}:shop.*")
    with closing(server):
        async with open_api(server.url, token) as api:
            asked = {"topic": "shop.a", "buried_to": "other"}
            (await api.call("/limit", asked)).refused(FORBIDDEN, status=403)
            (await api.call("/limit", asked | {"buried_to": "shop.dead"})).ok()
