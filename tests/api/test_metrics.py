"""/metrics count exactly what was done, whichever server or worker did it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from delayqueue.metrics import EVENTS
from tests.api.jobs import until_ready
from tests.api_client import FORBIDDEN, UNAUTHORIZED, Api, open_api
from tests.figures import Samples, grown, scrape
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until_async

from .conftest import ONE_BUCKET, SETUPS, Setup

ADMIN = "admin-0123456789abc"
OURS = "ours-0123456789abcd"
SERVERS = 2
WORKERS = 2


# with four buckets they count the same, and more besides
IN_ONE_BUCKET: Final = pytest.param(ONE_BUCKET, id="redis", marks=pytest.mark.seldom)


@pytest.fixture(params=[IN_ONE_BUCKET, *SETUPS[1:]])
def servers(request: pytest.FixtureRequest, processes: Processes) -> Iterator[list[QueueServer]]:
    """Two servers of two workers each, on a fresh database."""
    setup: Setup = request.param
    store: StoreServer = request.getfixturevalue(setup.store)
    database = store.new_database()
    made = [
        processes.server(store, redis__db=database, bucket_size=setup.bucket_size, workers=WORKERS)
        for _ in range(SERVERS)
    ]
    yield made
    for server in made:
        server.close()


class Shop:
    """Calls to all servers, each over its own connection, so that every worker gets some."""

    def __init__(self, servers: list[QueueServer]) -> None:
        self._urls = [server.url for server in servers]
        self._turn = 0

    async def __call__(self, path: str, **payload: object) -> object:
        self._turn += 1
        async with open_api(self._urls[self._turn % len(self._urls)]) as api:
            answer = await api.call(path, payload)
        return answer.data

    async def scrapes(self) -> list[Samples]:
        found = []
        for url in self._urls:
            async with open_api(url) as api:
                found.append(await scrape(api))
        return found

    async def all_tick(self) -> bool:
        """Whether all workers tell; on a busy machine one's figures may come too late for those of its server."""
        ages = [samples.rows("delayqueue_tick_age_seconds") for samples in await self.scrapes()]
        return all(each.keys() == {("1",), ("2",)} for each in ages)

    async def total(self, name: str, **labels: str) -> float:
        """The sum of a counter over all servers and workers."""
        return sum(samples.sum(name, **labels) for samples in await self.scrapes())


async def test_the_figures_of_a_scripted_run_are_what_the_script_did(
    servers: list[QueueServer],
) -> None:
    shop = Shop(servers)
    for number in range(12):
        await shop("/push", topic="t", id=f"{number}", ttr=60)
    await shop("/push", topic="later", id="later", ttr=60, delay=3600)
    await shop("/push", topic="t", ttr=60)  # refused: no id
    popped = [await shop("/pop", topic="t", timeout=5) for _ in range(10)]
    ids = [job["id"] for job in popped if isinstance(job, dict)]
    assert len(set(ids)) == 10
    for job_id in ids[:6]:
        await shop("/finish", id=job_id)
    await shop("/delete", id=ids[6])
    await shop("/release", id=ids[7], delay=3600)
    await shop("/bury", id=ids[8])
    await shop("/finish", id="unknown")
    await shop("/get", ids=[])  # refused

    async def count(event: str) -> float:
        return await shop.total("delayqueue_job_events_total", event=event)

    async def is_settled() -> bool:
        return await count("delivered") - await count("returned") == 10

    # a poll asked two buckets, as the first was slow, and one job too many came: it goes back, soon but not at once
    await until_async(is_settled)
    returned = await count("returned")
    events = {
        "pushed": 13,
        "delivered": 10 + returned,
        "finished": 6,
        "deleted": 1,
        "released": 1,
        "buried": 1,
    }
    for event, times in events.items():
        assert await count(event) == times, event
    requests = {
        ("/push", "0"): 13,
        ("/push", "1"): 1,
        ("/pop", "0"): 10,
        ("/finish", "0"): 7,
        ("/get", "1"): 1,
    }
    for (path, code), times in requests.items():
        assert await shop.total("delayqueue_requests_total", path=path, code=code) == times, path
    assert await shop.total("delayqueue_delivery_lateness_seconds_count") == 10 + returned
    assert await shop.total("delayqueue_handling_seconds_count") == 7

    await until_async(shop.all_tick)
    for samples in await shop.scrapes():  # figures of the store are the same at each of them
        assert nonzero(samples, "delayqueue_topic_jobs") == {
            ("delayed", "later"): 1,
            ("delayed", "t"): 1,
            ("ready", "t"): 2,
            ("reserved", "t"): 1,
            ("buried", "t"): 1,
        }
        assert samples.one("delayqueue_store_up") == 1


def nonzero(samples: Samples, name: str) -> dict[tuple[str, ...], float]:
    return {labels: value for labels, value in samples.rows(name).items() if value}


