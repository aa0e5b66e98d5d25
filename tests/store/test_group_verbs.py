"""What the verbs do to jobs of groups that are held, come first after a failure, or are in hand."""

from collections import Counter
from typing import Any, Final

import pytest

from delayqueue.domain.job import PolledTopic
from delayqueue.errors import Code
from delayqueue.store.types import Demand, Range
from delayqueue.store.verbs import RESTORE
from tests.store.bucket import HOUR_MS, SOON_MS, Bucket, a_moment, job
from tests.store.test_groups import limit, many, of, one_by_one

LIMITS: Final[list[dict[str, Any]]] = [{"group_concurrency": 1}, {"group_order": True}]


async def held_up(bucket: Bucket) -> None:
    """A strict order: `first` waits an hour for its retry, `second` waits for it."""
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "first"), of("a", "second"))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    assert (held.id, await bucket.pop()) == ("first", [])


async def test_a_pop_from_several_topics_takes_what_the_groups_of_each_may_have(
    bucket: Bucket,
) -> None:
    for topic, most in (("t", 2), ("u", 3)):
        await bucket.store.limit(0, topic, {"group_concurrency": most})
    groups = [("t", "a"), ("t", "b"), ("u", "a"), ("v", "a")]
    jobs = [
        of(group, f"{topic}{group}{n}", topic=topic) for topic, group in groups for n in range(5)
    ]
    await bucket.push(*jobs, *(job(f"t-{n}") for n in range(5)))
    found = Counter(each[:2] for each in await bucket.pop_ids("t", "u", "v", wanted=100))
    assert found == {"ta": 2, "tb": 2, "t-": 5, "ua": 3, "va": 5}
    assert await bucket.pop_ids("u", "t", "v") == []
    await bucket.finish("ta0", "ua0")
    assert {*await bucket.pop_ids("u", "t", "v")} == {"ta2", "ua3"}


async def test_a_pop_by_priority_passes_over_a_topic_whose_groups_are_held(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2, priority=1), job("usual", topic="u"))
    await bucket.pop_one()
    for wanted in (["usual"], []):
        popped = await bucket.store.pop(0, [Demand(("t", "u"), 1, by_priority=True)])
        assert [each.id for each in popped.jobs[0]] == wanted


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_take_gets_held_jobs_and_leaves_the_others_held(
    bucket: Bucket, limits: dict[str, Any]
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 4))
    held = await bucket.pop_one()
    assert await bucket.pop() == []
    assert [each.id for each in await bucket.take(most=2)] == ["a1", "a2"]
    assert await bucket.pop() == []
    assert len(await bucket.take()) == 1
    assert (await bucket.counts()).groups_held == 0
    await bucket.finish(held.id)
    await bucket.push(of("a", "next"))
    assert await bucket.pop_ids() == ["next"]


@pytest.mark.parametrize("group", ["b", None])
@pytest.mark.parametrize("limits", LIMITS)
async def test_a_push_takes_a_held_job_out_of_its_group(
    bucket: Bucket, limits: dict[str, Any], group: str | None
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 3))
    await bucket.pop_one()
    assert await bucket.pop() == []
    await bucket.push(of(group, "a1") if group else job("a1"))
    assert await bucket.pop_ids() == ["a1"]
    await bucket.finish("a0")
    assert await bucket.pop_ids() == ["a2"]


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_push_takes_a_job_in_hand_out_of_its_group(
    bucket: Bucket, limits: dict[str, Any]
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 2), of("b", "b0"))
    in_hand = {each.id: each for each in await bucket.pop()}
    assert in_hand.keys() == {"a0", "b0"}
    await bucket.push(of("b", "a0"))
    assert await bucket.pop_ids() == ["a1"]
    assert await bucket.finish("a0", nonce=in_hand["a0"].nonce) == [Code.STALE_RECEIPT]
    await bucket.finish("b0")
    assert await bucket.pop_ids() == ["a0"]


