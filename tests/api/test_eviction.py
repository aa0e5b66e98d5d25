"""A store that drops jobs when its memory is full: the server says so, and counts what is lost."""

from typing import Any, Final

from redis.asyncio import Redis

from tests.api_client import UNAVAILABLE, Api, open_api
from tests.figures import scrape
from tests.processes import LOOPBACK, Processes
from tests.waiting import until, until_async

SERVICE_UNAVAILABLE: Final = 503
DROPS: Final = "the store drops jobs when its memory is full, as maxmemory-policy is allkeys-lru"
LOST: Final = "delayqueue_job_events_total"


async def alarms(api: Api) -> list[str]:
    stats: Any = (await api.call("/stats", {})).ok()
    return list(stats["store"]["alarms"])


async def test_a_policy_that_evicts_is_said_whenever_it_changes(processes: Processes) -> None:
    store = processes.redis("--appendonly", "yes")
    server = processes.server(store, language="en")
    async with open_api(server.url) as api, Redis(host=LOOPBACK, port=store.port) as redis:
        (await api.push(topic="t", id="a", delay=60)).ok()
        assert (await scrape(api)).sum("delayqueue_store_durable") == 1
        assert await alarms(api) == []
        for _ in range(2):
            await redis.config_set("maxmemory", "1gb")
            await redis.config_set("maxmemory-policy", "volatile-lru")
            assert (await scrape(api)).sum("delayqueue_store_durable") == 1
            await redis.config_set("maxmemory-policy", "allkeys-lru")
            await until_async(lambda: is_said(api))
            assert (await scrape(api)).sum("delayqueue_store_durable") == 0
            ready: Any = (await api.request("GET", "/readyz")).ok()
            assert [each.partition(":")[0] for each in ready["alarms"]] == [DROPS]
            (await api.push(topic="t", id="a", delay=60)).ok()
            await redis.config_set("maxmemory-policy", "noeviction")
            await until_async(lambda: is_well(api))
    await until(lambda: server.logged().count(f"no longer: {DROPS}") >= 2)
    assert server.logged().count(f"no longer: {DROPS}") == 2
    assert server.logged().count(f"ERROR delayqueue.store.watch: {DROPS}") == 2


async def is_said(api: Api) -> bool:
    return [each.partition(":")[0] for each in await alarms(api)] == [DROPS]


async def is_well(api: Api) -> bool:
    return await alarms(api) == []


async def test_pushes_are_refused_while_the_store_evicts_if_that_is_required(
    processes: Processes,
) -> None:
    store = processes.redis("--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru")
    server = processes.server(store, language="en", require_noeviction="yes")
    async with open_api(server.url) as api, Redis(host=LOOPBACK, port=store.port) as redis:
        said = (await api.push(topic="t", id="a")).refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
        assert said.startswith(
            "the store is unavailable: it drops jobs when its memory is full (require_noeviction)"
        )
        await until(server.is_ready)
        await until_async(lambda: is_writable(api, 0))
        await redis.config_set("maxmemory-policy", "noeviction")
        (await api.push(topic="t", id="a")).ok()
        await until_async(lambda: is_writable(api, 1))


async def is_writable(api: Api, expected: int) -> bool:
    return (await scrape(api)).sum("delayqueue_store_writable") == expected


async def is_told(api: Api, lost: dict[str, int]) -> bool:
    """Whether operators are told of lost jobs for an hour, as the page is calm once the policy is another one."""
    stats: Any = (await api.call("/stats", {})).ok()
    troubles = [one for one in stats["troubles"] if one["kind"] == "lost"]
    return {one["topic"]: one["count"] for one in troubles} == lost


async def test_jobs_that_the_store_dropped_are_counted_as_lost_and_no_longer_as_there(
    processes: Processes,
) -> None:
    """One eviction takes the hash with the records of all jobs; here it is deleted instead, as an eviction would."""
    store = processes.redis()
    server = processes.server(store, language="en", redis__db=0)
    delayed, ready, few = 1500, 1200, 40
    async with open_api(server.url) as api, Redis(host=LOOPBACK, port=store.port) as redis:
        for first in range(0, delayed, 500):
            jobs = [
                {"topic": "delayed", "id": f"d{n}", "delay": 3600}
                for n in range(first, first + 500)
            ]
            (await api.push_all(jobs)).ok()
        for first in range(0, ready, 400):
            jobs = [
                {"topic": "ready", "id": f"r{n}", "delay": 0} for n in range(first, first + 400)
            ]
            (await api.push_all(jobs)).ok()
        jobs = [{"topic": "few", "id": f"f{n}", "delay": 0} for n in range(few)]
        jobs += [{"topic": "urgent", "id": f"u{n}", "delay": 0, "priority": 1} for n in range(few)]
        (await api.push_all(jobs)).ok()
        for n in range(5):  # what a client deletes is not lost
            (await api.delete(f"r{n}")).ok()
        assert await redis.delete("{dq_bucket_1}:job") == 1
        expected = {"delayed": delayed, "ready": ready - 5, "few": few, "urgent": few}

        async def is_counted() -> bool:
            stats: Any = (await api.call("/stats", {})).ok()
            figures = await scrape(api)
            lost = {topic: figures.sum(LOST, event="lost", topic=topic) for topic in expected}
            return not stats["delayed"] and not stats["ready"] and lost == expected

        await until_async(is_counted)
        await until_async(lambda: is_told(api, expected))
        (await api.push(topic="ready", id="new", delay=0)).ok()
        assert (await api.pop("ready")).ok()["id"] == "new"
        assert (await scrape(api)).sum(LOST, event="lost") == sum(expected.values())
    said = f"lost {few} jobs of topic 'few': the store has dropped their records"
    await until(lambda: said in server.logged())
    assert "of kind entry" not in server.logged()
    await until(lambda: server.stop() == 0)
