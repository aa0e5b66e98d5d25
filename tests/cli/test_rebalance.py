"""`delay-queue rebalance` as a shell sees it, beside a running server."""

import asyncio
import itertools
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from redis import Redis

from delayqueue.cli.rebalance import rebalance
from delayqueue.config.config import Config
from delayqueue.config.failpoint import EXIT_STATUS
from delayqueue.config.values import Address
from delayqueue.errors import Unavailable
from delayqueue.store.change import LayoutChange
from delayqueue.store.entries import Entries
from tests.api_client import HTTP_OK, OK, UNAVAILABLE, Api, open_api
from tests.clusters import MASTER_NAME, WatchedStore
from tests.processes import Processes, QueueServer, StoreServer, free_port, run_program
from tests.waiting import until, until_async

JOBS: Final = 1000
DONE, USAGE, UNREACHABLE = 0, 2, 3
SERVICE_UNAVAILABLE: Final = 503

Settings = dict[str, object]


class Installation:
    """A server with sleeping jobs in one bucket, and the program."""

    def __init__(self, processes: Processes, store: StoreServer, **more: object) -> None:
        self._processes = processes
        self.settings: Settings = {
            "redis.host": store.address,
            "redis.db": store.new_database(),
        }
        self.server = self.start(**more)

    def start(self, **more: object) -> QueueServer:
        settings = self.settings | more
        named: dict[str, Any] = {key.replace(".", "__"): v for key, v in settings.items()}
        return self._processes.server(None, **named)

    def launch(self) -> QueueServer:
        """A server that need not be ready yet."""
        named: dict[str, Any] = {key.replace(".", "__"): v for key, v in self.settings.items()}
        server = self._processes.configured("", None, **named)
        server.launch()
        return server

    def rebalance(self, buckets: object, **settings: object) -> tuple[int, str]:
        """Exit status and what was printed."""
        return self.run("rebalance", "--buckets", str(buckets), **settings)

    def run(self, *arguments: str, **settings: object) -> tuple[int, str]:
        ended = run_program(
            *arguments, settings=self.settings | {"log_level": "warning"} | settings
        )
        return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture
async def ours(processes: Processes, redis_server: StoreServer) -> AsyncIterator[Installation]:
    """Its servers end with the test."""
    before = processes.count
    ours = Installation(processes, redis_server)
    async with open_api(ours.server.url) as api:
        jobs = [{"topic": "t", "id": f"job-{n}", "delay": 3600, "ttr": 60} for n in range(JOBS)]
        (await api.push_all(jobs)).ok()
    yield ours
    processes.close(before)


async def test_the_server_goes_on_with_another_number_of_buckets(ours: Installation) -> None:
    async with open_api(ours.server.url) as api:
        poll = asyncio.create_task(api.pop("t", timeout=60))
        status, printed = await asyncio.to_thread(ours.rebalance, 4)
        assert (status, printed.splitlines()[-1]) == (
            DONE,
            "set bucket_size = 4 in the servers' settings",
        )
        await until_async(lambda: answers(api))
        assert (await api.call("/kick", {"id": "job-7"})).code == OK
        assert (await poll).ok()["id"] == "job-7"
        [topic] = (await api.call("/topics", {})).ok()
        assert (topic["delayed"], topic["reserved"]) == (JOBS - 1, 1)


async def test_a_server_may_start_with_a_number_that_was(ours: Installation) -> None:
    for buckets in (4, 2):
        assert (await asyncio.to_thread(ours.rebalance, buckets))[0] == DONE
        await until(ours.server.is_ready)
    server = await asyncio.to_thread(ours.start)
    assert "bucket_size = 1, but there are 2 buckets now" in server.logged()
    status, printed = await asyncio.to_thread(ours.rebalance, 2, bucket_size=3)
    assert (status, "bucket_size = 3, but the data" in printed) == (USAGE, True)
    async with open_api(server.url) as api:
        found = (await api.call("/get", {"ids": [f"job-{n}" for n in range(JOBS)]})).ok()
        assert {job["state"] for job in found} == {"delayed"}


