"""What a scenario works with: its own processes, a seed, a history, and the proof at the end."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
from redis.asyncio import Redis

from delayqueue.store.keys import BucketKeys
from faults import beanstalk
from faults.checker import Verdict
from faults.load import USUAL, Load, Shape, running
from tests.api_client import OK, Api, open_api
from tests.processes import (
    LOOPBACK,
    WITHOUT_FUNCTIONS,
    Process,
    Processes,
    QueueServer,
    StoreServer,
    environment,
    free_port,
)
from tests.store.invariants import violations
from tests.waiting import until_async

DATABASE: Final = 1
KEYS: Final = BucketKeys.of(1, "dq_bucket_%d", "dq_queue_%s")  # of the only bucket
MIB: Final = 1 << 20
START_S: Final = 180.0  # the machine may be busy
BACK_S: Final = 5.0  # after a fault has healed, everything must work again within this time
FSCK_S: Final = 300.0
FILE_SYNC: Final = ("--appendonly", "yes", "--appendfsync")


Figures = dict[str, Any]


class CannotRun(Exception):
    """This machine lacks something that a scenario needs; the message says what."""


class Bed:
    """Makes what a scenario needs; `close` ends all of it. `functions`: whether Redis servers have them."""

    def __init__(self, home: Path, seed: int, *, functions: bool = True) -> None:
        home.mkdir(parents=True)
        self.home = home
        self.seed = seed
        self.random = random.Random(seed)
        self.topic = f"faults-{seed}"
        self.processes = Processes(home, () if functions else WITHOUT_FUNCTIONS)
        self._loads = 0

    def close(self) -> None:
        self.processes.close()

    def logs(self) -> str:
        """The end of each process's log."""
        logs = self.processes.logs_since(0)
        return "\n".join(f"--- {name}\n{log}" for name, log in logs)

    def store(self, *options: str, fsync: str = "everysec") -> StoreServer:
        """A Redis with an append-only file."""
        return self.processes.redis(*FILE_SYNC, fsync, *options)

    def wrapped_store(self, wrapper: Sequence[str], binary: str) -> StoreServer:
        """A store started by another program, e.g. `env --ignore-signal=XFSZ`."""
        store = StoreServer("store", self.processes.home("store"), binary, *FILE_SYNC, "everysec")
        store.wrap(*wrapper)
        return self.processes.started(store)

    def new_server(self, store: StoreServer | None, **settings: object) -> QueueServer:
        """A server that is not started yet, on the scenario's database of that store, or on a store of its own.

        In the name of a setting, two underscores stand for a dot.
        """
        named = {name.replace("__", "."): value for name, value in settings.items()}
        if store:
            named = {"redis.host": store.address, "redis.db": DATABASE} | named
        return self.processes.adopt(QueueServer("server", self.processes.home("server"), named))

    async def server(self, store: StoreServer | None = None, **settings: object) -> QueueServer:
        """A running server."""
        server = self.new_server(store, **settings)
        await restart(server)
        return server

    async def pair(self, *, beanstalk: bool = False) -> tuple[StoreServer, QueueServer]:
        """A store, and a running server on it, which can speak beanstalkd's protocol, too."""
        store = self.store()
        more = {"beanstalk_address": f"{LOOPBACK}:{free_port()}"} if beanstalk else {}
        return store, await self.server(store, **more)

    @asynccontextmanager
    async def load(self, *servers: QueueServer, shape: Shape = USUAL) -> AsyncIterator[Load]:
        """A load on these servers, each client on one of them."""
        path, topic = self._place_of_load()
        async with AsyncExitStack() as stack:
            apis = [await stack.enter_async_context(open_api(server.url)) for server in servers]
            yield await stack.enter_async_context(
                running(path, topic, *apis, shape=shape, seed=self.seed)
            )

    def _place_of_load(self) -> tuple[Path, str]:
        """Where its history goes, and its topic."""
        self._loads += 1
        return self.home / f"history-{self._loads}.jsonl", f"{self.topic}-{self._loads}"

    @asynccontextmanager
    async def beanstalk_load(self, server: QueueServer, *, shape: Shape) -> AsyncIterator[Load]:
        """The same through beanstalkd's protocol: single jobs, whole seconds; each put is a job of its own."""
        shape = replace(shape, batch=1, whole_seconds=True, reuses=False)
        path, topic = self._place_of_load()
        async with beanstalk.running(
            path, topic, server.beanstalk_port, shape=shape, seed=self.seed
        ) as load:
            yield load

    @asynccontextmanager
    async def api(self, server: QueueServer) -> AsyncIterator[Api]:
        """A client of the server."""
        async with open_api(server.url) as client:
            yield client

    async def pause(self, least_s: float, most_s: float) -> None:
        """Wait for a random time."""
        await asyncio.sleep(self.random.uniform(least_s, most_s))


async def restart(process: Process) -> None:
    """Start a process while the load continues, and so does a proxy on the way to its store."""
    process.launch()
    with ThreadPoolExecutor(1) as new:  # older threads may be in another network
        look = partial(asyncio.get_running_loop().run_in_executor, new, process.is_ready)
        await until_async(look, within_s=START_S)


@asynccontextmanager
async def redis_of(store: StoreServer) -> AsyncIterator[Redis]:
    """A connection to the scenario's database."""
    async with Redis(host=LOOPBACK, port=store.port, db=DATABASE, protocol=2) as redis:
        yield redis


async def judged(load: Load, store: StoreServer, *, watch_s: float | None = None) -> Verdict:
    """Prove that a load was served as promised, and that the store is whole."""
    verdict = await load.finish(watch_s=watch_s)
    verdict.check()
    await assert_whole(store)
    return verdict


def labelled(parts: Mapping[str, Figures]) -> Figures:
    """The figures of several parts, each behind the name of its part."""
    return {
        f"{part}: {name}": value for part, found in parts.items() for name, value in found.items()
    }


async def assert_whole(store: StoreServer) -> None:
    """Prove that every job is in exactly one place and no index entry is without a record."""
    async with redis_of(store) as redis:
        found = await violations(redis, KEYS)
        assert not found, found[:5]


def assert_fsck_finds_nothing(settings: dict[str, object]) -> None:
    """Prove the same of all buckets, with the program that users have."""
    found = program(settings, "fsck").communicate(timeout=FSCK_S)[0]
    assert "all is whole" in found, found


def program(settings: dict[str, object], *arguments: str) -> subprocess.Popen[str]:
    """`delay-queue` with these settings, running. Its output can be read."""
    return subprocess.Popen(
        [sys.executable, "-m", "delayqueue", *arguments],
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


async def assert_back(api: Api) -> float:
    """Prove that the server works again in time. Returns how long that took, in seconds."""
    loop = asyncio.get_running_loop()
    since_s = loop.time()

    async def works() -> bool:
        try:
            return (await api.get("any")).code == OK
        except aiohttp.ClientError:
            return False

    await until_async(works, within_s=BACK_S)
    return round(loop.time() - since_s, 2)
