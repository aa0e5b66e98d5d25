"""A server to try the documentation on."""

import pytest

from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer, free_port


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server with no jobs, as the English pages start one."""
    return processes.server(
        redis_server, language="en", strict="yes", beanstalk_address=f"{LOOPBACK}:{free_port()}"
    )
