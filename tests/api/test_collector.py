"""The garbage collector stops everything while it visits all objects, so there should be few."""

import re
from typing import Final

from tests.processes import Processes, QueueServer, StoreServer

MOST: Final = 20_000  # modules and models alone are 70,000


def test_it_does_not_go_through_what_was_there_before_the_first_request(
    processes: Processes, redis_server: StoreServer
) -> None:
    settings = redis_server.settings(redis_server.new_database())
    home = processes.home("collected")
    server = processes.started(QueueServer("server", home, settings, program=["tests.collected"]))
    assert server.stop() == 0
    objects = re.search(r"objects: (\d+)", server.logged())
    assert objects, server.logged()
    assert int(objects[1]) < MOST
