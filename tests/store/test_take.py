"""take, list and forecast: jobs by due time."""

import asyncio

import pytest

from delayqueue.store.types import JobView, Listing, Range
from delayqueue.store.verbs import RESTORE
from tests.store.bucket import ALWAYS, HOUR_MS, STATES, Bucket, calls_of, job


async def everything(bucket: Bucket, what: Listing, limit: int = 10) -> list[JobView]:
    """All pages of a list."""
    return [job async for page in bucket.pages(what, limit) for job in page]


async def test_a_range_is_taken_with_both_its_ends_and_removed(bucket: Bucket) -> None:
    later_ms = await bucket.now_ms() + HOUR_MS
    await bucket.push(*(job(f"job-{n}", due_ms=later_ms + n, tags=("x",)) for n in range(10)))
    taken = await bucket.take(Range(later_ms + 3, later_ms + 6))
    assert [job.id for job in taken] == ["job-3", "job-4", "job-5", "job-6"]
    assert [await bucket.get(job.id) for job in taken] == [None] * 4
    assert len(await bucket.take()) == 6


async def test_ready_jobs_of_the_range_are_taken_first(bucket: Bucket) -> None:
    await bucket.put_in("delayed", "later")
    await bucket.push(job("b", due_ms=20), job("a", due_ms=10), job("c", due_ms=30))
    assert [job.id for job in await bucket.take(Range(15, 10**13))] == ["b", "c", "later"]
    assert await bucket.redis.lindex(bucket.key("dq_queue_t"), 0) == b"a"  # no ghost is before it
    assert await bucket.pop_ids() == ["a"]


async def test_a_job_that_has_left_the_range_since_it_was_listed_is_not_taken(
    bucket: Bucket,
) -> None:
    due_ms = await bucket.now_ms() + HOUR_MS
    await bucket.push(*(job(f"{n}", due_ms=due_ms + n) for n in range(3)))
    await bucket.push(job("of another topic", topic="u", due_ms=due_ms + 1))
    asked = ["t", due_ms + 1, due_ms + 1, "0", "1", "2", "gone", "of another topic"]
    reply = await bucket.store.call("take", 0, asked)
    assert [isinstance(each, list) for each in reply.results] == [False, True, *[False] * 3]


async def test_a_call_takes_so_many_jobs_at_most_and_leaves_the_others(bucket: Bucket) -> None:
    due_ms = await bucket.now_ms() + HOUR_MS
    names = [f"job-{n:03}" for n in range(900)]
    await bucket.push(*(job(name, due_ms=due_ms) for name in names))
    reply = await bucket.store.call("take", 0, ["t", 0, due_ms, *names])
    assert 30 < len(reply.results) < 500
    assert [one.id for one in await bucket.take()] == names[len(reply.results) :]


