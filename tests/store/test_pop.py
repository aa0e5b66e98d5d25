"""pop: reserves what is really ready, once."""

from typing import Final

import pytest

from delayqueue.store.types import Demand
from tests.store.bucket import (
    ALL_WANTED,
    HOUR_MS,
    LATER_MS,
    SOON_MS,
    STATES,
    Bucket,
    a_moment,
    job,
    later,
    on_one_store,
)

# of pop.lua
LIMIT_BYTES: Final = 4 << 20
LIMIT_LOOKS: Final = 2000
LIMIT_JOBS: Final = LIMIT_LOOKS // 7
LIMIT_OPTIONS: Final = LIMIT_LOOKS // 10  # jobs with options
CHUNK: Final = 32  # jobs that a call looks at together


async def test_a_popped_job_is_reserved_until_its_ttr_is_over(bucket: Bucket) -> None:
    await bucket.push(job("a", ttr_ms=HOUR_MS, body="x"))
    before_ms = await bucket.now_ms()
    popped = await bucket.pop_one()
    assert (popped.topic, popped.id, popped.body, popped.attempt) == ("t", "a", b"x", 1)
    assert await bucket.state("a") == "reserved"
    deadline_ms = await bucket.redis.zscore(bucket.key("reserved:t"), "a")
    assert deadline_ms is not None
    assert before_ms + HOUR_MS <= deadline_ms <= await bucket.now_ms() + HOUR_MS
    assert await bucket.pop() == []


async def test_jobs_come_in_the_order_in_which_they_became_ready(bucket: Bucket) -> None:
    ids = [f"job-{n}" for n in range(100)]
    await bucket.push(*map(job, ids))
    assert await bucket.pop_ids(wanted=30) == ids[:30]
    assert await bucket.pop_ids(wanted=33) == ids[30:63]
    assert await bucket.pop_ids() == ids[63:]


