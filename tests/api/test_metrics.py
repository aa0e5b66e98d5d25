"""/metrics count exactly what was done."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from delayqueue.metrics import EVENTS
from tests.api.jobs import until_ready
from tests.api_client import FORBIDDEN, UNAUTHORIZED, Api, open_api
from tests.figures import grown, scrape
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until_async

ADMIN = "admin-0123456789abc"
OURS = "ours-0123456789abcd"


@pytest.fixture(scope="module")
def quiet(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server for the tests of this file, which use it one after the other."""
    return processes.server(redis_server)


@pytest.fixture
async def fresh(quiet: QueueServer) -> AsyncIterator[Api]:
    async with open_api(quiet.url) as api:
        yield api


async def test_the_figures_of_a_scripted_run_are_what_the_script_did(fresh: Api) -> None:
    """Those of several workers and servers: tests/unit/test_metrics.py, test_stats.py."""
    before = await scrape(fresh)
    for number in range(12):
        (await fresh.push(topic="script", id=f"{number}")).ok()
    (await fresh.push(topic="later", id="later", delay=3600)).ok()
    (await fresh.push(topic="script")).refused()
    ids = [(await fresh.pop("script")).ok()["id"] for _ in range(10)]
    for job_id in (*ids[:6], "unknown"):
        (await fresh.finish(job_id)).ok()
    (await fresh.delete(ids[6])).ok()
    (await fresh.call("/release", {"id": ids[7], "delay": 3600})).ok()
    (await fresh.call("/bury", {"id": ids[8]})).ok()
    (await fresh.call("/get", {"ids": []})).refused()
    after = await scrape(fresh)
    requests = {
        ("/push", "0"): 13,
        ("/push", "1"): 1,
        ("/pop", "0"): 10,
        ("/finish", "0"): 7,
        ("/get", "1"): 1,
    }
    for (path, code), times in requests.items():
        name = "delayqueue_requests_total"
        assert grown(before, after, name, path=path, code=code) == times, path
    assert grown(before, after, "delayqueue_delivery_lateness_seconds_count") == 10
    assert grown(before, after, "delayqueue_handling_seconds_count") == 7
    jobs = {place: count for place, count in after.rows("delayqueue_topic_jobs").items() if count}
    assert jobs == {
        ("delayed", "later"): 1,
        ("delayed", "script"): 1,
        ("ready", "script"): 2,
        ("reserved", "script"): 1,
        ("buried", "script"): 1,
    }
    assert after.one("delayqueue_store_up") == 1
    for topic in ("script", "later"):
        (await fresh.call("/purge", {"topic": topic})).ok()


async def test_what_becomes_due_soon_is_shown(fresh: Api) -> None:
    for number, delay in enumerate((30, 200, 2000, 20_000)):
        (await fresh.push(topic="soon", id=f"soon/{number}", delay=delay)).ok()
    scraped = await scrape(fresh)
    for within, count in (("60", 1), ("300", 2), ("3600", 3)):
        assert scraped.sum("delayqueue_due_soon", topic="soon", within=within) == count
    (await fresh.call("/purge", {"topic": "soon"})).ok()


async def shows(api: Api, name: str, value: float, **labels: str) -> bool:
    return (await scrape(api)).sum(name, **labels) == value


async def test_lateness_is_from_due_to_ready_and_to_delivered(fresh: Api) -> None:
    before = await scrape(fresh)
    (await fresh.push(topic="t", id="a", delay=0.2)).ok()
    await until_ready(fresh, "a")
    await asyncio.sleep(0.3)
    (await fresh.pop("t")).ok()
    (await fresh.finish("a")).ok()
    after = await scrape(fresh)
    assert grown(before, after, "delayqueue_ready_lateness_seconds_count") == 1
    ready_s, delivered_s = (
        grown(before, after, f"delayqueue_{event}_lateness_seconds_sum")
        for event in ("ready", "delivery")
    )
    assert 0 <= ready_s < ready_s + 0.29 < delivered_s < 30  # a busy machine takes its time
    assert grown(before, after, "delayqueue_script_seconds_count", script="pop") >= 1


