"""push with max_wait: pushes that replace each other put the job off no longer than that."""

from typing import Any

import pytest

from tests.store.bucket import HOUR_MS, STATES, Bucket, a_moment, job

DAY_MS = 24 * HOUR_MS


async def due_ms(bucket: Bucket) -> int:
    return (await bucket.view("a")).due_ms


async def test_a_job_is_due_by_its_max_wait_after_the_first_push(bucket: Bucket) -> None:
    for delay_ms in (2 * HOUR_MS, 3 * HOUR_MS, DAY_MS):
        await bucket.push(job("a", delay_ms=delay_ms, max_wait_ms=HOUR_MS, body=str(delay_ms)))
        if delay_ms == 2 * HOUR_MS:
            first_ms = (await bucket.view("a")).created_ms
        await a_moment()
        view = await bucket.view("a")
        assert (view.due_ms, view.body) == (first_ms + HOUR_MS, b"%d" % delay_ms)


async def test_a_job_whose_wait_is_not_over_is_due_after_its_delay(bucket: Bucket) -> None:
    for _ in range(3):
        await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=DAY_MS))
        view = await bucket.view("a")
        assert view.due_ms == view.created_ms + HOUR_MS
        await a_moment()


async def test_a_due_time_is_bounded_like_a_delay(bucket: Bucket) -> None:
    now_ms = await bucket.now_ms()
    await bucket.push(job("a", due_ms=now_ms + DAY_MS, max_wait_ms=HOUR_MS))
    view = await bucket.view("a")
    assert view.due_ms == view.created_ms + HOUR_MS
    await bucket.push(job("a", due_ms=now_ms + 5, max_wait_ms=HOUR_MS))
    assert await due_ms(bucket) == now_ms + 5


async def test_a_job_whose_wait_is_over_is_ready_at_each_push(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=HOUR_MS), job("b"))
    await a_moment()
    for body in "12":
        last = job("a", delay_ms=HOUR_MS, max_wait_ms=1, body=body, expire_ms=HOUR_MS)
        await bucket.push(last)
        assert await bucket.state("a") == "ready"
    assert [popped.body for popped in await bucket.pop()] == [b"body", b"2"]


async def test_a_ready_job_that_is_pushed_again_keeps_its_place(bucket: Bucket) -> None:
    """Otherwise changes that never stop would keep it from the head of a long list."""
    await bucket.push(job("a", max_wait_ms=1), job("b"))
    await a_moment()
    await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=1))
    assert await bucket.pop_ids() == ["a", "b"]


@pytest.mark.parametrize("priority", [0, 5])
async def test_a_ready_job_with_a_priority_keeps_its_place_among_its_equals(
    bucket: Bucket, priority: int
) -> None:
    wait: dict[str, Any] = {"max_wait_ms": 1, "delay_ms": 1, "priority": priority}
    await bucket.push(job("a", **wait))
    await a_moment()
    await bucket.push(job("a", **wait))
    await bucket.push(job("b", priority=priority))
    await a_moment()
    await bucket.push(job("a", **wait))
    await bucket.tick()
    assert await bucket.pop_ids() == ["a", "b"]


async def test_a_job_that_waited_too_long_expires_as_if_it_had_been_pushed_late(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a", delay_ms=1))
    await a_moment()
    before_ms = await bucket.now_ms()
    await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=1, expire_ms=HOUR_MS))
    view = await bucket.view("a")
    assert view.due_ms < before_ms <= view.expire_ms - HOUR_MS <= await bucket.now_ms()


async def test_the_first_push_counts_without_a_max_wait_too(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS))
    first_ms = (await bucket.view("a")).created_ms
    await a_moment()
    await bucket.push(job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS))
    assert await due_ms(bucket) == first_ms + HOUR_MS


async def test_a_push_without_max_wait_puts_the_job_off_as_ever(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=HOUR_MS))
    await a_moment()
    await bucket.push(job("a", delay_ms=DAY_MS))
    view = await bucket.view("a")
    assert view.due_ms == view.created_ms + DAY_MS


