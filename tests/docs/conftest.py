"""A server to try the documentation on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes import LOOPBACK, free_port

if TYPE_CHECKING:
    from tests.processes import Processes, QueueServer, StoreServer


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server with no jobs, as the English pages start one."""
    return processes.server(
        redis_server, language="en", strict="yes", beanstalk_address=f"{LOOPBACK}:{free_port()}"
    )
