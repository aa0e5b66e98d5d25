"""Two server processes on one Redis are one queue."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from statistics import median
from typing import Final

import pytest

from tests.api.jobs import assert_nothing_comes
from tests.api_client import OK, Api
from tests.waiting import until_async

from .conftest import Pair

JOBS: Final = 5000
BATCH: Final = 100
PRODUCERS: Final = 8
CONSUMERS: Final = 16


async def produce(api: Api, topic: str, numbers: Iterator[int]) -> None:
    """Push jobs in batches, with numbers from an iterator that producers share."""
    while batch := list(islice(numbers, BATCH)):
        jobs = [
            {"topic": topic, "id": f"{topic}/{n}", "delay": n % 7 * 0.1, "body": str(n)}
            for n in batch
        ]
        assert {result["code"] for result in (await api.push_all(jobs)).ok()} == {OK}


async def consume(api: Api, topic: str, deliveries: Counter[str]) -> None:
    """Pop and finish until all consumers together have had all jobs."""
    while deliveries.total() < JOBS:
        jobs = (await api.pop(topic, count=BATCH, timeout=1)).ok()
        assert all(job["id"] == f"{topic}/{job['body']}" for job in jobs)
        deliveries.update(job["id"] for job in jobs)
        if jobs:
            (await api.call("/finish", {"ids": [job["id"] for job in jobs]})).ok()


async def test_each_of_many_jobs_is_delivered_exactly_once(pair: Pair, topic: str) -> None:
    numbers = iter(range(JOBS))
    deliveries: Counter[str] = Counter()
    async with asyncio.timeout(180), asyncio.TaskGroup() as group:
        for number in range(PRODUCERS):
            group.create_task(produce(pair[number % 2], topic, numbers))
        for number in range(CONSUMERS):
            group.create_task(consume(pair[number % 2], topic, deliveries))
    assert deliveries == {f"{topic}/{n}": 1 for n in range(JOBS)}
    for api in pair:
        assert (await api.pop(topic, timeout=0)).ok() is None


@pytest.mark.parametrize("delay_s", [0, 0.1])
async def test_a_push_at_one_server_wakes_a_poll_at_the_other(
    pair: Pair, topic: str, delay_s: float
) -> None:
    """A lost message between the servers costs up to a second. A busy machine delays some jobs, or not always."""

    async def are_prompt(pusher: Api, poller: Api) -> bool:
        late_s = []
        for _ in range(9):
            poll = asyncio.create_task(poller.pop(topic))
            due_s = time.time() + delay_s
            (await pusher.push(topic=topic, id=topic, delay=delay_s)).ok()
            assert (await poll).ok()["id"] == topic
            late_s.append(time.time() - due_s)
            (await pusher.finish(topic)).ok()
        return median(late_s) < 0.3

    for pusher, poller in (pair, reversed(pair)):
        await until_async(partial(are_prompt, pusher, poller))


async def test_what_one_server_does_the_other_sees(pair: Pair, topic: str) -> None:
    one, other = pair
    (await one.push(topic=topic, id=topic, body="x")).ok()
    assert (await other.pop(topic)).ok()["body"] == "x"
    (await one.call("/touch", {"id": topic, "ttr": 1})).ok()
    assert (await one.pop(topic)).ok()["attempt"] == 2
    assert (await other.get(topic)).ok()["state"] == "reserved"
    (await other.finish(topic)).ok()
    assert (await one.get(topic)).ok() is None
    await assert_nothing_comes(one, topic, within_s=1.2)
