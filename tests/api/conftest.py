"""The server under test, on both stores, and a client of it."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pytest

from tests.api_client import Api, open_api
from tests.processes import Processes, QueueServer, StoreServer

Pair = tuple[Api, Api]


EXPRESS: Final[Mapping[str, str]] = {}  # nothing keeps requests from the express lane
AIOHTTP: Final = {"TE": "trailers"}  # more than the express lane answers: aiohttp answers


class Setup(NamedTuple):
    """A way to run the server."""

    store: str  # the fixture that gives the store
    bucket_size: int
    scheduler: str = "zset"
    headers: Mapping[str, str] = EXPRESS  # of the client's requests

    def settings(self) -> dict[str, Any]:
        """The server's settings."""
        return {"bucket_size": self.bucket_size, "scheduler": self.scheduler}


# over Sentinel and Cluster by default; --every-store runs all
ESSENTIAL: Final = pytest.mark.seldom("test_two_servers.py")
ONE_BUCKET: Final = Setup("redis_server", bucket_size=1)
SETUPS: Final = [
    pytest.param(ONE_BUCKET, id="redis"),
    pytest.param(
        Setup("valkey_server", bucket_size=4, scheduler="wheel", headers=AIOHTTP),
        id="valkey-4-buckets-wheel",
        marks=pytest.mark.slow,
    ),
    pytest.param(Setup("watched_store", bucket_size=1), id="sentinel", marks=ESSENTIAL),
    pytest.param(Setup("cluster", bucket_size=8), id="cluster-8-buckets", marks=ESSENTIAL),
]


@pytest.fixture(autouse=True)
def end_with_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """End what the test has started; what the fixtures of its module have started goes on."""
    if "processes" not in request.fixturenames:
        yield
        return
    processes: Processes = request.getfixturevalue("processes")
    before = processes.count
    yield
    processes.close(before)


def one_setup_of(fixture: str) -> pytest.MarkDecorator:
    """For what is decided before a store is asked, and what tests/store tries on each; --every-store runs all."""
    usual = pytest.param(ONE_BUCKET, id="redis")
    others = (
        pytest.param(*each.values, id=each.id, marks=pytest.mark.seldom) for each in SETUPS[1:]
    )
    return pytest.mark.parametrize(fixture, [usual, *others], indirect=True)


in_one_setup: Final = one_setup_of("server")


def started(request: pytest.FixtureRequest, processes: Processes, setup: Setup) -> QueueServer:
    store = request.getfixturevalue(setup.store)
    return processes.server(store, **setup.settings())


@pytest.fixture(scope="session")
def serve(
    request: pytest.FixtureRequest, lasting_processes: Processes
) -> Callable[[Setup], QueueServer]:
    """Gives the server of a setup, which is started once: each module goes through all setups."""
    running: dict[str, QueueServer] = {}

    def serve(setup: Setup) -> QueueServer:
        if setup.store not in running:
            running[setup.store] = started(request, lasting_processes, setup)
        return running[setup.store]

    return serve


@pytest.fixture(scope="session", params=SETUPS)
def server(request: pytest.FixtureRequest, serve: Callable[[Setup], QueueServer]) -> QueueServer:
    """A running server. Tests share it, so each uses topics and ids of its own."""
    return serve(request.param)


@pytest.fixture
async def api(request: pytest.FixtureRequest, server: QueueServer) -> AsyncIterator[Api]:
    """A client of the server. Each test runs through both ways in: the express lane, and aiohttp."""
    setup = request.node.callspec.params.get("server", ONE_BUCKET)
    async with open_api(server.url, headers=setup.headers) as client:
        yield client


@pytest.fixture(scope="session")
def ordered_server(serve: Callable[[Setup], QueueServer]) -> QueueServer:
    """A running server with one bucket: only with one is the order within a topic strict."""
    return serve(ONE_BUCKET)


@pytest.fixture
async def ordered_api(ordered_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(ordered_server.url) as client:
        yield client


@pytest.fixture(scope="module", params=SETUPS)
def two_servers(
    request: pytest.FixtureRequest, processes: Processes
) -> Iterator[tuple[QueueServer, QueueServer]]:
    setup: Setup = request.param
    store: StoreServer = request.getfixturevalue(setup.store)
    database = store.new_database()
    one, other = (processes.server(store, redis__db=database, **setup.settings()) for _ in range(2))
    yield one, other
    one.close()
    other.close()


@pytest.fixture
async def pair(two_servers: tuple[QueueServer, QueueServer]) -> AsyncIterator[Pair]:
    one, other = two_servers
    async with open_api(one.url) as first, open_api(other.url) as second:
        yield first, second


@pytest.fixture
def name() -> Callable[[str], str]:
    """Makes names of topics and ids that no other test uses."""
    return lambda word: f"{word}-{secrets.token_hex(4)}"


@pytest.fixture
def topic(name: Callable[[str], str]) -> str:
    return name("topic")
