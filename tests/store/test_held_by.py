"""What holds up a ready job whose group may have no more jobs in hand is told of it, by get, list and find."""

from typing import Any, Final

import pytest

from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.jobs import HeldBy
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import CALLS, State
from delayqueue.store.listings import PIECE_BYTES, Filters, Listings, Wanted
from delayqueue.store.types import Listing
from delayqueue.store.verbs import GET
from tests.store.bucket import (
    ALWAYS,
    HOUR_MS,
    LATER_MS,
    Bucket,
    job,
    later,
    on_one_store,
)
from tests.store.contents import snapshot
from tests.store.test_groups import CALL, ENDS, GONE, ended_by, limit, many, of

LIMITS: Final = ({"group_concurrency": 1}, {"group_order": True})


async def held_by(bucket: Bucket, job_id: str) -> HeldBy | None:
    return (await bucket.view(job_id)).held_by


async def name_of(bucket: Bucket, job_id: str) -> str | None:
    """The id of what holds the job up."""
    told = await held_by(bucket, job_id)
    return told.id if told else None


async def deadline_of(bucket: Bucket, job_id: str) -> float:
    """In unix seconds."""
    found: Any = await bucket.redis.zscore(bucket.key("reserved:t"), job_id)
    return int(found) / 1000


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_job_in_hand_holds_up_the_others_of_its_group(
    bucket: Bucket, limits: dict[str, Any]
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 3), *many("b", 1), job("x"), of("a", "later", delay_ms=HOUR_MS))
    held = await bucket.pop_one()
    expected = HeldBy("a0", State.RESERVED, await deadline_of(bucket, "a0"))
    assert held.id == "a0"
    for each in "a1", "a2":
        assert await held_by(bucket, each) == expected
    for other in "a0", "b0", "x", "later":
        assert await held_by(bucket, other) is None


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("limits", LIMITS)
async def test_what_ends_the_reservation_ends_that_unless_the_group_waits_for_the_retry(
    bucket: Bucket, limits: dict[str, Any], how: str
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 2))
    held = await bucket.pop_one()
    await ended_by(bucket, how, held)
    is_retried = how == "release" and "group_order" in limits
    told = await held_by(bucket, "a1")
    if is_retried:
        due_ms = (await bucket.view("a0")).ready_ms
        assert told == HeldBy("a0", State.DELAYED, due_ms / 1000)
    else:
        assert told is None


async def test_a_retry_that_is_ready_goes_first_and_holds_up_nobody(bucket: Bucket) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(*many("a", 2))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=LATER_MS)
    assert await name_of(bucket, "a1") == "a0"
    await later()
    await bucket.tick()
    assert await name_of(bucket, "a0") is None
    assert await name_of(bucket, "a1") is None  # it only waits for its turn, as before
    assert await bucket.pop_ids() == ["a0"]
    assert await name_of(bucket, "a1") == "a0"


@pytest.mark.parametrize("how", GONE)
async def test_a_retry_that_is_no_more_holds_up_nobody(bucket: Bucket, how: str) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "first", expire_ms=LATER_MS), of("a", "second"))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    assert await name_of(bucket, "second") == "first"
    await GONE[how](bucket)
    assert await name_of(bucket, "second") is None


async def test_of_several_in_hand_the_one_whose_reservation_ends_first_is_told(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_concurrency=3)
    await bucket.push(*many("a", 3), of("a", "a3"))
    await bucket.pop()
    for each, ttr_ms in ("a0", 3 * HOUR_MS), ("a1", HOUR_MS // 2), ("a2", 2 * HOUR_MS):
        await bucket.touch(each, ttr_ms=ttr_ms)
    assert await held_by(bucket, "a3") == HeldBy(
        "a1", State.RESERVED, await deadline_of(bucket, "a1")
    )
    await bucket.finish("a1")
    assert await held_by(bucket, "a3") is None


async def test_without_limits_of_groups_nobody_is_held_up(bucket: Bucket) -> None:
    await limit(bucket, concurrency=1)
    await bucket.push(*many("a", 2))
    await bucket.pop_one()
    assert await bucket.pop() == []
    assert await held_by(bucket, "a1") is None
    await limit(bucket, group_concurrency=1)
    assert await name_of(bucket, "a1") == "a0"
    await limit(bucket, group_concurrency=None)
    assert await held_by(bucket, "a1") is None


async def test_a_job_of_a_worker_is_held_up_by_one_with_a_call_that_failed(bucket: Bucket) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "call", call=CALL), of("a", "next", call=CALL), of("a", "plain"))
    [held] = await bucket.pop(CALLS)
    await bucket.release(held.id, nonce=held.nonce, delay_ms=LATER_MS)
    assert await name_of(bucket, "plain") == "call"
    await later()
    await bucket.tick()
    views = await bucket.store.get(0, ["call", "plain", "next"])
    told = [view and view.held_by for view in views]
    assert told == [None, HeldBy("call", State.READY, None), None]


