"""get: all that is known about a job."""

import pytest

from delayqueue.store.verbs import GET
from tests.store.bucket import HOUR_MS, STATES, Bucket, a_moment, job


async def test_an_unknown_id_is_none_in_its_place(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    views = await bucket.store.get(0, ["a", "x", "b", "a"])
    assert [view and view.id for view in views] == ["a", None, "b", "a"]


@pytest.mark.parametrize("state", STATES)
async def test_every_state_is_told(bucket: Bucket, state: str) -> None:
    await bucket.put_in(state, topic="u", body="x", ttr_ms=1234, tags=("y", "z"))
    view = await bucket.view("a")
    assert (view.topic, view.id, view.body, view.ttr_ms) == ("u", "a", b"x", 1234)
    assert (view.state, view.tags) == (state, ("y", "z"))
    assert (view.attempt, view.ended_ms) == (int(state == "reserved"), None)


async def test_the_times_of_a_life_are_told(bucket: Bucket) -> None:
    t0_ms = await bucket.now_ms()
    await bucket.push(job("a", delay_ms=1, retain_ms=HOUR_MS))
    await a_moment()
    await bucket.tick()
    await bucket.pop_one()
    await a_moment()
    await bucket.finish("a")
    view = await bucket.view("a")
    assert view.started_ms is not None
    assert view.ended_ms is not None
    assert t0_ms <= view.created_ms < view.due_ms < view.started_ms < view.ended_ms


async def test_a_call_reads_some_of_many_jobs_and_the_next_ones_the_rest(bucket: Bucket) -> None:
    ids = [f"job-{n}" for n in range(1000)]
    await bucket.push(*map(job, ids))
    assert 0 < len(await bucket.store.get(0, ids)) < len(ids)
    views = await bucket.store.all_of(GET, ids)
    assert [view.id for view in views if view] == ids