@pytest.mark.parametrize("plan", [{"delay_ms": 2 * HOUR_MS}, {"by_ms": -5}, {"priority": 5000}])
async def test_a_retry_that_is_moved_still_comes_first(
    bucket: Bucket, plan: dict[str, int]
) -> None:
    await held_up(bucket)
    await bucket.change("first", **plan)
    assert await bucket.pop() == []
    await bucket.change("first", delay_ms=0)
    await bucket.tick()
    assert await one_by_one(bucket, 2) == ["first"]


async def test_a_dead_letter_that_is_kicked_goes_in_its_order_and_holds_up_nobody(
    bucket: Bucket,
) -> None:
    await held_up(bucket)
    await bucket.bury("first")
    await a_moment()
    await bucket.kick("first")
    for job_id in ("second", "first"):
        assert await bucket.pop_ids() == [job_id]
        await bucket.finish(job_id)


async def test_a_first_job_that_expires_when_its_turn_comes_lets_the_next_go(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "first", expire_ms=SOON_MS), of("a", "second"))
    await a_moment()
    assert await bucket.pop_ids() == ["second"]


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_pause_and_its_end_change_nothing_about_held_groups(
    bucket: Bucket, limits: dict[str, Any]
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 2), of("b", "b0"))
    held = await bucket.pop_one()
    await bucket.store.pause(0, "t", 0)
    assert await bucket.pop() == []
    change = await bucket.store.pause(0, "t", None)
    assert dict(change.ready)["t"] > 0
    assert await bucket.pop_ids() == ["b0"]
    await bucket.store.pause(0, "t", 0)
    await bucket.finish(held.id)
    assert await bucket.pop() == []
    await bucket.store.pause(0, "t", None)
    assert await bucket.pop_ids() == ["a1"]


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_limit_that_is_set_again_counts_what_came_in_hand_without_it(
    bucket: Bucket, limits: dict[str, Any]
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 4))
    assert await bucket.pop_ids() == ["a0"]
    await limit(bucket, **dict.fromkeys(limits))
    assert await one_by_one(bucket, 2) == ["a1", "a2"]
    await limit(bucket, **limits)
    for job_id in ("a0", "a1"):
        assert await bucket.pop() == []
        await bucket.finish(job_id)
    assert await bucket.pop() == []
    await bucket.finish("a2")
    assert await bucket.pop_ids() == ["a3"]


async def test_an_order_that_is_set_again_still_waits_for_the_retry(bucket: Bucket) -> None:
    await held_up(bucket)
    await limit(bucket, group_order=None)
    await limit(bucket, group_order=True)
    assert await bucket.pop() == []
    await limit(bucket, group_order=None)
    assert await bucket.pop_ids() == ["second"]


async def test_who_waits_for_a_held_job_hears_that_the_one_before_was_taken(
    bucket: Bucket,
) -> None:
    await held_up(bucket)
    heard: list[tuple[int, PolledTopic, int]] = []
    bucket.store.on_ready(lambda *news: heard.append(news))
    due_ms = (await bucket.view("first")).due_ms
    assert [each.id for each in await bucket.take(Range(due_ms, due_ms))] == ["first"]
    assert heard == [(0, "t", 1)]
    assert await bucket.pop_ids() == ["second"]


@pytest.mark.parametrize("is_kicked", [False, True])
async def test_a_take_that_nobody_got_leaves_a_retry_first(
    bucket: Bucket, *, is_kicked: bool
) -> None:
    await held_up(bucket)
    if is_kicked:  # its retry schedule starts over
        await bucket.kick("first")
    taken = {each.id: each for each in await bucket.take()}
    assert taken.keys() == {"first", "second"}
    await bucket.store.all_of(RESTORE, [taken["first"]])
    await bucket.tick()
    await bucket.push(of("a", "urgent", priority=0))
    assert await bucket.pop_ids() == (["first"] if is_kicked else [])