async def test_one_that_was_killed_is_resumed_and_meanwhile_nobody_is_served(
    ours: Installation,
) -> None:
    async with open_api(ours.server.url) as api:
        poll = asyncio.create_task(api.pop("t", timeout=60))
        status, _ = await asyncio.to_thread(ours.rebalance, 4, failpoint="import.after:2")
        assert status == EXIT_STATUS
        ids = {"ids": [f"job-{n}" for n in range(JOBS)]}
        asked = (await api.call("/get", ids), await api.push(topic="t", id="new"))
        for refused in asked:
            assert "桶数" in refused.refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
        await until_async(lambda: told(api, "正在改变桶数（"))
        status, printed = await asyncio.to_thread(ours.rebalance, 3)
        assert status == USAGE
        assert "run `delay-queue rebalance --buckets 4` to the end first" in printed
        late = ours.launch()
        await until(lambda: late.probe("/healthz") == HTTP_OK)
        assert late.probe("/readyz") == SERVICE_UNAVAILABLE
        assert not poll.done()

        status, printed = await asyncio.to_thread(ours.rebalance, 4)
        assert (status, "moved" in printed) == (DONE, True)
        await until_async(lambda: answers(api))
        assert {job["state"] for job in (await api.call("/get", ids)).ok()} == {"delayed"}
        assert (await api.call("/kick", {"id": "job-7"})).code == OK
        assert (await poll).ok()["id"] == "job-7"
        await until(late.is_ready)


async def told(api: Api, text: str) -> bool:
    """Whether /readyz says this."""
    return text in (await api.request("GET", "/readyz")).message


async def answers(api: Api) -> bool:
    return (await api.call("/get", {"id": "job-1"})).code == OK


def test_a_number_that_is_none_is_refused(ours: Installation) -> None:
    for buckets in ("0", "1025", "x", "-1", "1.5"):
        status, printed = ours.rebalance(buckets)
        assert (status, "--buckets" in printed) == (USAGE, True), buckets


def test_a_store_that_is_away_is_named(ours: Installation) -> None:
    address = f"127.0.0.1:{free_port()}"
    status, printed = ours.rebalance(2, **{"redis.host": address})
    assert (status, address in printed) == (USAGE, True)


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        ("is_under_way", "nothing was changed: run it again"),
        ("begin", "nothing was changed: run it again"),
        ("_change", "nothing is lost, but the servers wait: run it again to continue"),
        ("raise_fences", "nothing was changed: run it again"),
        ("end", "nothing is lost, but the servers wait: run it again to continue"),
    ],
)
def test_a_store_that_fails_is_told_with_what_has_become_of_it(
    ours: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fails: str,
    says: str,
) -> None:
    monkeypatch.setattr("delayqueue.engine.rebalance.PATIENCE_S", 0.2)
    monkeypatch.setattr("delayqueue.cli.rebalance.REPORT_S", 0.01)

    async def fail(*_: Any) -> None:
        raise Unavailable

    monkeypatch.setattr(LayoutChange, fails, fail)
    host, _, port = str(ours.settings["redis.host"]).partition(":")
    database = int(str(ours.settings["redis.db"]))
    config = Config(redis_host=Address(host, int(port)), redis_db=database)
    assert rebalance(config, Namespace(buckets=4)) == UNREACHABLE
    said = capsys.readouterr()
    assert said.err.endswith(f"{says}\n")
    if fails in {"is_under_way", "begin"}:
        assert said.out == "", "no server waits"


async def test_an_import_waits_for_its_end(ours: Installation) -> None:
    status, _ = await asyncio.to_thread(ours.rebalance, 4, failpoint="export.after")
    assert status == EXIT_STATUS
    source = f"redis://{ours.settings['redis.host']}/{ours.settings['redis.db']}"
    status, printed = await asyncio.to_thread(ours.run, "import", source)
    assert status == USAGE
    assert "run `delay-queue rebalance --buckets 4`" in printed


@pytest.mark.parametrize("ending", [StoreServer.kill, StoreServer.freeze])
async def test_it_goes_on_with_the_master_that_takes_over(
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
    ending: Callable[[StoreServer], None],
) -> None:
    watched = WatchedStore(processes)
    database = watched.new_database()
    server = processes.server(watched, redis__db=database)
    async with open_api(server.url) as api:
        jobs = [{"topic": "t", "id": f"job-{n}", "delay": 3600, "ttr": 60} for n in range(JOBS)]
        (await api.push_all(jobs)).ok()

        async def fail_over() -> None:
            """End the master, whose replica has all."""
            with Redis(watched.master.host, watched.master.port) as redis, redis.client() as one:
                one.set("the last", "")
                assert one.wait(1, 60_000) == 1
            ending(watched.master)

        keys, pages = Entries.keys, itertools.count()

        async def late(entries: Entries, *place: Any) -> Any:
            if next(pages) == 0:
                await fail_over()
            return await keys(entries, *place)

        monkeypatch.setattr(Entries, "keys", late)
        sentinels = tuple(Address(each.host, each.port) for each in watched.sentinels)
        config = Config(
            redis_sentinel=sentinels,
            redis_master_name=MASTER_NAME,
            redis_db=database,
        )
        assert await asyncio.to_thread(rebalance, config, Namespace(buckets=4)) == DONE
        await until_async(lambda: answers(api))
        found = (await api.call("/get", {"ids": [f"job-{n}" for n in range(JOBS)]})).ok()
        assert [job["state"] for job in found] == ["delayed"] * JOBS
