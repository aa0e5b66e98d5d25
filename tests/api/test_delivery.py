"""When and in which order jobs are delivered; tests/store/test_pop.py and tests/engine/test_polls.py have the rest."""

import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.api_client import Api, open_api
from tests.processes import Processes, StoreServer

Name = Callable[[str], str]

# TIME and time.time() are the same clock, but a fraction of a millisecond is cut off, and the clock can be set by some
CLOCK_STEP_S: Final = 0.005


@pytest.mark.parametrize(
    ("timeout_s", "options", "empty"), [(0.3, {}, None), (0, {"count": 1000}, [])]
)
async def test_a_poll_without_a_job_ends_empty_at_its_timeout(
    api: Api, topic: str, timeout_s: float, options: dict[str, int], empty: object
) -> None:
    started_s = time.monotonic()
    assert (await api.pop(topic, timeout=timeout_s, **options)).ok() == empty
    waited_s = time.monotonic() - started_s
    assert timeout_s - CLOCK_STEP_S <= waited_s < timeout_s + 20


async def test_a_poll_without_a_timeout_ends_after_queue_block_timeout(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server, queue_block_timeout=1)
    async with open_api(server.url) as api:
        started_s = time.monotonic()
        assert (await api.call("/pop", {"topic": topic})).ok() is None
        assert 1 - CLOCK_STEP_S <= time.monotonic() - started_s < 20
