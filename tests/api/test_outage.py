"""Redis fails and comes back: 503 in the meantime, then everything resumes by itself."""

import asyncio
import http.client
import resource
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from faults.load import running
from tests.api.jobs import waiting_poll
from tests.api_client import OK, UNAVAILABLE, Api, open_api, push_due_in
from tests.processes import Processes, QueueServer, StoreServer, redis_binary
from tests.waiting import until, until_async

SERVICE_UNAVAILABLE: Final = 503
ANSWER_S: Final = 20.0  # it takes 5 s; while a store hangs, there would be no answer


@pytest.fixture(scope="module")
def mortal_store(processes: Processes) -> StoreServer:
    """A Redis that these tests may kill; it keeps its data."""
    # with everysec, Redis may answer before it has written, while a sync takes long
    return processes.redis("--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture(scope="module")
def mortal_server(processes: Processes, mortal_store: StoreServer) -> QueueServer:
    return processes.server(mortal_store)


@pytest.fixture
async def mortal_api(mortal_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(mortal_server.url) as client:
        yield client


def kill(store: StoreServer) -> Callable[[], None]:
    store.kill()
    return store.start


def freeze(store: StoreServer) -> Callable[[], None]:
    store.freeze()
    return store.thaw


OUTAGES: Final[list[Callable[[StoreServer], Callable[[], None]]]] = [kill, freeze]
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
    logged_before = mortal_server.log.stat().st_size
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
    await until_async(lambda: works_again(mortal_api))
    await until(mortal_server.is_ready)
    assert (await mortal_api.pop(topic)).ok()["body"] == "kept"

    def said() -> list[str]:
        with mortal_server.log.open(encoding="utf-8") as log:
            log.seek(logged_before)
            return [line for line in log if "the store of bucket 1" in line]

    await until(lambda: len(said()) > 1)
    # once, although calls that began before it was back fail later
    [away, back] = said()
    assert "does not answer" in away
    assert "answers again, after" in back


async def test_a_store_with_a_full_disk_is_not_ready(
    processes: Processes, tmp_path: Path, topic: str
) -> None:
    """An embedded store exits at each failed write and starts again; in between it answers calls that only read."""
    disk = Disk(tmp_path)
    server = processes.server(redis__binary=disk.program)
    async with open_api(server.url) as api:
        (await api.push(topic=topic, id="before")).ok()
        disk.fill(server.children())
        await until_async(lambda: is_refused(api, topic))
        await until(lambda: server.probe("/readyz") == SERVICE_UNAVAILABLE)
        assert await is_refused(api, topic)
        assert server.probe("/healthz") == http.client.OK
        disk.clear(server.children())
        await until_async(lambda: works_again(api))
        await until(server.is_ready)
        (await api.push(topic=topic, id="after")).ok()


class Disk:
    """A disk that can be full, for a store that is restarted again and again: its files cannot grow beyond a limit."""

    def __init__(self, folder: Path) -> None:
        self._limit = folder / "limit"
        self._limit.write_text("unlimited", encoding="ascii")
        self.program = folder / "store"
        script = f'#!/bin/sh\nulimit -S -f "$(cat {self._limit})"\nexec {redis_binary()} "$@"\n'
        self.program.write_text(script, encoding="ascii")
        self.program.chmod(0o700)

    def fill(self, running: list[int]) -> None:
        """Leave no room, for the running store and for those that start later."""
        self._change("1", 512, running)

    def clear(self, running: list[int]) -> None:
        self._change("unlimited", resource.RLIM_INFINITY, running)

    def _change(self, blocks: str, limit_bytes: int, running: list[int]) -> None:
        self._limit.write_text(blocks, encoding="ascii")
        for pid in running:
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))


async def is_refused(api: Api, topic: str) -> bool:
    return (await api.push(topic=topic, id="during", delay=3600)).code == UNAVAILABLE


@outages
async def test_waiting_polls_survive_an_outage(
    mortal_api: Api,
    mortal_server: QueueServer,
    mortal_store: StoreServer,
    topic: str,
    begin: Callable[[StoreServer], Callable[[], None]],
) -> None:
    """One poll gets the job that became due meanwhile, the other one a job that is pushed afterwards."""
    polls = [await waiting_poll(mortal_api, topic, timeout=90) for _ in range(2)]
    during = await push_due_in(mortal_api, 5, topic=topic, id=f"{topic}/during")
    end = begin(mortal_store)
    try:
        await until(lambda: time.time() > during.due_s)
        assert (await mortal_api.get("any")).code == UNAVAILABLE
        assert not any(poll.done() for poll in polls)
    finally:
        end()
    await until_async(lambda: works_again(mortal_api))
    (await mortal_api.push(topic=topic, id=f"{topic}/after")).ok()
    delivered = [(await poll).ok()["id"] for poll in polls]
    assert sorted(delivered) == [f"{topic}/after", during.id]


async def test_redis_killed_under_load_loses_nothing(
    mortal_api: Api, mortal_store: StoreServer, topic: str, tmp_path: Path
) -> None:
    async with running(tmp_path / "history", topic, mortal_api) as load:
        for _ in range(4):
            await load.until_acknowledged(300)
            mortal_store.kill()
            mortal_store.start()
        verdict = await load.finish()
    verdict.check()
    assert verdict.acknowledged >= 1200
