"""When and in which order jobs are delivered; tests/store/test_pop.py and tests/engine/test_polls.py have the rest."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.api_client import Api, open_api, push_due_in
from tests.processes import Processes, StoreServer
from tests.waiting import until_async

Name = Callable[[str], str]

# TIME and time.time() are the same clock, but a fraction of a millisecond is cut off, and the clock can be set by some
CLOCK_STEP_S: Final = 0.005


async def test_a_popped_job_is_the_pushed_one(api: Api, topic: str, name: Name) -> None:
    sent = await push_due_in(api, 0, topic=topic, id=name("id"), body='{"uid":1}', ttr=77)
    job = (await api.pop(topic)).ok()
    assert list(job)[:3] == ["topic", "id", "body"]
    assert (job["topic"], job["id"], job["body"]) == (topic, sent.id, '{"uid":1}')
    assert job["attempt"] == 1
    assert isinstance(job["receipt"], str)
    assert job["due"] == pytest.approx(sent.due_s, abs=30)


async def test_a_due_job_does_not_wait_for_the_next_full_second(api: Api, name: Name) -> None:
    async def lateness_s(fraction: float) -> float:
        topic = name("topic")
        due_s = int(time.time()) + 2 + fraction
        (await api.push(topic=topic, id=name("id"), due=due_s)).ok()
        (await api.pop(topic)).ok()
        return time.time() - due_s

    async def are_prompt() -> bool:
        lateness = await asyncio.gather(*map(lateness_s, (0.05, 0.15, 0.25, 0.35, 0.45)))
        assert min(lateness) >= -CLOCK_STEP_S
        return min(lateness) < 0.4  # with a timer of whole seconds each time 0.55

    await until_async(are_prompt)


@pytest.mark.parametrize(
    ("options", "empty"), [({}, None), ({"count": 1}, []), ({"count": 1000}, [])]
)
@pytest.mark.parametrize("timeout_s", [0, 0.3])
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
