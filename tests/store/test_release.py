"""release, touch and bury: what only the holder of a job can do with it."""

import pytest

from delayqueue.errors import Code
from delayqueue.store.types import Change, Moved
from delayqueue.store.verbs import Release, Touch
from tests.store.bucket import HOUR_MS, LATER_MS, Bucket, job, later


@pytest.mark.parametrize(
    ("retry_ms", "delay_ms", "expected_ms", "reason"),
    [
        (None, None, 5000, "no schedule"),
        ((7000,), None, 7000, "its schedule goes first"),
        (None, 3000, 3000, "a delay that is given goes first"),
    ],
)
async def test_a_job_without_a_schedule_waits_for_the_fallback(
    bucket: Bucket,
    retry_ms: tuple[int, ...] | None,
    delay_ms: int | None,
    expected_ms: int,
    reason: str,
) -> None:
    await bucket.push(job("a", retry_ms=retry_ms))
    await bucket.pop_one()
    before_ms = await bucket.now_ms()
    [moved], _ = await bucket.store.release(0, [Release("a", None, delay_ms, "", 5000)])
    assert moved.time_ms is not None
    assert 0 <= moved.time_ms - before_ms - expected_ms < 1000, reason


@pytest.mark.parametrize("delay_ms", [None, 0])
async def test_a_job_without_a_schedule_is_buried_at_the_end_of_the_one_that_is_offered(
    bucket: Bucket, delay_ms: int | None
) -> None:
    await bucket.push(job("a"))
    states = []
    for _ in range(2):
        await bucket.pop_one()
        await bucket.store.release(0, [Release("a", None, delay_ms, "", 5000, retry_ms=(0,))])
        states.append((await bucket.view("a")).state)
    await bucket.kick("a")  # it starts again
    await bucket.pop_one()
    await bucket.store.release(0, [Release("a", None, delay_ms, "", retry_ms=(0,))])
    states.append((await bucket.view("a")).state)
    assert states == ["ready", "buried", "ready"]


@pytest.mark.parametrize(
    ("own_ms", "offered_ms", "state"),
    [((0,), (), "ready"), ((), (0,), "buried"), (None, (), "buried"), (None, (9000, 0), "delayed")],
)
async def test_the_schedule_of_its_own_goes_before_the_one_that_is_offered(
    bucket: Bucket, own_ms: tuple[int, ...] | None, offered_ms: tuple[int, ...], state: str
) -> None:
    await bucket.push(job("a", retry_ms=own_ms))
    await bucket.pop_one()
    await bucket.store.release(0, [Release("a", None, None, "", retry_ms=offered_ms)])
    assert (await bucket.view("a")).state == state


async def test_a_released_job_without_schedule_is_ready_at_once(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    popped = await bucket.pop_one()
    release = Release("a", None, None, "not now")
    [moved], change = await bucket.store.release(0, [release])
    assert (moved.code, change.ready, change.next_due_ms) == (Code.OK, [("t", 1)], None)
    view = await bucket.view("a")
    assert (view.state, view.attempt, view.message) == ("ready", 1, "not now")
    assert await bucket.finish("a", nonce=popped.nonce) == [Code.STALE_RECEIPT]
    assert (await bucket.pop_one()).attempt == 2


@pytest.mark.parametrize("retry_ms", [None, (0,)])
async def test_a_job_that_was_reserved_before_its_time_is_not_ready_before_it(
    bucket: Bucket, retry_ms: tuple[int, ...] | None
) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS, retry_ms=retry_ms))
    due_ms = (await bucket.view("a")).due_ms
    await bucket.store.reserve(0, ["a"])
    assert await bucket.release("a") == Moved(Code.OK, due_ms)
    assert (await bucket.view("a")).state == "delayed"


async def test_a_released_job_waits_for_the_delay_it_was_given(bucket: Bucket) -> None:
    await bucket.push(job("a", retry_ms=(1,)))
    await bucket.pop_one()
    [moved], change = await bucket.store.release(0, [Release("a", None, HOUR_MS, "")])
    assert change == Change([], HOUR_MS, is_news=False)
    assert moved.time_ms == (await bucket.view("a")).due_ms
    assert await bucket.state("a") == "delayed"


async def test_a_released_job_goes_on_with_its_schedule(bucket: Bucket) -> None:
    await bucket.push(job("a", retry_ms=(HOUR_MS, 0)))
    await bucket.pop_one()
    moved = await bucket.release("a")
    assert moved.time_ms is not None
    assert 0 < moved.time_ms - await bucket.now_ms() <= HOUR_MS
    await bucket.reschedule("a")
    await bucket.tick()
    await bucket.pop_one()
    assert (await bucket.release("a")).code == Code.OK
    assert await bucket.state("a") == "ready"
    await bucket.pop_one()
    assert await bucket.release("a") == Moved(Code.OK, None, buried=True)
    assert await bucket.state("a") == "buried"
    await bucket.reschedule("a")  # the schedule of a dead letter starts over
    await bucket.tick()
    await bucket.pop_one()
    assert (await bucket.release("a")).time_ms is not None


async def test_a_released_job_that_nobody_needs_any_more_expires(bucket: Bucket) -> None:
    await bucket.push(job("a", expire_ms=LATER_MS, retain_ms=HOUR_MS))
    await bucket.pop_one()
    await later()
    released = await bucket.release("a", delay_ms=HOUR_MS, message="x", priority=7)
    assert released == Moved(Code.OK, None)
    view = await bucket.view("a")
    assert (view.state, view.message, view.priority) == ("expired", "x", 7)


async def test_each_job_of_a_batch_of_releases_has_its_own_answer(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"), job("c"))
    await bucket.pop(wanted=2)
    releases = [
        Release(i, None, delay, "") for i, delay in (("a", 5), ("x", 5), ("b", 0), ("c", 5))
    ]
    moved, change = await bucket.store.release(0, [*releases, Release("a", None, 5, "")])
    codes = [each.code for each in moved]
    assert codes == [Code.OK, Code.NO_SUCH_JOB, Code.OK, Code.WRONG_STATE, Code.WRONG_STATE]
    assert [each.time_ms is None for each in moved] == [False, True, False, True, True]
    assert change == Change([("t", 1)], 5)


async def test_a_whole_batch_is_touched(bucket: Bucket) -> None:
    ids = [f"job-{n}" for n in range(1499)]
    await bucket.push(*map(job, ids))
    while await bucket.pop():  # some hundred of them at a time
        pass
    moved = await bucket.store.touch(0, [Touch(i, None, 5) for i in ids])
    assert {each.code for each in moved} == {Code.OK}


async def test_long_messages_push_out_the_oldest_only(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    for number in range(12):
        await bucket.pop_one()
        await bucket.release("a", message=f"{number} " + "é" * 1000)
    notes = (await bucket.view("a")).attempts
    assert [note.attempt for note in notes] == [9, 10, 11, 12]
    assert notes[-1].message == "11 " + "é" * 1000


async def test_a_bury_of_a_job_that_nobody_works_on_invents_no_attempt(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    await bucket.bury("a", message="fraud")
    view = await bucket.view("a")
    assert (view.state, view.attempt, view.attempts, view.message) == ("buried", 0, (), "fraud")
    await bucket.kick("a")
    await bucket.pop_one()
    await bucket.release("a", message="no answer")
    await bucket.bury("a", message="given up")
    view = await bucket.view("a")
    assert [(one.attempt, one.message) for one in view.attempts] == [(1, "no answer")]
    assert view.message == "given up"
