"""A bucket on each kind of store. After each test its contents are proved to be whole."""

from collections.abc import AsyncIterator, Generator
from types import SimpleNamespace
from typing import Any, Final

import fakeredis
import hiredis
import pytest
from _pytest.python import CallSpec
from fakeredis.aioredis import FakeAsyncRedisConnection
from fakeredis.commands_mixins import server_mixin
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from delayqueue.store import connect as connecting
from delayqueue.store import server
from delayqueue.store.connect import our_driver
from delayqueue.store.connection import Links, Sendable, Wait
from delayqueue.store.server import Pipeline
from delayqueue.tasks import Tasks
from tests.clusters import UNHURRIED, StoreCluster
from tests.processes import LOOPBACK, WITHOUT_FUNCTIONS, Processes, StoreServer
from tests.store.bucket import BUCKET, SCHEDULERS, STORES, USUAL, WHEEL_SLOTS, Bucket
from tests.store.clients import Client
from tests.store.turning import SLOTS, Clock

ANSWER_S: Final = 60.0  # a busy machine takes its time for 70 MiB


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need more than the second after which the next server of a Cluster is asked."""
    monkeypatch.setattr(connecting, "ASK_S", 5.0)


def connect(store: StoreServer, database: int | None = None) -> Redis:
    """A connection to a database, a new one if none is named; like the server's, it sends no command twice."""
    return Client(
        host=LOOPBACK,
        port=store.port,
        db=store.new_database() if database is None else database,
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=ANSWER_S,
        driver_info=our_driver(),
    )


# stores on which no server of another test works: tests look at all keys, and count commands


@pytest.fixture(scope="session")
def redis_server(lasting_processes: Processes) -> StoreServer:
    return lasting_processes.redis()


@pytest.fixture(scope="session")
def redis_without_functions_server(lasting_processes: Processes) -> StoreServer:
    return lasting_processes.redis(*WITHOUT_FUNCTIONS)


@pytest.fixture(scope="session")
def valkey_server(lasting_processes: Processes) -> StoreServer:
    return lasting_processes.valkey()


@pytest.fixture(scope="session")
def cluster(lasting_processes: Processes) -> StoreCluster:
    return StoreCluster(lasting_processes, *UNHURRIED)


async def emptied(cluster: StoreCluster) -> Redis:
    """The server of the Cluster that holds the bucket, without data: it belongs to this test run."""
    port = cluster.holder(BUCKET).port
    redis = Client(host=LOOPBACK, port=port, protocol=2, socket_timeout=ANSWER_S)
    await redis.flushdb()
    return redis


def fake() -> Redis:
    """A store whose clock a test can turn."""
    return fakeredis.FakeAsyncRedis(server=fakeredis.FakeServer())


class Unpiped:
    """Stands in for a Pipeline without a socket: calls to fakeredis go one by one."""

    current = None

    def __init__(self, pool: ConnectionPool) -> None:
        self._redis = fakeredis.FakeAsyncRedis(connection_pool=pool)
        self._calls = Tasks("call of a store in memory")

    def send(self, call: Sendable) -> None:
        self._calls.start(self._answer(call))

    async def _answer(self, call: Sendable) -> None:
        reader = hiredis.Reader()
        reader.feed(call.packed)
        try:
            answer: Any = await self._redis.execute_command(*reader.gets())  # type: ignore[no-untyped-call]
        except RedisError as error:
            call.failed(error)
        else:
            call.answered(answer)


def pipeline(links: Links, wait: Wait | None, answer_s: float) -> Pipeline | Unpiped:
    is_fake = issubclass(links.pool.connection_class, FakeAsyncRedisConnection)
    return Unpiped(links.pool) if is_fake else Pipeline(links, wait, answer_s)


@pytest.fixture(autouse=True)
def _pipelines_to_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "Pipeline", pipeline)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Without --every-store, a test that takes both schedulers runs with one of them on each store."""
    yield
    if not metafunc.config.getoption("every_store"):
        there = {call.id for call in metafunc._calls}
        metafunc._calls = [
            call for call in metafunc._calls if _usual(call) not in there - {call.id}
        ]


def _usual(call: CallSpec) -> str:
    """The parameters of this test with the usual scheduler of its store, as their id."""
    store, scheduler = str(call.params.get("redis")), str(call.params.get("scheduler"))
    return call.id.replace(scheduler, USUAL.get(store, scheduler), 1)


@pytest.fixture(params=STORES)
async def redis(request: pytest.FixtureRequest) -> AsyncIterator[Redis]:
    """An empty database of its own for each test."""
    if request.param == "cluster":
        opened = await emptied(request.getfixturevalue("cluster"))
    elif request.param == "own":  # functions and users are those of a server, not of a database
        opened = connect(request.getfixturevalue("processes").redis(), 0)
    else:
        opened = connect(request.getfixturevalue(f"{request.param}_server"))
    async with opened:
        yield opened


@pytest.fixture(params=SCHEDULERS)
def scheduler(request: pytest.FixtureRequest) -> str:
    """The structure that holds the delayed jobs. `@on_zset` leaves the wheel out."""
    return str(request.param)


@pytest.fixture
async def bucket(
    redis: Redis, scheduler: str, request: pytest.FixtureRequest
) -> AsyncIterator[Bucket]:
    """A bucket, in which every job must be in exactly one place when the test is over."""
    bucket = Bucket.over(redis, wheel_slots=WHEEL_SLOTS if scheduler == "wheel" else 0)
    yield bucket
    if "poison" not in request.fixturenames:
        assert await bucket.violations() == []


@pytest.fixture
def poison() -> None:
    """For tests that break the contents of the store on purpose: they are not proved to be whole."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(server_mixin, "time", SimpleNamespace(time=clock.time))
    return clock


@pytest.fixture(params=SLOTS)
async def wheel(clock: Clock, request: pytest.FixtureRequest) -> AsyncIterator[Bucket]:
    """A bucket whose clock the test turns."""
    async with fake() as redis:
        wheel = Bucket.over(redis, wheel_slots=request.param)
        yield wheel
        assert await wheel.violations() == []
