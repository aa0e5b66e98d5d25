"""due_soon: how many delayed jobs of each topic fall due within some times."""

from typing import Final

import pytest

from delayqueue.store.census import DUE_SOON, Census
from tests.store.bucket import HOUR_MS, Bucket, calls_of, job

MINUTE_MS: Final = 60_000
DAY_MS: Final = 24 * HOUR_MS


async def due_soon(bucket: Bucket, *topics: str) -> list[list[int]]:
    return [list(each) for each in await bucket.store.due_soon(0, topics)]


async def test_each_time_counts_what_falls_due_by_then(bucket: Bucket) -> None:
    for delay_ms in (MINUTE_MS // 2, 4 * MINUTE_MS, HOUR_MS // 2, 2 * HOUR_MS, 30 * DAY_MS):
        await bucket.push(job(f"{delay_ms}", delay_ms=delay_ms))
    await bucket.push(job("other", topic="u", delay_ms=MINUTE_MS // 2), job("ready"))
    assert await due_soon(bucket, "t", "unknown", "u") == [[1, 2, 3], [0, 0, 0], [1, 1, 1]]


async def test_a_job_that_no_tick_has_moved_counts(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=1), job("b", delay_ms=HOUR_MS))
    now_ms = await bucket.now_ms()
    while await bucket.now_ms() < now_ms + 3:
        pass
    assert await due_soon(bucket, "t") == [[1, 1, 2]]


@pytest.mark.parametrize("jobs", [10, 1000])
async def test_the_work_does_not_grow_with_the_number_of_jobs(bucket: Bucket, jobs: int) -> None:
    await bucket.push(*(job(f"{n}", delay_ms=n * HOUR_MS // jobs) for n in range(1, jobs)))
    before = await calls_of(bucket.redis, "zcount")
    assert (await due_soon(bucket, "t"))[0][2] == jobs - 1
    # on the wheel, one for each slot that has jobs, or for each of a range that is shorter than these
    assert await calls_of(bucket.redis, "zcount") - before <= (
        3 if not bucket.wheel_slots else 2 * jobs + 3
    )


async def test_a_call_counts_some_of_many_topics_and_the_next_ones_the_rest(
    bucket: Bucket,
) -> None:
    topics = [f"topic-{n}" for n in range(1500)]
    for first in range(0, len(topics), 500):
        await bucket.push(
            *(job(each, topic=each, delay_ms=1000) for each in topics[first : first + 500])
        )
    args = DUE_SOON.pack(topics)
    reply = await bucket.store.call("due_soon", 0, args)
    assert 0 < len(reply.results) < len(topics)
    assert await due_soon(bucket, *topics) == [[1, 1, 1]] * len(topics)


async def test_only_topics_with_delayed_jobs_are_asked_for(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=1000), job("b", topic="ready"))
    census = Census(bucket.store)
    views = await census.of(["t", "ready", "unknown"])
    assert await census.due_soon(views) == {
        "t": (1, 1, 1),
        "ready": (0, 0, 0),
        "unknown": (0, 0, 0),
    }