async def test_each_job_goes_to_one_caller_only(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{n}", delay_ms=n % 2 * HOUR_MS) for n in range(200)))
    answers = await asyncio.gather(*(bucket.take(most=30) for _ in range(20)))
    taken = [job.id for answer in answers for job in answer]
    assert len(taken) == len(set(taken)) == 200


async def test_a_long_ready_list_is_looked_through_piece_by_piece(bucket: Bucket) -> None:
    for start in range(0, 3000, 1000):
        jobs = (job(f"job-{n}", due_ms=n) for n in range(start, start + 1000))
        await bucket.push(*jobs)
    await bucket.delete(*(f"job-{n}" for n in range(0, 3000, 3)))
    taken = await bucket.take(Range(2500, 3000), most=1000)
    assert [job.id for job in taken] == [f"job-{n}" for n in range(2500, 3000) if n % 3]


@pytest.mark.parametrize("state", STATES)
async def test_a_state_is_listed_and_nothing_is_changed(bucket: Bucket, state: str) -> None:
    for each in ("reserved", "buried", "ready", "delayed"):
        await bucket.put_in(each, each)
    listing = Listing("t", "", state, ALWAYS)
    assert [view.id for view in await everything(bucket, listing)] == [state]
    assert [view.id for view in await everything(bucket, listing)] == [state]


async def test_all_pages_together_hold_each_job_once(bucket: Bucket) -> None:
    ids = [f"job-{n:03}" for n in range(95)]
    await bucket.push(*(job(i, delay_ms=HOUR_MS, tags=("x",)) for i in ids))
    for listing in (Listing("t", "", "delayed", ALWAYS), Listing("", "x", "", ALWAYS)):
        assert sorted(view.id for view in await everything(bucket, listing)) == ids


async def test_a_ready_job_whose_id_is_in_the_list_twice_is_listed_once(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    await bucket.push(job("a"))
    listed = await everything(bucket, Listing("t", "", "ready", ALWAYS))
    assert sorted(view.id for view in listed) == ["a", "b"]


async def test_a_range_of_due_times_is_listed_in_its_order(bucket: Bucket) -> None:
    later_ms = await bucket.now_ms() + HOUR_MS
    await bucket.push(*(job(f"job-{n}", due_ms=later_ms + n) for n in range(10)))
    due = Range(later_ms + 3, later_ms + 6)
    listed = await everything(bucket, Listing("t", "", "delayed", due), limit=2)
    assert [view.id for view in listed] == ["job-3", "job-4", "job-5", "job-6"]


async def test_what_ended_is_listed_by_its_state_and_by_its_tag(bucket: Bucket) -> None:
    await bucket.push(*(job(i, retain_ms=HOUR_MS, tags=("x",)) for i in "abc"))
    await bucket.finish("a")
    await bucket.delete("b")
    for listing, ids in (
        (Listing("t", "", "finished", ALWAYS), ["a"]),
        (Listing("t", "", "cancelled", ALWAYS), ["b"]),
        (Listing("", "x", "", ALWAYS), ["a", "b", "c"]),
        (Listing("t", "x", "cancelled", ALWAYS), ["b"]),
        (Listing("u", "x", "", ALWAYS), []),
    ):
        assert sorted(view.id for view in await everything(bucket, listing)) == ids


async def test_a_large_page_ends_early_and_goes_on(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{n}", body="x" * 900_000) for n in range(12)))
    listing = Listing("t", "", "ready", ALWAYS)
    sizes = [len(page) async for page in bucket.pages(listing, limit=100)]
    assert sizes == [4, 4, 4]
    reply = await bucket.store.call("take", 0, ["t", *ALWAYS, *(f"job-{n}" for n in range(12))])
    taken = len(reply.results)
    assert 0 < taken <= 4
    assert [len(await bucket.take(most=100)) for _ in range(4)] == [4, 4, 4 - taken, 0]


async def test_a_forecast_counts_what_falls_due_in_each_step(bucket: Bucket) -> None:
    start_ms = await bucket.now_ms() + HOUR_MS
    offsets = (0, 1, 99, 100, 250, 299, 300)
    await bucket.push(*(job(f"job-{n}", due_ms=start_ms + n, topic=f"t{n % 2}") for n in offsets))
    counts = await bucket.store.forecast(0, ["t0", "t1", "t2"], start_ms, 100, 3)
    assert counts == [3, 1, 2]


@pytest.mark.parametrize("scheduler", ["zset"])
@pytest.mark.parametrize("redis", ["redis"], indirect=True)
async def test_a_forecast_counts_no_steps_in_which_there_is_nothing(bucket: Bucket) -> None:
    start_ms, steps = await bucket.now_ms() + HOUR_MS, 1000
    topics = [f"t{n}" for n in range(100)]
    dues = [start_ms + n * steps // 100 for n in range(100)]
    jobs = (job(name, due_ms=due, topic=name) for name, due in zip(topics, dues, strict=True))
    await bucket.push(*jobs)
    before = await calls_of(bucket.redis, "zcount")
    counts = await bucket.store.forecast(0, [*topics, "none"], start_ms, 1, steps)
    assert counts == [int(start_ms + n in dues) for n in range(steps)]
    most = 100 * 3 * 10  # 2 ** 10 is more than the number of steps
    assert await calls_of(bucket.redis, "zcount") - before < most


async def test_no_job_is_missing_from_a_page_behind_which_others_were_taken(bucket: Bucket) -> None:
    await bucket.push(*(job(f"{n}") for n in range(10)))
    asked = ["t", "ready", *ALWAYS, "", "", 5]
    first = await bucket.store.call("range", 0, [*asked, "", ""])
    taken = {each.id for each in await bucket.take(most=3)}
    second = await bucket.store.call("range", 0, [*asked, first.results[0], ""])
    listed = {each.decode() for reply in (first, second) for each in reply.results[2][::3]}
    assert listed | taken == {f"{n}" for n in range(10)}


async def test_a_take_that_is_undone_leaves_the_result_of_a_later_job(bucket: Bucket) -> None:
    await bucket.push(job("a", retain_ms=HOUR_MS))
    [taken] = await bucket.take()
    await bucket.push(job("a", retain_ms=HOUR_MS, body="of its id"))
    await bucket.finish("a")
    await bucket.store.all_of(RESTORE, [taken])
    view = await bucket.view("a")
    assert (view.state, view.body) == ("finished", b"of its id")


@pytest.mark.usefixtures("poison")
async def test_a_job_whose_take_cannot_be_undone_is_told_lost(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b", topic="u"))
    taken = [*await bucket.take(), *await bucket.take(topic="u")]
    await bucket.spoil("done:t")
    assert await bucket.store.all_of(RESTORE, taken) == [True, False]