async def test_one_that_was_reserved_by_its_id_holds_up_the_retry_too(bucket: Bucket) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(*many("a", 3))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=0)
    assert await name_of(bucket, "a0") is None
    await bucket.store.reserve(0, ["a2"])
    assert [await name_of(bucket, each) for each in ("a0", "a1")] == ["a2", "a2"]
    assert await bucket.pop() == []


async def test_what_an_older_version_has_ended_holds_up_nobody(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2))
    await bucket.pop_one()
    await bucket.redis.zrem(bucket.key("reserved:t"), "a0")
    for name in "run", "job", "priorities":
        await bucket.redis.hdel(bucket.key(name), "a0")
    before = (await snapshot(bucket.redis)).values
    assert await held_by(bucket, "a1") is None
    assert (await snapshot(bucket.redis)).values == before
    assert await bucket.pop_ids() == ["a1"]


@pytest.mark.parametrize(
    "what",
    [Listing("t", "", "", ALWAYS), Listing("t", "", "ready", ALWAYS), Listing("", "x", "", ALWAYS)],
)
async def test_lists_tell_it_of_each_job_and_change_nothing(bucket: Bucket, what: Listing) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 5, tags=("x",)), *many("b", 1, tags=("x",)), job("c", tags=("x",)))
    await bucket.pop_one()
    before = (await snapshot(bucket.redis)).values
    views = [view async for page in bucket.pages(what, 3) for view in page]
    told = {view.id: view.held_by and view.held_by.id for view in views if view.state == "ready"}
    assert told == {f"a{n}": "a0" for n in range(1, 5)} | {"b0": None, "c": None}
    assert (await snapshot(bucket.redis)).values == before


async def test_find_tells_it_too(bucket: Bucket) -> None:
    await limit(bucket, group_order=True)
    long = "b" * (PIECE_BYTES + 1)  # of such texts, all jobs are read once more
    await bucket.push(*many("a", 3, body=long), job("x", body=long))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    search = Listings(bucket.store, EVERYWHERE)
    expected = HeldBy("a0", State.DELAYED, (await bucket.view("a0")).ready_ms / 1000)
    for wanted in Wanted("", "", "t"), Wanted("", long, "t"):
        hits = (await search.find(wanted, 10, "", Filters())).jobs
        told = {hit.id: hit.held_by for hit in hits}
        assert told == {"a0": LEFT_OUT, "a1": expected, "a2": expected, "x": LEFT_OUT}


@pytest.mark.parametrize("key", ["hand:t", "first:t", "topics"])
@pytest.mark.usefixtures("poison")
async def test_a_broken_key_prevents_no_answer(bucket: Bucket, key: str) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(*many("a", 2))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    assert await name_of(bucket, "a1") == "a0"
    await bucket.redis.delete(bucket.key(key))
    await bucket.spoil(key)
    assert (await bucket.view("a1")).state == "ready"


@on_one_store
async def test_a_page_of_one_group_costs_little_more_than_one_without_groups(
    bucket: Bucket,
) -> None:
    """The store counts the work of a call, and ends it when it has done enough."""
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 400), *(job(f"x{n}", priority=1) for n in range(400)))
    await bucket.pop_one()
    done: list[int] = []
    for letter in "xa":
        views, _ = await bucket.store.run_verb(GET, 0, [f"{letter}{n}" for n in range(400)])
        done.append(len(views))
    plain, grouped = done
    assert 0.9 * plain <= grouped < 400
