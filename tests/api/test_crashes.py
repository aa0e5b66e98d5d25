"""kill -9 under load: what was acknowledged is there afterwards, and is delivered and finished."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from faults.load import Load, running
from tests.api_client import Api, open_api
from tests.processes import Processes, QueueServer, StoreServer, redis_binary, valkey_binary
from tests.waiting import until

BINARIES: Final = [
    pytest.param(redis_binary, id="redis", marks=pytest.mark.seldom),
    pytest.param(valkey_binary, id="valkey"),
]
KILLS: Final = 2  # `make faults` kills 20 times
GOES_ON_S: Final = (
    20.0  # it takes a second on an idle machine, and without the others' work the TTR, a minute
)
JOBS_BETWEEN: Final = 150


@pytest.fixture(scope="module", params=BINARIES)
def embedded_server(request: pytest.FixtureRequest, processes: Processes) -> Iterator[QueueServer]:
    """A server that brings its own store, as `make serve` starts it."""
    server = processes.server(redis__binary=request.param())
    yield server
    server.close()


@pytest.fixture
async def embedded_api(embedded_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(embedded_server.url) as client:
        yield client


def store_pid(server: QueueServer) -> int:
    """The process id of the server's embedded store, or 0 if it has none at the moment."""
    for pid in server.children():
        if is_running(pid):
            return pid
    return 0


async def kill_store(server: QueueServer) -> None:
    """Kill the embedded store and wait for its successor."""
    killed = store_pid(server)
    os.kill(killed, signal.SIGKILL)
    await until(lambda: store_pid(server) not in {0, killed})


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def check(load: Load, *, kills: int) -> None:
    verdict = await load.finish()
    verdict.check()
    assert verdict.acknowledged >= kills * JOBS_BETWEEN
    assert load.failures > 0, "no request met the fault"


async def test_one_of_two_servers_killed_in_turn_loses_nothing(
    processes: Processes, redis_server: StoreServer, topic: str, tmp_path: Path
) -> None:
    database = redis_server.new_database()
    servers = [processes.server(redis_server, redis__db=database) for _ in range(2)]
    async with (
        open_api(servers[0].url) as one,
        open_api(servers[1].url) as other,
        running(tmp_path / "history", topic, one, other) as load,
    ):
        for number in range(KILLS):
            await load.until_acknowledged(JOBS_BETWEEN)
            servers[number % 2].kill()
            await load.until_acknowledged(JOBS_BETWEEN)
            servers[number % 2].start()
        await check(load, kills=KILLS)


async def test_a_server_and_its_embedded_store_killed_under_load_lose_nothing(
    embedded_server: QueueServer, embedded_api: Api, topic: str, tmp_path: Path
) -> None:
    async with running(tmp_path / "history", topic, embedded_api) as load:
        for _ in range(KILLS):
            await load.until_acknowledged(JOBS_BETWEEN)
            embedded_server.kill()
            embedded_server.start()
        await check(load, kills=KILLS)


async def test_an_embedded_store_killed_under_load_is_restarted_and_loses_nothing(
    embedded_server: QueueServer, embedded_api: Api, topic: str, tmp_path: Path
) -> None:
    async with running(tmp_path / "history", topic, embedded_api) as load:
        for _ in range(KILLS):
            await load.until_acknowledged(JOBS_BETWEEN)
            await kill_store(embedded_server)
        await check(load, kills=KILLS)


async def test_the_last_server_goes_on_at_once_with_the_work_of_all(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    """With what is ready, and with what falls due after the others were killed."""
    database = redis_server.new_database()
    address = redis_server.address
    last, *others = (
        processes.server(None, redis__host=address, redis__db=database) for _ in range(3)
    )
    async with open_api(last.url) as survivor, AsyncExitStack() as stack:
        doomed = [await stack.enter_async_context(open_api(server.url)) for server in others]
        polls = [asyncio.create_task(api.pop(topic, timeout=60)) for api in doomed for _ in "ab"]
        jobs = [{"topic": topic, "id": f"{topic}/{n}", "delay": n * 0.01} for n in range(200)]
        (await doomed[0].push_all(jobs)).ok()
        await asyncio.gather(*polls)
        for server in others:
            server.kill()
        killed_at = time.time()
        late_s: list[float] = []
        while len(late_s) < len(jobs) - len(polls):
            popped = (await survivor.pop(topic, count=100)).ok()
            late_s += [time.time() - max(killed_at, job["due"]) for job in popped]
        assert max(late_s) < GOES_ON_S