async def test_only_first_deliveries_count_for_lateness(fresh: Api) -> None:
    before = await scrape(fresh)
    (await fresh.push(topic="t", id="a", ttr=1)).ok()
    for attempt in (1, 2):
        assert (await fresh.pop("t")).ok()["attempt"] == attempt
    (await fresh.finish("a")).ok()
    after = await scrape(fresh)
    assert grown(before, after, "delayqueue_delivery_lateness_seconds_count") == 1
    assert grown(before, after, "delayqueue_job_events_total", event="timed_out") >= 1


Calls = list[tuple[str, dict[str, object]]]

# what is done with the job `a`, pushed as ready or delayed, and what is counted
LIVES: Final[list[tuple[Calls, dict[str, int]]]] = [
    ([("/bury", {"id": "a"})], {"buried": 1}),
    ([("/bury", {"id": "a"}), ("/kick", {"id": "a"})], {"buried": 1, "kicked": 1}),
    (
        [("/bury", {"id": "a"}), ("/kick", {"topic": "lives", "count": 9})],
        {"buried": 1, "kicked": 1},
    ),
    ([("/cancel", {"tag": "x"})], {"cancelled": 1}),
    ([("/purge", {"topic": "lives"})], {"purged": 1}),
    ([("/take", {"topic": "lives", "start": 0})], {"taken": 1}),
    ([("/delete", {"ids": ["a", "unknown"]})], {"deleted": 1}),
    ([("/finish", {"id": "a", "receipt": ""}), ("/finish", {"id": "a"})], {"finished": 1}),
    (
        [("/pop", {"topic": "lives"}), ("/release", {"id": "a"})],
        {"delivered": 1, "released": 1, "failed": 1},
    ),
    (
        [("/pop", {"topic": "lives"}), ("/release", {"id": "a"})] * 2,
        {"delivered": 2, "released": 2, "failed": 2, "buried": 1},
    ),
    (
        [("/pop", {"topic": "lives"}), ("/bury", {"id": "a"})],
        {"delivered": 1, "failed": 1, "buried": 1},
    ),
    ([("/reschedule", {"id": "a", "delay": 60}), ("/touch", {"id": "a"})], {}),
]


@pytest.mark.parametrize(("calls", "counted"), LIVES)
async def test_each_step_of_a_job_is_counted_once(
    fresh: Api, calls: Calls, counted: dict[str, int]
) -> None:
    # a topic of its own: a push queues behind what is due there, and would count as due
    job = {"topic": "lives", "id": "a", "tags": ["x"], "retry": {"delays": [0]}}
    before = await scrape(fresh)
    (await fresh.push(**job)).ok()
    for path, payload in calls:
        await fresh.call(path, payload)
    after = await scrape(fresh)
    name = "delayqueue_job_events_total"
    changes = {event: grown(before, after, name, event=event, topic="lives") for event in EVENTS}
    assert {event: count for event, count in changes.items() if count} == counted | {"pushed": 1}
    (await fresh.call("/purge", {"topic": "lives"})).ok()


async def test_a_job_that_nobody_needs_any_more_is_counted(fresh: Api) -> None:
    (await fresh.push(topic="expiring", id="e", expire=0.05)).ok()
    await until_async(lambda: shows(fresh, "delayqueue_job_events_total", 1, event="expired"))


async def test_paths_that_do_not_exist_have_one_name(fresh: Api) -> None:
    for path in ("/nope", "/push/../x", '/"\n'):
        await fresh.request("POST", path)
    await fresh.request("GET", "/push")
    assert await shows(fresh, "delayqueue_requests_total", 4, path="other", code="1")


async def test_the_figures_are_for_the_admin(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, auth_tokens=f"admin:{ADMIN},admin:{OURS}:ours*")
    async with open_api(server.url, ADMIN) as admin:
        await scrape(admin)
    async with open_api(server.url, OURS) as ours, open_api(server.url) as nobody:
        (await ours.request("GET", "/metrics")).refused(FORBIDDEN, status=403)
        (await nobody.request("GET", "/metrics")).refused(UNAUTHORIZED, status=401)