@pytest.mark.parametrize("state", [*STATES, "failed", "ended"])
async def test_a_job_that_somebody_had_begins_a_new_run(bucket: Bucket, state: str) -> None:
    options: dict[str, Any] = {"max_wait_ms": HOUR_MS, "retain_ms": HOUR_MS}
    if state in STATES:
        await bucket.put_in(state, **options)
    else:
        await bucket.push(job("a", **options))
    first_ms = (await bucket.view("a")).created_ms
    if state == "failed":
        popped = await bucket.pop_one()
        await bucket.release("a", nonce=popped.nonce, delay_ms=HOUR_MS)
    if state == "ended":
        await bucket.finish("a")
    await a_moment()
    await bucket.push(job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS))
    view = await bucket.view("a")
    is_the_same_run = state in {"delayed", "ready"}
    assert view.due_ms == (first_ms if is_the_same_run else view.created_ms) + HOUR_MS


async def test_one_that_was_buried_unseen_and_kicked_goes_on_with_its_run(bucket: Bucket) -> None:
    await bucket.push(job("a", max_wait_ms=HOUR_MS))
    first_ms = (await bucket.view("a")).created_ms
    await bucket.bury("a")
    await bucket.kick("a")
    await a_moment()
    await bucket.push(job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS))
    assert (await bucket.view("a")).due_ms == first_ms + HOUR_MS


async def test_a_delivery_that_reached_nobody_begins_no_new_run(bucket: Bucket) -> None:
    await bucket.push(job("a", max_wait_ms=HOUR_MS))
    first_ms = (await bucket.view("a")).created_ms
    await bucket.requeue(await bucket.pop_one())
    await a_moment()
    await bucket.push(job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS))
    assert await due_ms(bucket) == first_ms + HOUR_MS


async def test_a_repeated_push_with_its_key_changes_nothing(bucket: Bucket) -> None:
    repeated = job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS, texts={"idempotency_key": "k"})
    await bucket.push(repeated)
    before = await bucket.view("a")
    await a_moment()
    await bucket.push(repeated)
    assert await bucket.view("a") == before


async def test_another_priority_or_due_time_does_not_forget_the_first_push(bucket: Bucket) -> None:
    await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=HOUR_MS))
    first_ms = (await bucket.view("a")).created_ms
    await bucket.change("a", delay_ms=DAY_MS, priority=5)
    await a_moment()
    await bucket.push(job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS))
    assert await due_ms(bucket) == first_ms + HOUR_MS


async def test_of_an_id_twice_in_one_call_the_first_counts(bucket: Bucket) -> None:
    again = job("a", delay_ms=DAY_MS, max_wait_ms=HOUR_MS)
    await bucket.push(again, again, job("b", delay_ms=DAY_MS, max_wait_ms=HOUR_MS))
    assert await due_ms(bucket) == (await bucket.view("b")).due_ms


async def test_one_that_is_ready_keeps_its_place_beside_others_that_are_due_and_not_moved(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a", max_wait_ms=1), *(job(f"b{n}") for n in range(3)))
    await bucket.push(job("soon", delay_ms=1))
    await a_moment()
    await bucket.push(job("a", delay_ms=HOUR_MS, max_wait_ms=1))
    assert await bucket.pop_ids(wanted=1) == ["a"]


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("scheduler", ["wheel"])
async def test_a_broken_slot_of_its_last_moment_refuses_that_job_alone(bucket: Bucket) -> None:
    now_ms = await bucket.now_ms()
    await bucket.push(job("known"))
    await bucket.spoil(*(f"slot:{(now_ms // 1000 + 1800 + n) % 3600}:t" for n in range(-2, 60)))
    late = job("a", due_ms=now_ms + 2 * HOUR_MS + 60_000, max_wait_ms=HOUR_MS // 2)
    codes = await bucket.push(job("other", topic="u"), late)
    assert (codes, await bucket.pop_ids("u")) == ([0, 6], ["other"])
