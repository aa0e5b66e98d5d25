"""hold: notes which worker has a job, and tells what became of it."""

import re
from typing import Any, Final

import pytest

from delayqueue.domain.job import Reserved, State
from delayqueue.store.types import Listing
from delayqueue.store.verbs import HOLD, Holding, NotHeld
from tests.store.bucket import ALWAYS, HOUR_MS, SOON_MS, Bucket, a_moment, job

DAY_MS: Final = 24 * HOUR_MS


async def hold(
    bucket: Bucket, *jobs: Reserved, worker: str = "w 1", known_ms: int = 0
) -> list[Any]:
    items = [Holding(one.id, one.topic, one.nonce, worker, known_ms) for one in jobs]
    return await bucket.store.all_of(HOLD, items)


def holders_key(bucket: Bucket, popped: Reserved) -> str:
    return bucket.key(f"holders:{popped.nonce.partition('-')[0]}")


async def test_a_reserved_job_names_its_worker(bucket: Bucket) -> None:
    await bucket.push(job("a", tags=("g",)), job("b"), job("c"))
    first, second, _ = await bucket.pop()
    assert (await bucket.view("a")).worker == ""
    assert min(await hold(bucket, first, second)) > await bucket.now_ms()
    assert [(await bucket.view(one)).worker for one in "abc"] == ["w 1", "w 1", ""]
    what = Listing("", "g", State.RESERVED.value, ALWAYS)
    [page] = [page async for page in bucket.pages(what)]
    assert [one.worker for one in page] == ["w 1"]


@pytest.mark.parametrize(
    ("end", "result"),
    [
        ("finish", NotHeld.ENDED),
        ("release", NotHeld.GIVEN_BACK),
        ("expire", NotHeld.GIVEN_BACK),
    ],
)
async def test_what_became_of_a_job_is_told_and_its_entry_goes(
    bucket: Bucket, end: str, result: NotHeld
) -> None:
    await bucket.push(job("a", ttr_ms=SOON_MS if end == "expire" else HOUR_MS))
    popped = await bucket.pop_one()
    await hold(bucket, popped)
    if end == "finish":
        await bucket.finish("a")
    elif end == "release":
        await bucket.release("a")
    else:
        await a_moment()
        await bucket.tick()
    assert await hold(bucket, popped) == [result]
    assert await bucket.redis.hlen(holders_key(bucket, popped)) == 0


async def test_the_entry_of_an_earlier_reservation_counts_for_nobody(bucket: Bucket) -> None:
    await bucket.push(job("a", ttr_ms=SOON_MS))
    former = await bucket.pop_one()
    await hold(bucket, former)
    await a_moment()
    await bucket.tick()
    present = await bucket.pop_one()
    assert (await bucket.view("a")).worker == ""
    await hold(bucket, present, worker="w 2")
    assert await hold(bucket, former) == [NotHeld.GIVEN_BACK]
    assert (await bucket.view("a")).worker == "w 2"


async def test_a_job_whose_deadline_is_the_known_one_is_not_written_again(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    popped = await bucket.pop_one()
    (known,) = await hold(bucket, popped)
    await bucket.redis.delete(holders_key(bucket, popped))
    assert await hold(bucket, popped, known_ms=known) == [known]
    assert (await bucket.view("a")).worker == ""
    await bucket.touch("a", ttr_ms=2 * HOUR_MS)
    (extended,) = await hold(bucket, popped, known_ms=known)
    assert extended > known
    assert (await bucket.view("a")).worker == "w 1"


async def test_what_a_dead_server_leaves_behind_expires(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    popped = await bucket.pop_one()
    await hold(bucket, popped)
    assert DAY_MS < await bucket.redis.pttl(holders_key(bucket, popped)) <= DAY_MS + HOUR_MS


async def test_a_broken_key_hides_the_name_and_nothing_else(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    popped = await bucket.pop_one()
    await bucket.redis.set(holders_key(bucket, popped), "x")
    assert (await bucket.view("a")).worker == ""
    await bucket.redis.delete(holders_key(bucket, popped))


@pytest.mark.parametrize("end", ["release", "bury", "expire"])
async def test_an_attempt_that_failed_keeps_who_had_it(bucket: Bucket, end: str) -> None:
    await bucket.push(job("a", ttr_ms=SOON_MS if end == "expire" else HOUR_MS))
    popped = await bucket.pop_one()
    await hold(bucket, popped, worker="web 1")
    if end == "release":
        await bucket.release("a")
    elif end == "bury":
        await bucket.bury("a")
    else:
        await a_moment()
        (late,) = (await bucket.store.tick(0)).timed_out
        assert late == ("t", "a", 1, "web 1")
    view = await bucket.view("a")
    assert [(each.attempt, each.worker) for each in view.attempts] == [(1, "web 1")]
    assert view.remarks == ()


async def test_who_had_an_attempt_is_a_remark_of_an_earlier_version(bucket: Bucket) -> None:
    """Attempt 0: such versions show it nowhere as an attempt or as the job's message."""
    await bucket.push(job("a"))
    await hold(bucket, await bucket.pop_one(), worker="web 1")
    await bucket.release("a")
    run = await bucket.redis.hget(bucket.key("run"), "a")
    assert isinstance(run, bytes)
    notes = re.findall(rb"(\d+) \d+ (\d+) 5 web 1", run)
    assert notes == [(b"0", b"0")]
    assert (await bucket.view("a")).message == ""
