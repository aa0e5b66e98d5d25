"""Redis goes away and comes back: 503 in the meantime, and everything resumes by itself."""

from __future__ import annotations

import asyncio
import http.client
import time
from typing import TYPE_CHECKING, Final

import pytest

from tests.api_client import OK, UNAVAILABLE, Api, open_api
from tests.history import Load
from tests.waiting import until, until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.processes import Processes, QueueServer, StoreServer

SERVICE_UNAVAILABLE: Final = 503
ANSWER_S: Final = 6.0


@pytest.fixture(scope="module")
def mortal_store(processes: Processes) -> Iterator[StoreServer]:
    """A Redis that these tests may kill; it keeps its data."""
    # with everysec, Redis may answer before it has written, while a sync takes long
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    yield store
    store.close()


@pytest.fixture(scope="module")
def mortal_server(processes: Processes, mortal_store: StoreServer) -> Iterator[QueueServer]:
    server = processes.server(mortal_store)
    yield server
    server.close()


@pytest.fixture
async def mortal_api(mortal_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(mortal_server.url) as client:
        yield client


def kill(store: StoreServer) -> Callable[[], None]:
    store.kill()
    return store.start


def stop(store: StoreServer) -> Callable[[], None]:
    store.stop()
    return store.start


def freeze(store: StoreServer) -> Callable[[], None]:
    store.freeze()
    return store.thaw


OUTAGES: Final[list[Callable[[StoreServer], Callable[[], None]]]] = [kill, stop, freeze]
outages = pytest.mark.parametrize("begin", OUTAGES, ids=lambda outage: outage.__name__)


async def works_again(api: Api) -> bool:
    return (await api.get("any")).code == OK


@outages
async def test_while_redis_is_away_every_verb_is_503_and_then_works_again(
    mortal_api: Api,
    mortal_server: QueueServer,
    mortal_store: StoreServer,
    topic: str,
    begin: Callable[[StoreServer], Callable[[], None]],
) -> None:
    (await mortal_api.push(topic=topic, id=f"{topic}/before", body="kept")).ok()
    end = begin(mortal_store)
    try:
        started_s = time.monotonic()
        answers = await asyncio.gather(
            mortal_api.push(topic=topic, id=f"{topic}/during"),
            mortal_api.push_all([{"topic": topic, "id": f"{topic}/during"}]),
            mortal_api.get(topic),
            mortal_api.finish(topic),
            mortal_api.delete(topic),
        )
        for answer in answers:
            answer.refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
        assert time.monotonic() - started_s < ANSWER_S
        assert mortal_server.probe("/healthz") == http.client.OK
        await until(lambda: mortal_server.probe("/readyz") == SERVICE_UNAVAILABLE)
    finally:
        end()
    await until_async(lambda: works_again(mortal_api), within_s=5)
    await until(mortal_server.is_ready, within_s=5)
    assert (await mortal_api.pop(topic)).ok()["body"] == "kept"


@outages
async def test_a_waiting_poll_survives_an_outage(
    mortal_api: Api,
    mortal_server: QueueServer,
    mortal_store: StoreServer,
    topic: str,
    begin: Callable[[StoreServer], Callable[[], None]],
) -> None:
    polls = [asyncio.create_task(mortal_api.pop(topic, timeout=25)) for _ in range(3)]
    (await mortal_api.push(topic=topic, id=f"{topic}/0")).ok()
    await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
    end = begin(mortal_store)
    try:
        await until(lambda: mortal_server.probe("/readyz") == SERVICE_UNAVAILABLE)
        assert sum(poll.done() for poll in polls) == 1
    finally:
        end()
    await until_async(lambda: works_again(mortal_api), within_s=5)
    for number in (1, 2):
        (await mortal_api.push(topic=topic, id=f"{topic}/{number}")).ok()
    jobs = [(await poll).ok() for poll in polls]
    assert sorted(job["id"] for job in jobs) == [f"{topic}/{n}" for n in range(3)]


@outages
async def test_a_job_that_became_due_in_an_outage_comes_after_it(
    mortal_api: Api,
    mortal_store: StoreServer,
    topic: str,
    begin: Callable[[StoreServer], Callable[[], None]],
) -> None:
    due_s = time.time() + 0.3
    (await mortal_api.push(topic=topic, id=topic, due=due_s)).ok()
    poll = asyncio.create_task(mortal_api.pop(topic, timeout=20))
    end = begin(mortal_store)
    try:
        await until(lambda: time.time() > due_s)
        assert not poll.done()
    finally:
        end()
    assert (await poll).ok()["id"] == topic


async def test_redis_killed_under_load_loses_nothing(
    mortal_api: Api, mortal_store: StoreServer, topic: str
) -> None:
    load = Load(topic, mortal_api)
    for _ in range(4):
        await load.until_acknowledged(300)
        mortal_store.kill()
        mortal_store.start()
    history = await load.finish()
    history.check()
    assert len(history.acknowledged) >= 1200
