"""How many calls of the store a delivery takes."""

import time
from collections import Counter

from tests.api_client import Api, open_api
from tests.figures import scrape
from tests.processes import Processes, StoreServer
from tests.waiting import until, until_async

from .conftest import Shop
from .receiver import Receiver

JOBS = 100


async def calls(api: Api) -> Counter[str]:
    rows = (await scrape(api)).rows("delayqueue_script_seconds_count")
    counts: Counter[str] = Counter()
    for (script, *_), count in rows.items():
        counts[script] += int(count)
    return counts


async def test_a_job_of_one_subscriber_takes_a_pop_and_a_record(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    """Few others come by the clock: it reads the subscribers each half second, and looks for jobs each second."""
    server = processes.server(redis_server, webhook_allow="127.0.0.1/32")
    async with open_api(server.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.subscribe("one", concurrency=5)
        await shop.push("first", retain=0)
        await until_async(lambda: has_recorded(api, Counter(), 1))
        before, began_s = await calls(api), time.monotonic()
        for number in range(1, JOBS + 1):
            await shop.push(f"job-{number}", retain=0)
            await until(lambda number=number: len(receiver.calls) == 1 + number)  # type: ignore[misc]
        await until_async(lambda: is_empty(api, topic))
        took, passed_s = await calls(api) - before, time.monotonic() - began_s
    # on a busy machine two jobs share a call now and then
    assert 0.7 * JOBS <= took["record"] <= JOBS
    assert took["finish"] == 0
    assert 0.7 * JOBS <= took["pop"] < 1.2 * JOBS + 2 * passed_s
    assert took["registered"] < 5 + 3 * passed_s


async def is_empty(api: Api, topic: str) -> bool:
    [counts] = (await api.call("/topics", {"topics": [topic]})).ok()
    return bool(counts["ready"] == counts["reserved"] == counts["delayed"] == 0)


async def has_recorded(api: Api, before: Counter[str], jobs: int) -> bool:
    return (await calls(api) - before)["record"] >= jobs
