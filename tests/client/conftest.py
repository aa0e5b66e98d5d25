"""A server, both clients behind one way of calling them, and workers in the loop of a test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from delayqueue import Worker
from delayqueue.client import AsyncClient, Client, TransportError
from delayqueue.client.api_request import Answer, ApiRequest
from delayqueue.testing import Queue
from faults.proxy import Proxy
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until_async

KINDS: Final[dict[str, type[Client | AsyncClient]]] = {"Client": Client, "AsyncClient": AsyncClient}


class Caller:
    """Calls a verb of either client: `await caller.push("mail")`."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self._client = client

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        method = getattr(self._client, verb)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if isinstance(self._client, AsyncClient):
                return await method(*args, **kwargs)
            return await asyncio.to_thread(method, *args, **kwargs)

        return call


@pytest.fixture(scope="session")
def server(lasting_processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server that refuses requests that a client should not send."""
    return lasting_processes.server(redis_server, strict="yes")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> type[Client | AsyncClient]:
    return KINDS[request.param]


@pytest.fixture
async def client(kind: type[Client | AsyncClient], server: QueueServer) -> AsyncIterator[Caller]:
    caller = Caller(kind(server.url))
    yield caller
    await caller.close()


@pytest.fixture
async def queue(server: QueueServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.url) as client:
        yield client


@pytest.fixture
async def proxy(server: QueueServer) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as running:
        yield running


class RecordingClient(AsyncClient):
    """Records the requests that it sends, and repeats none."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, retries=0, **options)
        self.sent: list[ApiRequest[Any]] = []

    async def _try(self, request: ApiRequest[Any]) -> Answer | TransportError:
        self.sent.append(request)
        return await super()._try(request)


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[None]:
    """The worker works until the end of the block."""
    stop = asyncio.Event()
    working = asyncio.create_task(worker.work(stop, grace=5))
    try:
        yield
    finally:
        stop.set()
        await working


async def until_state(queue: AsyncClient, job_id: str, state: str | None) -> None:
    """Wait until the job is in this state; None: until there is no such job."""

    async def is_so() -> bool:
        job = await queue.get(job_id)
        return (None if job is None else job.state) == state

    await until_async(is_so)


def shop() -> tuple[Worker, Queue]:
    """A worker whose tasks push into a queue in memory."""
    worker = Worker()
    queue = Queue(worker)
    worker.client, worker.async_client = queue, queue.asynchronous
    return worker, queue
