"""touch with progress: how far an attempt is, kept in the run of the job."""

import re
from typing import Any

import pytest

from delayqueue.answers.jobs import Progress
from delayqueue.errors import Code
from delayqueue.store.verbs import Touch
from tests.store.bucket import HOUR_MS, Bucket, job


async def tell(
    bucket: Bucket, percent: float | None, message: str | None, nonce: str | None = None
) -> int:
    [moved] = await bucket.store.touch(0, [Touch("a", nonce, None, percent, message)])
    return moved.code


async def told(bucket: Bucket) -> tuple[float | None, str] | None:
    progress = (await bucket.view("a")).progress
    return None if progress is None else (progress.percent, progress.message)


async def run_of(bucket: Bucket) -> bytes:
    run: Any = await bucket.redis.hget(bucket.key("run"), "a")
    return bytes(run)


@pytest.fixture
async def held(bucket: Bucket) -> Bucket:
    """A bucket with a reserved job."""
    await bucket.put_in("reserved", retain_ms=HOUR_MS)
    return bucket


async def test_a_job_has_no_progress_until_its_worker_tells_it(held: Bucket) -> None:
    assert await told(held) is None
    before_ms = await held.now_ms()
    assert await tell(held, 40, "page 4 of 10") == Code.OK
    view = await held.view("a")
    assert isinstance(view.progress, Progress)
    assert before_ms / 1000 <= view.progress.at <= await held.now_ms() / 1000
    assert (view.progress.percent, view.progress.message) == (40, "page 4 of 10")
    assert (view.message, view.remarks, view.attempts) == ("", (), ())


@pytest.mark.parametrize(
    ("percent", "message", "expected"),
    [
        (50, None, (50, "")),  # the message belonged to the former percentage
        (0, "again", (0, "again")),
        (33.337, "a third", (33.34, "a third")),
        (100, "0 1 2 3 4", (100, "0 1 2 3 4")),
        (None, "page 5", (40, "page 5")),
        (None, "", (40, "")),
        (None, None, (40, "page 4")),  # as the lease of a worker extends it
    ],
)
async def test_the_last_word_counts(
    held: Bucket, percent: float | None, message: str | None, expected: tuple[float, str]
) -> None:
    await tell(held, 40, "page 4")
    assert await tell(held, percent, message) == Code.OK
    assert await told(held) == expected


async def test_a_message_needs_no_percentage(held: Bucket) -> None:
    await tell(held, None, "warming up")
    assert await told(held) == (None, "warming up")


async def test_only_the_holder_tells(held: Bucket) -> None:
    assert await tell(held, 40, "late", nonce="another") == Code.STALE_RECEIPT
    assert await told(held) is None
    await held.release("a", delay_ms=HOUR_MS)
    assert await tell(held, 40, "late") == Code.WRONG_STATE


@pytest.mark.parametrize("end", ["released", "buried", "cancelled"])
async def test_a_job_that_failed_shows_where_it_stood(held: Bucket, end: str) -> None:
    await tell(held, 40, "page 4")
    if end == "released":
        await held.release("a", delay_ms=0, message="broken")
    else:
        await (held.bury if end == "buried" else held.delete)("a", message="broken")
    assert await told(held) == (40, "page 4")
    assert (await held.view("a")).message == "broken"


async def test_the_next_attempt_begins_without(held: Bucket) -> None:
    await tell(held, 40, "page 4")
    await held.release("a", delay_ms=0, message="broken")
    await held.pop_one()
    assert await told(held) is None
    await tell(held, None, "page 1")
    assert await told(held) == (None, "page 1")
    assert [one.message for one in (await held.view("a")).attempts] == ["broken"]


async def test_a_finished_job_stands_nowhere(held: Bucket) -> None:
    await tell(held, 40, "page 4")
    await held.finish("a")
    assert await told(held) is None


async def test_a_run_has_one_progress_however_often_it_is_told(held: Bucket) -> None:
    for percent in range(100):
        await tell(held, percent, "x" * 500)
    assert len(await run_of(held)) < 600


async def test_the_failures_before_stay(held: Bucket) -> None:
    for number in range(3):
        await tell(held, number, f"at {number}")
        await held.release("a", delay_ms=0, message=f"failed {number}")
        await held.pop_one()
    await tell(held, 3, "at 3")
    view = await held.view("a")
    assert [one.message for one in view.attempts] == [f"failed {n}" for n in range(3)]
    assert view.message == "failed 2"


async def test_an_earlier_version_takes_it_for_a_remark(held: Bucket) -> None:
    """Its pattern of notes: attempt 0, and not ended at 0, which is the name of a worker."""
    await tell(held, 40, "page 4")
    note: Any = re.fullmatch(rb"1 0 \S+ \d+\n0 (\d+) (\d+) 6 page 4", await run_of(held))
    assert int(note[1]) > 0
    assert int(note[2]) > 0


async def test_a_pushed_job_forgets_it(held: Bucket) -> None:
    await tell(held, 40, "page 4")
    await held.push(job("a"))
    assert await told(held) is None


async def test_some_jobs_tell_and_others_do_not_in_one_call(bucket: Bucket) -> None:
    await bucket.push(*[job(name) for name in "abc"])
    await bucket.pop_ids()
    items = [Touch("a", None, None), Touch("b", None, None, 1, "b"), Touch("c", None, 5, None, "c")]
    assert [one.code for one in await bucket.store.touch(0, items)] == [Code.OK] * 3
    views = [await bucket.view(name) for name in "abc"]
    assert [view.progress and view.progress.message for view in views] == [None, "b", "c"]
