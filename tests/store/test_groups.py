"""Groups take turns; within a group the smallest priority goes first, of equal ones the first that was due."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS, USUAL_PRIORITY, Job, PolledTopic, Reserved
from delayqueue.errors import Code
from delayqueue.store import paging
from delayqueue.store.types import Demand, Listing
from delayqueue.store.verbs import Ending
from tests.store.bucket import (
    ALWAYS,
    BUCKET,
    HOUR_MS,
    LATER_MS,
    SOON_MS,
    Bucket,
    a_moment,
    job,
    later,
    on_one_store,
    on_zset,
    with_functions,
)
from tests.waiting import until_async

CALL: Final = Call(url="http://x/")


def of(group: str, job_id: str, **options: Any) -> Job:
    return job(job_id, texts={"group": group}, **options)


def many(group: str, count: int, **options: Any) -> list[Job]:
    return [of(group, f"{group}{n}", **options) for n in range(count)]


async def one_by_one(bucket: Bucket, count: int, *topics: PolledTopic) -> list[str]:
    """The ids of pops of one job each."""
    return [job_id for _ in range(count) for job_id in await bucket.pop_ids(*topics, wanted=1)]


async def limit(bucket: Bucket, **changes: Any) -> None:
    await bucket.store.limit(0, "t", changes)


async def test_groups_take_turns(bucket: Bucket) -> None:
    await bucket.push(*many("a", 5), *many("b", 3), *many("c", 1))
    found = await one_by_one(bucket, 9)
    assert found == ["a0", "b0", "c0", "a1", "b1", "a2", "b2", "a3", "a4"]


async def test_a_group_with_one_job_goes_next_whatever_another_has_waiting(bucket: Bucket) -> None:
    await bucket.push(*many("heavy", 50))
    assert await one_by_one(bucket, 3) == ["heavy0", "heavy1", "heavy2"]
    await bucket.push(of("light", "light"))
    assert await one_by_one(bucket, 2) == ["light", "heavy3"]


EVENTS: Final = (
    "paid?",
    "created",
    "z",
    "a",
)  # neither their order nor their lengths are those of the pushes


@pytest.mark.parametrize("delay_ms", [0, SOON_MS])
async def test_pushes_of_one_call_keep_their_order_where_it_is_strict(
    bucket: Bucket, delay_ms: int
) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(*(of("order", each, delay_ms=delay_ms) for each in EVENTS))
    await a_moment()  # else those that come first are ready alone
    found: list[str] = []

    async def are_all() -> bool:
        await bucket.tick()
        for each in await bucket.pop("t", wanted=1):
            found.append(each.id)
            await bucket.finish(each.id)
        return len(found) == len(EVENTS)

    await until_async(are_all)
    assert found == [*EVENTS]


async def another_limit(bucket: Bucket) -> None:
    await bucket.store.limit(0, "another", {"group_concurrency": 1})


async def more_than_a_second(_: Bucket) -> None:
    await asyncio.sleep(1.1)


@with_functions
@pytest.mark.parametrize("what_happens", [another_limit, more_than_a_second])
async def test_more_pushes_than_there_are_ms_keep_their_order_where_it_is_strict(
    bucket: Bucket, what_happens: Callable[[Bucket], Awaitable[None]]
) -> None:
    """The times that are noted for them are ahead of the clock."""
    await limit(bucket, group_order=True)
    await bucket.push(*many("a", 4000, due_ms=1))
    await what_happens(bucket)
    await bucket.push(of("a", "last", due_ms=1))
    ranks: list[Any] = await bucket.redis.zrange(f"{BUCKET}:grouped:t", -1, -1)
    assert [rank[-4:] for rank in ranks] == [b"last"]


async def test_jobs_without_a_group_have_a_turn_like_a_group(bucket: Bucket) -> None:
    await bucket.push(
        *many("a", 3), *(job(f"{n}", priority=p) for n, p in ((1, 5), (2, 1024), (3, 9999)))
    )
    assert await one_by_one(bucket, 6) == ["a0", "1", "a1", "2", "a2", "3"]


async def test_one_that_comes_again_after_its_turn_waits_for_the_others(bucket: Bucket) -> None:
    await bucket.push(*many("a", 4), *many("b", 4), of("quick", "q0"))
    assert await one_by_one(bucket, 3) == ["a0", "b0", "q0"]
    await bucket.push(of("quick", "q1"))
    assert await one_by_one(bucket, 1) == ["a1"]
    await bucket.push(of("quick", "q2"))
    assert {*await one_by_one(bucket, 2)} == {"b1", "q1"}
    assert len(await bucket.pop_ids()) == 5


@pytest.mark.parametrize("delay_ms", [0, SOON_MS])
async def test_a_pop_of_many_gives_each_group_a_share(bucket: Bucket, delay_ms: int) -> None:
    await bucket.push(*many("a", 60, delay_ms=delay_ms), *many("b", 60), *many("c", 5))
    await a_moment()
    await bucket.tick()
    shares = Counter(each.strip("0123456789") for each in await bucket.pop_ids(wanted=40))
    assert (shares["c"], shares.total()) == (5, 40)
    assert min(shares["a"], shares["b"]) >= 10
    assert len(await bucket.pop_ids()) == 85


async def test_one_group_is_read_in_chunks(bucket: Bucket) -> None:
    jobs = many("a", 70)
    await bucket.push(*jobs)
    assert await bucket.pop_ids() == [each.id for each in jobs]


async def test_within_a_group_priorities_count_then_due_times(bucket: Bucket) -> None:
    await bucket.push(
        of("a", "late", due_ms=2000),
        of("a", "early", due_ms=1000),
        of("a", "urgent", priority=1),
        of("a", "last", priority=9999),
        of("b", "other", priority=9999),
    )
    assert await one_by_one(bucket, 5) == ["urgent", "other", "early", "late", "last"]


async def test_names_that_begin_alike_are_other_groups(bucket: Bucket) -> None:
    names = ["a", "aa", "a\0", "a\0b", "ä", "é" * 100, "a" * 250, "0", "001a", "\x7f", "🐘"]
    await bucket.push(*(of(name, f"{n}-{k}") for n, name in enumerate(names) for k in range(2)))
    await limit(bucket, group_concurrency=1)
    assert sorted(await bucket.pop_ids()) == sorted(f"{n}-0" for n in range(len(names)))


async def test_a_topic_limits_how_many_of_a_group_are_in_hand(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=2)
    await bucket.push(*many("a", 5), *many("b", 1), job("alone"), job("alone too"), job("third"))
    held = await bucket.pop()
    assert Counter(each.id[0] for each in held if each.id[0] != "t") == {"a": 4, "b": 1}
    assert await bucket.pop() == []


async def ended_by(bucket: Bucket, how: str, held: Reserved) -> None:
    match how:
        case "finish":
            await bucket.finish(held.id, nonce=held.nonce)
        case "delete":
            await bucket.delete(held.id)
        case "release":
            await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
        case "bury":
            await bucket.bury(held.id, nonce=held.nonce)
        case "requeue":
            await bucket.requeue(held)
        case "replace":
            await bucket.push(of("another", held.id))
        case "purge":
            await bucket.store.purge(0, "t", "reserved", 10)


ENDS: Final = ("finish", "delete", "release", "bury", "requeue", "replace", "purge")


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("limits", [{"group_concurrency": 1}, {"group_order": True}])
async def test_what_ends_a_reservation_lets_the_next_of_the_group_go(
    bucket: Bucket, limits: dict[str, Any], how: str
) -> None:
    await limit(bucket, **limits)
    await bucket.push(*many("a", 3))
    [held] = await bucket.pop()
    assert (await bucket.pop(), held.id) == ([], "a0")
    await ended_by(bucket, how, held)
    found = [each for each in await bucket.pop_ids() if not (how == "replace" and each == "a0")]
    is_retried = how == "release" and "group_order" in limits
    assert found == ([] if is_retried else ["a0" if how == "requeue" else "a1"])


async def test_a_ttr_that_has_passed_lets_the_next_go(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2, ttr_ms=SOON_MS))
    [held] = await bucket.pop()
    await a_moment()
    assert await bucket.pop() == []
    await bucket.tick()
    assert await bucket.pop_ids() in (["a1"], ["a0"])
    assert await bucket.finish("a0", nonce=held.nonce) == [Code.STALE_RECEIPT]
    assert await bucket.pop() == []


async def test_polls_are_told_when_a_held_group_goes_on(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2))
    [held] = await bucket.pop()
    await bucket.pop()
    _, change = await bucket.store.finish(0, [ending(held)])
    assert dict(change.ready) == {"t": 1}


def ending(held: Reserved) -> Ending:
    return Ending(held.id, held.nonce, "")


@pytest.mark.parametrize("limits", [{"group_concurrency": 3}, {"group_concurrency": None}])
async def test_a_limit_that_is_raised_or_removed_lets_held_groups_go(
    bucket: Bucket, limits: dict[str, Any]
) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*(of(f"{n}", f"{n}-{k}") for n in range(250) for k in range(3)))
    found: list[str] = []
    for _ in range(60):
        found += await bucket.pop_ids()
    assert Counter(each.partition("-")[2] for each in found) == {"0": 250}
    await limit(bucket, **limits)
    for _ in range(60):
        found += await bucket.pop_ids()
    assert len(found) == 750


async def test_a_limit_that_is_lowered_holds_what_is_beyond_it(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=3)
    await bucket.push(*many("a", 6))
    first, second, third = await bucket.pop()
    await limit(bucket, group_concurrency=1)
    assert await bucket.pop() == []
    for each in first, second:
        await bucket.finish(each.id, nonce=each.nonce)
        assert await bucket.pop() == []
    await bucket.finish(third.id, nonce=third.nonce)
    assert await bucket.pop_ids() == ["a3"]


async def test_the_order_of_a_group_waits_for_a_retry(bucket: Bucket) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "created"), of("a", "paid", due_ms=1), of("b", "other"))
    held = {each.id: each for each in await bucket.pop()}
    assert held.keys() == {"paid", "other"}
    await bucket.release("paid", nonce=held["paid"].nonce, delay_ms=LATER_MS)
    await bucket.push(of("a", "shipped", due_ms=2))
    assert await bucket.pop() == []
    await later()
    await bucket.tick()
    assert await bucket.pop_ids() == ["paid"]
    assert await bucket.finish("paid") == [Code.OK]
    assert await bucket.pop_ids() == ["shipped"]


async def expired(bucket: Bucket) -> None:
    await later()
    await bucket.tick()


async def taken(bucket: Bucket) -> None:
    a_second_ahead = await bucket.now_ms() + 1000
    await paging.take(bucket.store, "t", ALWAYS._replace(first_ms=a_second_ahead), 1)


GONE: Final[dict[str, Callable[[Bucket], Awaitable[Any]]]] = {
    "deleted": lambda bucket: bucket.delete("first"),
    "buried": lambda bucket: bucket.bury("first"),
    "expired": expired,
    "taken": taken,
    "replaced": lambda bucket: bucket.push(of("a", "first", delay_ms=HOUR_MS)),
    "of another topic": lambda bucket: bucket.push(of("a", "first", topic="u")),
    "of another group": lambda bucket: bucket.push(of("b", "first", delay_ms=HOUR_MS)),
    "purged": lambda bucket: bucket.store.purge(0, "t", "delayed", 10),
}


@pytest.mark.parametrize("how", GONE)
async def test_a_retry_that_is_no_more_lets_the_others_go(bucket: Bucket, how: str) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "first", expire_ms=LATER_MS), of("a", "second"))
    held = await bucket.pop_one()
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    assert await bucket.pop() == []
    await GONE[how](bucket)
    assert await bucket.pop_ids() == ["second"]


async def test_a_retry_that_is_kicked_goes_first(bucket: Bucket) -> None:
    await limit(bucket, group_order=True)
    await bucket.push(of("a", "first"), of("a", "second", due_ms=1))
    held = await bucket.pop_one()
    assert held.id == "second"
    await bucket.release(held.id, nonce=held.nonce, delay_ms=HOUR_MS)
    await bucket.kick("second")
    assert await bucket.pop_ids() == ["second"]


async def test_jobs_that_are_reserved_by_their_ids_count(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 3))
    [(code, _)], _ = await bucket.store.reserve(0, ["a2"])
    assert (code, await bucket.pop()) == (Code.OK, [])
    await bucket.delete("a2")
    assert await bucket.pop_ids() == ["a0"]


async def test_jobs_with_a_call_take_turns_of_their_own_and_count_with_the_others(
    bucket: Bucket,
) -> None:
    await limit(bucket, group_concurrency=2)
    await bucket.push(*many("a", 4, call=CALL), of("b", "b0", call=CALL), of("a", "plain"))
    assert {*await bucket.pop_ids(CALLS)} == {"a0", "a1", "b0"}
    assert await bucket.pop() == []
    assert (await bucket.counts()).called == 2
    await bucket.delete("a0")
    assert len(await bucket.pop_ids() + await bucket.pop_ids(CALLS)) == 1
    await bucket.delete("a1")
    assert len(await bucket.pop_ids() + await bucket.pop_ids(CALLS)) == 1


async def test_groups_are_counted(bucket: Bucket) -> None:
    assert (await bucket.counts()).groups_ready is None
    await bucket.push(*many("a", 3), *many("b", 1), job("x", delay_ms=HOUR_MS))
    counts = await bucket.counts()
    assert (counts.ready, counts.groups_ready, counts.groups_held) == (4, 2, 0)
    await limit(bucket, group_concurrency=1)
    await bucket.pop()
    await bucket.pop()
    counts = await bucket.counts()
    assert (counts.ready, counts.reserved, counts.groups_ready, counts.groups_held) == (2, 2, 0, 1)


async def test_a_group_whose_ready_jobs_are_gone_leaves_the_line(bucket: Bucket) -> None:
    await bucket.push(*many("a", 2), *many("b", 2))
    await bucket.delete("a0")
    await bucket.delete("a1")
    assert (await bucket.counts()).groups_ready == 1
    assert await bucket.pop_ids() == ["b0", "b1"]
    assert await bucket.redis.exists(*map(bucket.key, ("grouped:t", "turns:t", "next:t"))) == 0


async def test_a_job_of_an_older_version_in_the_list_is_moved_to_its_group(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 2, delay_ms=SOON_MS))
    await bucket.redis.delete(bucket.key("priorities"))
    await a_moment()
    await bucket.tick()
    found: list[str] = []
    for _ in range(3):
        found += await bucket.pop_ids()
    assert found == ["a0"]


async def test_jobs_in_hand_that_an_older_version_has_ended_hold_up_nobody(bucket: Bucket) -> None:
    await limit(bucket, group_concurrency=1)
    await bucket.push(*many("a", 3))
    await bucket.pop_one()
    await bucket.redis.zrem(bucket.key("reserved:t"), "a0")
    await bucket.redis.hdel(bucket.key("run"), "a0")
    await bucket.redis.hdel(bucket.key("job"), "a0")
    await bucket.redis.hdel(bucket.key("priorities"), "a0")
    assert await bucket.pop_ids() == ["a1"]


async def test_topics_by_priority_look_at_the_job_that_is_next(bucket: Bucket) -> None:
    await bucket.push(
        of("a", "urgent", priority=1), job("usual", topic="u"), of("b", "last", priority=9)
    )
    popped = await bucket.store.pop(0, [Demand(("u", "t"), 3, by_priority=True)])
    assert [each.id for each in popped.jobs[0]] == ["urgent", "last", "usual"]


async def test_the_next_ready_job_is_that_of_the_next_group(bucket: Bucket) -> None:
    await bucket.push(*many("a", 2), *many("b", 1))
    for wanted in ("a0", "b0", "a1"):
        reply = await bucket.store.call("peek", 0, ["t", "ready"])
        assert (reply.results[0].decode(), await one_by_one(bucket, 1)) == (wanted, [wanted])


@pytest.mark.parametrize("state", ["", "ready"])
async def test_listings_have_them(bucket: Bucket, state: str) -> None:
    jobs = [*many("a", 7), *many("b", 7), *many("c", 7, call=CALL), job("x"), job("y", priority=1)]
    await bucket.push(*jobs)
    for size in (3, 100):
        pages = [page async for page in bucket.pages(Listing("t", "", state, ALWAYS), size)]
        assert sorted(each.id for page in pages for each in page) == sorted(
            each.id for each in jobs
        )


async def test_taken_and_purged_ones_leave_nothing(bucket: Bucket) -> None:
    await bucket.push(*many("a", 5), *many("b", 5, call=CALL), job("x"))
    assert len(await paging.take(bucket.store, "t", ALWAYS, 4)) == 4
    dropped, _, _ = await bucket.store.purge(0, "t", "ready", 100)
    assert (dropped, (await bucket.counts()).ready) == (7, 0)


class History:
    """Random pushes, pops and ends of reservations, with a limit that changes."""

    def __init__(self, bucket: Bucket) -> None:
        self.at = random.Random(5)
        self.bucket = bucket
        self.held: dict[str, Reserved] = {}
        self.left = set[str]()
        self.most = 2

    def in_hand(self, group: str) -> int:
        return sum(job_id[0] == group for job_id in self.held)

    async def push(self) -> None:
        group, number = self.at.choice("abcdef"), self.at.randrange(1000)
        self.held.pop(f"{group}{number}", None)
        self.left.add(f"{group}{number}")
        priority = self.at.choice([1, USUAL_PRIORITY])
        await self.bucket.push(of(group, f"{group}{number}", priority=priority))

    async def pop(self) -> None:
        for each in await self.bucket.pop(wanted=self.at.randint(1, 5)):
            self.held[each.id] = each
            assert self.in_hand(each.id[0]) <= self.most

    async def end(self) -> None:
        if not self.held:
            return
        each = self.held.pop(self.at.choice(sorted(self.held)))
        how = self.at.choice(["finish", "delete", "requeue", "bury"])
        await ended_by(self.bucket, how, each)
        if how == "bury":
            await self.bucket.kick(each.id)
        elif how != "requeue":
            self.left.discard(each.id)

    async def limit(self) -> None:
        most = self.at.choice([1, 2, 3])
        if all(self.in_hand(group) <= most for group in "abcdef"):
            self.most = most
            await limit(self.bucket, group_concurrency=most)


async def test_the_groups_with_the_most_ready_jobs_are_found(bucket: Bucket) -> None:
    await bucket.push(*many("a", 5), *many("b", 40), of("call", "c", call=CALL), job("x"))
    await bucket.pop_ids(wanted=2)
    found = await bucket.store.census.most_groups("t")
    assert [(each.group, each.reserved) for each in found] == [("b", 1), ("a", 1), ("call", 0)]
    await bucket.push(*(of(f"{n}", f"{n}") for n in range(1000)), *many("most", 300))
    first, *others = await bucket.store.census.most_groups("t")
    assert (first.group, first.ready, len(others)) == ("most", 300, 9)


async def test_an_entry_that_is_none_of_ours_does_not_hold_up_the_store(bucket: Bucket) -> None:
    await bucket.redis.zadd(bucket.key("grouped:t"), {"of another program": 0})
    [found] = await bucket.store.census.most_groups("t")
    assert (found.group, found.ready) == ("", 0)
    await bucket.redis.delete(bucket.key("grouped:t"))


@on_one_store
@on_zset
async def test_any_history_hands_out_no_job_too_many_and_leaves_none(bucket: Bucket) -> None:
    history = History(bucket)
    await history.limit()
    for _ in range(600):
        step = history.at.choice([history.push, history.pop, history.end])
        await (step if history.at.random() < 0.9 else history.limit)()
    while history.held or history.left:
        for each in history.held.values():
            await bucket.finish(each.id, nonce=each.nonce)
            history.left.discard(each.id)
        history.held = {each.id: each for each in await bucket.pop(wanted=3)}
        assert history.held or not history.left
