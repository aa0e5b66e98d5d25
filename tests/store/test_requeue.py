"""requeue: a reservation whose client has vanished is undone, as if it had never been made."""

from dataclasses import replace
from typing import Any, Final

import pytest

from delayqueue.domain.job import Reserved
from delayqueue.errors import Code
from delayqueue.store.types import Recording
from delayqueue.store.verbs import RECORD, Requeue
from tests.store.bucket import HOUR_MS, SOON_MS, Bucket, a_moment, job
from tests.store.turning import Clock, coarse


async def test_a_job_goes_back_to_the_head_of_its_list_uncounted(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    await bucket.requeue(await bucket.pop_one())
    view = await bucket.view("a")
    assert (view.state, view.attempt, view.started_ms) == ("ready", 0, None)
    first, second = await bucket.pop()
    assert [(first.id, first.attempt), (second.id, second.attempt)] == [("a", 1), ("b", 1)]


async def test_many_jobs_go_back_in_their_order(bucket: Bucket) -> None:
    ids = [f"job-{n}" for n in range(100)]
    await bucket.push(*map(job, ids))
    await bucket.requeue(*await bucket.pop(wanted=60))
    assert await bucket.pop_ids() == ids


async def test_those_who_wait_hear_of_what_came_back(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"), job("c", topic="u"))
    popped = await bucket.pop("t", "u")
    returns = [Requeue(job.id, job.nonce) for job in popped]
    _, change = await bucket.store.requeue(0, returns)
    assert sorted(change.ready) == [("t", 2), ("u", 1)]


async def test_what_is_said_of_a_lost_client_is_kept_and_no_attempt(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    for _ in range(2):
        popped = await bucket.pop_one()
        returns = [Requeue("a", popped.nonce, "connection lost")]
        await bucket.store.requeue(0, returns)
    view = await bucket.view("a")
    assert (view.attempt, view.attempts, view.message) == (0, (), "connection lost")
    assert view.remarks == ("connection lost", "connection lost")


@pytest.mark.parametrize("has_worked", [False, True])
async def test_a_job_that_a_lost_client_had_comes_before_the_others_of_a_strict_group(
    bucket: Bucket, *, has_worked: bool
) -> None:
    """Although others are more urgent; so does one that a subscriber has worked on."""
    await bucket.store.limit(0, "t", {"group_order": True})
    await bucket.push(job("a", texts={"group": "g"}))
    popped = await bucket.pop_one()
    await bucket.push(job("urgent", texts={"group": "g"}, priority=0))
    if has_worked:
        done = Recording(
            "a",
            popped.nonce,
            "its name",
            succeeded=True,
            message="",
            attempts=1,
            took_ms=0,
            delay_ms=None,
        )
        await bucket.store.all_of(RECORD, [done])
    returned = Requeue("a", popped.nonce, was_told=not has_worked)
    await bucket.store.requeue(0, [returned])
    assert await bucket.pop_ids() == ["a"]
    await bucket.finish("a")
    assert await bucket.pop_ids() == ["urgent"]


EARLY: Final = {"its usual priority": {}, "a priority": {"priority": 7}}


@pytest.mark.parametrize("options", EARLY.values(), ids=EARLY)
async def test_a_job_that_was_reserved_by_its_id_goes_back_to_its_time(
    bucket: Bucket, options: dict[str, Any]
) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS, expire_ms=HOUR_MS, tags=("x",), **options))
    before = await bucket.view("a")
    held = await reserved_by_id(bucket)
    looked, change = await bucket.store.requeue(0, [Requeue("a", held.nonce)])
    assert (looked, change.ready) == (1, [])
    assert change.next_due_ms is not None
    assert HOUR_MS - 60_000 < change.next_due_ms <= HOUR_MS
    assert await bucket.view("a") == before
    assert await bucket.pop() == []
    assert await bucket.kick("a") == [Code.OK]
    assert await bucket.pop_ids() == ["a"]


@pytest.mark.parametrize("was_delayed", [True, False])
async def test_a_dead_letter_that_was_reserved_by_its_id_is_buried_again(
    bucket: Bucket, *, was_delayed: bool
) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS if was_delayed else 0))
    await bucket.bury("a", message="why")
    before = await bucket.view("a")
    await bucket.requeue(await reserved_by_id(bucket))
    assert replace(await bucket.view("a"), started_ms=None) == before
    assert await bucket.pop() == []


async def test_who_says_when_may_let_a_job_go_before_its_time(bucket: Bucket) -> None:
    """At once, it is due: a client that is gone by then gives it back to the others, not to its time."""
    await bucket.push(job("a", delay_ms=HOUR_MS))
    await reserved_by_id(bucket)
    assert (await bucket.release("a", delay_ms=0)).code == Code.OK
    await bucket.requeue(await bucket.pop_one())
    assert await bucket.state("a") == "ready"
    await bucket.pop_one()
    assert (await bucket.release("a", delay_ms=SOON_MS)).code == Code.OK
    await a_moment()
    await bucket.tick()
    assert await bucket.pop_ids() == ["a"]


async def reserved_by_id(bucket: Bucket) -> Reserved:
    [(_, held)], _ = await bucket.store.reserve(0, ["a"])
    assert held is not None
    return held


@coarse
async def test_a_job_that_expired_while_it_was_reserved_ends_when_it_is_put_back(
    wheel: Bucket, clock: Clock
) -> None:
    await wheel.push(job("a", expire_ms=1000))
    held = await wheel.pop_one()
    clock.pass_ms(1000)
    await wheel.tick()
    assert await wheel.state("a") == "reserved"
    await wheel.requeue(held)
    await wheel.tick()
    assert await wheel.state("a") is None
