"""Our server with beanstalkd's protocol, and the real beanstalkd."""

import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.metrics import Metrics
from delayqueue.server.listening import accepting_clients
from tests.api_client import Api, open_api
from tests.docs.test_orders import needs
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer, free_port
from tests.unit.fronts import front_of

from .wire import Wire


class Served(NamedTuple):
    """A server that speaks both protocols."""

    server: QueueServer
    port: int  # for clients of beanstalkd


def opened(processes: Processes, store: StoreServer, **settings: Any) -> Served:
    port = free_port()
    settings |= {"beanstalk_address": f"{LOOPBACK}:{port}"}
    server = processes.server(store, **settings)
    return Served(server, port)


def accepting(
    server: BeanstalkServer, http_port: int, port: int, tls: ssl.SSLContext | None = None
) -> AbstractAsyncContextManager[None]:
    """Both ports of a process, without the rest of it: HTTP has no endpoints."""
    config = Config(
        bind_address=Address(LOOPBACK, http_port),
        beanstalk_address=Address(LOOPBACK, port),
        beanstalk_tls=tls is not None,
    )
    frontend: Any = SimpleNamespace(beanstalk=server, front=front_of(), tls=tls)
    return accepting_clients(config, frontend, Metrics())


@pytest.fixture(scope="module")
def served(processes: Processes, redis_server: StoreServer) -> Served:
    """Our server. Tests share it, so each uses its own tubes."""
    return opened(processes, redis_server)


@pytest.fixture(scope="module")
def beanstalkd(processes: Processes) -> int:
    """The port of a real beanstalkd."""
    needs("beanstalkd", [])
    return processes.beanstalkd("-z", "65535").port


@pytest.fixture
async def api(served: Served) -> AsyncIterator[Api]:
    """A client over HTTP."""
    async with open_api(served.server.url) as client:
        yield client


@pytest.fixture
async def connect(served: Served) -> AsyncIterator[Callable[[], Awaitable[Wire]]]:
    """Makes connections to our server."""
    made: list[Wire] = []

    async def connect() -> Wire:
        made.append(await Wire.open(served.port))
        return made[-1]

    yield connect
    for wire in made:
        wire.close()


@pytest.fixture
def tube() -> str:
    """A name that no other test uses."""
    return f"tube-{secrets.token_hex(4)}"


@pytest.fixture
async def wire(connect: Callable[[], Awaitable[Wire]], tube: str) -> Wire:
    """A connection that uses and watches this tube only."""
    return await at_home(await connect(), tube)


async def at_home(wire: Wire, tube: str) -> Wire:
    """Make it use and watch this tube only."""
    for command in (f"use {tube}", f"watch {tube}", "ignore default"):
        assert (await wire.ask(command.encode())).startswith((b"USING", b"WATCHING"))
    return wire