async def test_the_demands_of_one_call_share_what_is_there_in_their_order(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{n}") for n in range(5)))
    demands = [Demand(("t",), 2), Demand(("u", "t"), 2), Demand(("t",), 2), Demand(("t",), 2)]
    popped = await bucket.store.pop(0, demands)
    assert [[job.id for job in jobs] for jobs in popped.jobs] == [
        ["job-0", "job-1"],
        ["job-2", "job-3"],
        ["job-4"],
        [],
    ]
    assert popped.complete == 4


async def test_each_call_gives_another_nonce(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"), job("c"))
    first, second = await bucket.pop(wanted=2)
    third = await bucket.pop_one()
    assert first.nonce == second.nonce != third.nonce


@pytest.mark.parametrize("gone", ["delete", "finish", "bury", "replaced", "later", "elsewhere"])
async def test_ghosts_are_passed_over_and_do_not_count(bucket: Bucket, gone: str) -> None:
    ids = [f"job-{n}" for n in range(100)]
    await bucket.push(*map(job, ids))
    odd = ids[1::2]
    if gone == "replaced":
        await bucket.push(*map(job, odd))
    elif gone == "later":
        await bucket.push(*(job(i, delay_ms=HOUR_MS) for i in odd))
    elif gone == "elsewhere":
        await bucket.push(*(job(i, topic="u") for i in odd))
    else:
        await getattr(bucket, gone)(*odd)
    expected = 100 if gone == "replaced" else 50
    assert (await bucket.counts()).ready == expected
    assert len(await bucket.pop(wanted=20)) == 20
    assert (await bucket.counts()).ready == expected - 20
    popped = await bucket.pop_ids()
    assert len(popped) == len(set(popped)) == expected - 20
    assert (await bucket.counts()).ready == 0


async def test_a_job_that_has_expired_before_the_others_no_longer_counts(bucket: Bucket) -> None:
    await bucket.push(job("late", expire_ms=SOON_MS), job("b"), job("c"))
    await a_moment()
    assert await bucket.pop_ids(wanted=1) == ["b"]
    assert (await bucket.counts()).ready == 1


async def test_a_job_that_has_expired_ends_once_however_often_it_is_listed(bucket: Bucket) -> None:
    await bucket.push(*[job("late", expire_ms=SOON_MS)] * 5)
    await a_moment()
    reply = await bucket.store.call("pop", 0, ["nonce", 10, 0, 1, "t"])
    assert [each[:3] for each in reply.events] == [("expired", "t", 1)]


async def test_only_the_first_attempt_tells_how_late_it_is(bucket: Bucket) -> None:
    """A later one is as late as its retry schedule wants it."""
    await bucket.push(job("a"))
    told: list[tuple[int, int]] = []
    for _ in range(2):
        reply = await bucket.store.call("pop", 0, ["nonce", 1, 0, 1, "t"])
        delivered = [each[2:] for each in reply.events if each[0] == "delivered"]
        told += [(count, len(times_ms)) for count, times_ms in delivered]
        await bucket.release("a")
    assert told == [(1, 1), (1, 0)]


async def test_a_job_is_not_late_before_it_was_pushed(bucket: Bucket) -> None:
    """A client may push a job whose time is over, to have it at once."""
    began_ms = await bucket.now_ms()
    await bucket.push(job("a", due_ms=0))
    await later()
    reply = await bucket.store.call("pop", 0, ["nonce", 1, 0, 1, "t"])
    [late_ms] = [ms for each in reply.events if each[0] == "delivered" for ms in each[3]]
    assert LATER_MS <= late_ms <= await bucket.now_ms() - began_ms


async def test_a_list_of_ghosts_only_gives_nothing_and_is_gone(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{n}") for n in range(100)))
    await bucket.delete(*(f"job-{n}" for n in range(100)))
    assert await bucket.pop(wanted=1) == []
    assert await bucket.redis.exists(bucket.key("dq_queue_t"), bucket.key("ghosts")) == 0


@pytest.mark.parametrize("state", STATES)
async def test_an_id_that_stands_in_the_list_many_times_is_given_once(
    bucket: Bucket, state: str
) -> None:
    for _ in range(5):
        await bucket.push(job("a"))
    await bucket.put_in(state)
    assert len(await bucket.pop()) == (state == "ready")
    assert (await bucket.counts()).ready == 0


@pytest.mark.parametrize(
    ("tags", "most"),
    [((), LIMIT_JOBS + CHUNK), (("tag",), LIMIT_OPTIONS + CHUNK)],
    ids=["plain", "with options, which take longer"],
)
async def test_a_thousand_jobs_are_given_in_some_calls(
    bucket: Bucket, tags: tuple[str, ...], most: int
) -> None:
    ids = [f"job-{n}" for n in range(1000)]
    await bucket.push(*(job(each, tags=tags) for each in ids))
    popped: list[str] = []
    while len(popped) < len(ids):
        some = await bucket.pop_ids(wanted=1000)
        assert 100 < len(some) < most or len(popped) + len(some) == len(ids)
        popped += some
    assert popped == ids


@on_one_store
@pytest.mark.parametrize("body_bytes", [200_000, 1 << 20])
async def test_an_answer_that_would_grow_too_large_is_cut_and_says_so(
    bucket: Bucket, body_bytes: int
) -> None:
    for n in range(70):
        await bucket.push(job(f"job-{n}", body="x" * body_bytes))
    seen = []
    complete = 0
    demands = [Demand(("t",), 10), Demand(("t",), ALL_WANTED)]
    while complete < len(demands):
        popped = await bucket.store.pop(0, demands)
        complete = popped.complete
        found = [job for jobs in popped.jobs for job in jobs]
        assert sum(len(job.body) for job in found) <= LIMIT_BYTES
        seen += [job.id for job in found]
        assert len(seen) <= 70
    assert seen == [f"job-{n}" for n in range(70)]


async def test_a_job_that_is_larger_than_an_answer_comes_alone(bucket: Bucket) -> None:
    await bucket.push(job("first", body="x" * (LIMIT_BYTES + 1)), job("second"))
    assert await bucket.pop_ids() == ["first"]
    assert await bucket.pop_ids() == ["second"]


@on_one_store
async def test_a_call_hands_out_so_many_jobs_at_most_whatever_is_wanted(bucket: Bucket) -> None:
    for start in range(0, 5000, 1000):
        await bucket.push(*(job(f"job-{n}") for n in range(start, start + 1000)))
    demands = [Demand(("t",), ALL_WANTED)] * 160
    counts, complete = list[int](), 0
    while complete < len(demands):
        popped = await bucket.store.pop(0, demands)
        counts.append(sum(map(len, popped.jobs)))
        complete = popped.complete
    assert sum(counts) == 5000
    assert max(counts) < LIMIT_JOBS + 100


@on_one_store
async def test_a_call_passes_over_so_many_ghosts_at_most(bucket: Bucket) -> None:
    for start in range(0, 5000, 1000):
        ids = [f"job-{n}" for n in range(start, start + 1000)]
        await bucket.push(*map(job, ids))
        await bucket.delete(*ids)
    await bucket.push(job("last"))
    popped = await bucket.store.pop(0, [Demand(("t",), 1), Demand(("u",), 1)])
    assert (popped.jobs, popped.complete) == ([[], []], 0)
    left = await bucket.redis.llen(bucket.key("dq_queue_t"))
    assert 5001 - LIMIT_JOBS - 100 < left < 5001
    while not (found := await bucket.pop_ids()):
        pass
    assert found == ["last"]


async def test_a_call_looks_at_so_many_topics_at_most(bucket: Bucket) -> None:
    demand = Demand(tuple(f"empty-{n}" for n in range(64)), 1)
    popped = await bucket.store.pop(0, [demand] * 200)
    assert popped.complete == LIMIT_LOOKS // 64


async def test_a_paused_topic_gives_nothing_but_the_others_do(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b", topic="u"))
    await bucket.store.pause(0, "t", 0)
    assert await bucket.pop_ids("t", "u") == ["b"]
    change = await bucket.store.pause(0, "t", None)
    assert change.ready == [("t", 1)]
    assert await bucket.pop_ids("t", "u") == ["a"]


@pytest.mark.parametrize("retain_ms", [0, HOUR_MS])
async def test_a_job_that_has_expired_is_not_delivered_though_no_tick_has_ended_it(
    bucket: Bucket, retain_ms: int
) -> None:
    await bucket.push(job("late", expire_ms=SOON_MS, retain_ms=retain_ms), job("good"))
    await a_moment()
    assert await bucket.pop_ids() == ["good"]
    assert await bucket.state("late") == ("expired" if retain_ms else None)
    await bucket.tick()
    assert (await bucket.counts()).ready == 0
