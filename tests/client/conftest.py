"""A server, and both clients behind one way of calling them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest

from delayqueue.client import AsyncClient, Client
from tests.processes import Processes, QueueServer, StoreServer

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
