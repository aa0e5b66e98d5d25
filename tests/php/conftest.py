"""Servers, and projects in which the packages are installed."""

from collections.abc import Iterator

import pytest

from delayqueue import Client
from tests.processes import Processes, QueueServer, StoreServer

from .project import Project


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, language="en", strict="yes", calls="yes")


@pytest.fixture
def queue(server: QueueServer) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, server: QueueServer) -> Project:
    """A project that uses the client, on the server."""
    project = Project(tmp_path_factory.mktemp("project"), "delay-queue/client")
    project.variables["DELAYQUEUE_URL"] = server.url
    return project