@pytest.fixture(scope="module")
def quiet(processes: Processes, redis_server: StoreServer) -> Iterator[QueueServer]:
    """A server for the tests of this file, which use it one after the other."""
    server = processes.server(redis_server)
    yield server
    server.close()


@pytest.fixture
async def fresh(quiet: QueueServer) -> AsyncIterator[Api]:
    async with open_api(quiet.url) as api:
        yield api


async def test_waiting_polls_are_shown_while_they_wait(fresh: Api) -> None:
    poll = asyncio.create_task(fresh.pop("t", timeout=20))
    await until_async(lambda: shows(fresh, "delayqueue_waiting_polls", 1))
    (await fresh.push(topic="t", id="a")).ok()
    (await poll).ok()
    (await fresh.finish("a")).ok()
    assert await shows(fresh, "delayqueue_waiting_polls", 0)


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
    assert grown(before, after, "delayqueue_job_events_total", event="timed_out") == 1


Calls = list[tuple[str, dict[str, object]]]

# what is done with the job `a`, pushed as ready or delayed, and what is counted
LIVES: Final[list[tuple[Calls, dict[str, int]]]] = [
    ([("/bury", {"id": "a"})], {"buried": 1}),
    ([("/bury", {"id": "a"}), ("/kick", {"id": "a"})], {"buried": 1, "kicked": 1}),
    ([("/bury", {"id": "a"}), ("/kick", {"topic": "t", "count": 9})], {"buried": 1, "kicked": 1}),
    ([("/cancel", {"tag": "x"})], {"cancelled": 1}),
    ([("/purge", {"topic": "t"})], {"purged": 1}),
    ([("/take", {"topic": "t", "start": 0})], {"taken": 1}),
    ([("/delete", {"ids": ["a", "unknown"]})], {"deleted": 1}),
    ([("/finish", {"id": "a", "receipt": ""}), ("/finish", {"id": "a"})], {"finished": 1}),
    (
        [("/pop", {"topic": "t"}), ("/release", {"id": "a"})],
        {"delivered": 1, "released": 1, "failed": 1},
    ),
    (
        [("/pop", {"topic": "t"}), ("/release", {"id": "a"})] * 2,
        {"delivered": 2, "released": 2, "failed": 2, "buried": 1},
    ),
    (
        [("/pop", {"topic": "t"}), ("/bury", {"id": "a"})],
        {"delivered": 1, "failed": 1, "buried": 1},
    ),
    ([("/reschedule", {"id": "a", "delay": 60}), ("/touch", {"id": "a"})], {}),
]


@pytest.mark.parametrize(("calls", "counted"), LIVES)
async def test_each_step_of_a_job_is_counted_once(
    fresh: Api, calls: Calls, counted: dict[str, int]
) -> None:
    job = {"topic": "t", "id": "a", "tags": ["x"], "retry": {"delays": [0]}}
    before = await scrape(fresh)
    (await fresh.push(**job)).ok()
    for path, payload in calls:
        await fresh.call(path, payload)
    after = await scrape(fresh)
    name = "delayqueue_job_events_total"
    changes = {event: grown(before, after, name, event=event, topic="t") for event in EVENTS}
    assert {event: count for event, count in changes.items() if count} == counted | {"pushed": 1}
    (await fresh.call("/purge", {"topic": "t"})).ok()


async def test_a_job_that_nobody_needs_any_more_is_counted(fresh: Api) -> None:
    (await fresh.push(topic="expiring", id="e", expire=0.05)).ok()
    await until_async(lambda: shows(fresh, "delayqueue_job_events_total", 1, event="expired"))


async def test_paths_that_do_not_exist_have_one_name(fresh: Api) -> None:
    for path in ("/nope", "/push/../x", '/"\n'):
        await fresh.request("POST", path)
    await fresh.request("GET", "/push")
    assert await shows(fresh, "delayqueue_requests_total", 4, path="other", code="1")


async def test_a_frozen_store_is_shown_as_down(processes: Processes) -> None:
    store = processes.redis()
    server = processes.server(store)
    async with open_api(server.url) as api:
        store.freeze()
        samples = await scrape(api)
        store.thaw()
        assert samples.one("delayqueue_store_up") == 0
        assert samples.sum("delayqueue_script_errors_total") >= 1
        assert samples.one("delayqueue_tick_age_seconds") > 1
    server.close()
    store.close()


async def test_the_figures_are_for_the_admin(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, auth_tokens=f"admin:{ADMIN},admin:{OURS}:ours*")
    async with open_api(server.url, ADMIN) as admin:
        await scrape(admin)
    async with open_api(server.url, OURS) as ours, open_api(server.url) as nobody:
        (await ours.request("GET", "/metrics")).refused(FORBIDDEN, status=403)
        (await nobody.request("GET", "/metrics")).refused(UNAUTHORIZED, status=401)
    server.close()
