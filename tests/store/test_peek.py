"""peek: the next job of a state, and the most urgent one of several topics."""

import pytest

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import MAX_PRIORITY, USUAL_PRIORITY, State
from delayqueue.store.listings import Listings
from delayqueue.store.types import Demand
from tests.store.bucket import HOUR_MS, Bucket, a_moment, job

READY = State.READY


async def first(bucket: Bucket, state: State, topic: str = "t") -> str | None:
    found = await Listings(bucket.store, EVERYWHERE).first(topic, state)
    return found.id if found else None


@pytest.mark.parametrize("state", [State.READY, State.DELAYED, State.BURIED])
async def test_nothing_is_the_first_of_nothing(bucket: Bucket, state: State) -> None:
    assert await first(bucket, state) is None
    await bucket.put_in("reserved")
    assert await first(bucket, state) is None


async def test_the_job_that_is_handed_out_next(bucket: Bucket) -> None:
    priorities = (MAX_PRIORITY, USUAL_PRIORITY, 7, USUAL_PRIORITY, 3, USUAL_PRIORITY + 1)
    await bucket.push(*(job(f"{n}", priority=priority) for n, priority in enumerate(priorities)))
    for _ in priorities:
        expected = await first(bucket, READY)
        assert [each.id for each in await bucket.pop(wanted=1)] == [expected]


@pytest.mark.parametrize("count", [3, 2000])
async def test_what_is_left_of_others_in_the_list_is_passed_by(bucket: Bucket, count: int) -> None:
    await bucket.push(*(job(f"{n}") for n in range(count + 2)))
    await bucket.delete(*map(str, range(count)))
    for _ in range(2):
        assert await first(bucket, READY) == f"{count}"


async def test_the_job_that_is_due_next(bucket: Bucket) -> None:
    for n in (3, 1, 2):
        await bucket.push(job(f"{n}", delay_ms=n * HOUR_MS, priority=n))
    assert await first(bucket, State.DELAYED) == "1"


async def test_the_job_that_was_buried_first(bucket: Bucket) -> None:
    for job_id in ("b", "a"):
        await bucket.put_in("buried", job_id)
        await a_moment()
    assert await first(bucket, State.BURIED) == "b"


async def test_a_job_out_of_reach_is_not_there(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    assert await Listings(bucket.store, Scope(("u",))).first("t", READY) is None
    assert await Listings(bucket.store, Scope(("t",))).first("t", READY)


async def test_urgent_jobs_are_counted(bucket: Bucket) -> None:
    for n, priority in enumerate((0, USUAL_PRIORITY - 1, USUAL_PRIORITY, MAX_PRIORITY)):
        await bucket.push(job(f"{n}", priority=priority))
    await bucket.push(job("late", priority=1, delay_ms=HOUR_MS))
    counts = await bucket.counts()
    assert (counts.ready, counts.urgent) == (4, 2)


async def test_the_most_urgent_job_of_all_topics_goes_first(bucket: Bucket) -> None:
    jobs = {"t": (5, USUAL_PRIORITY, 9), "u": (4, 7, MAX_PRIORITY), "v": (USUAL_PRIORITY, 2)}
    for topic, priorities in jobs.items():
        for priority in priorities:
            await bucket.push(job(f"{topic}{priority}", topic=topic, priority=priority))
    demands = [Demand(("t", "empty", "u", "v"), 3, True), Demand(("v", "t", "u"), 9, True)]
    popped = (await bucket.store.pop(0, demands)).jobs
    assert [[each.id for each in found] for found in popped] == [
        ["v2", "u4", "t5"],
        ["u7", "t9", f"v{USUAL_PRIORITY}", f"t{USUAL_PRIORITY}", f"u{MAX_PRIORITY}"],
    ]


async def test_a_topic_that_gives_nothing_does_not_keep_the_others(bucket: Bucket) -> None:
    await bucket.push(job("a", priority=1), job("b", topic="u", priority=2))
    await bucket.store.pause(0, "t", HOUR_MS)
    [found] = (await bucket.store.pop(0, [Demand(("t", "u"), 5, True)])).jobs
    assert [each.id for each in found] == ["b"]
