"""max_jobs: a topic that has as many jobs as it may have, and what a push to it does."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any, Final

import pytest

from delayqueue.domain.job import Job
from delayqueue.errors import Code
from delayqueue.store.registry import DueJobs, Entry, OccurrenceJob
from delayqueue.store.verbs import PUSH
from tests.processes import StoreServer
from tests.store.bucket import HOUR_MS, Bucket, a_moment, calls_of, job, with_functions
from tests.store.conftest import connect
from tests.store.test_groups import CALL, many, of

FULL = Code.TOPIC_FULL
MOST = 3


async def bound(bucket: Bucket, topic: str = "t", **changes: Any) -> int:
    limits = {"max_jobs": MOST} | changes
    return (await bucket.store.limit(0, topic, limits)).code


async def count(bucket: Bucket, topic: str = "t") -> int:
    [found] = await bucket.store.topics(0, [topic])
    return found.delayed + found.ready + found.reserved + found.buried


async def groups_of(bucket: Bucket) -> Counter[str]:
    """How many ready jobs the largest groups have."""
    found = await bucket.store.census.most_groups("t")
    return Counter({each.group: each.ready for each in found})


@pytest.fixture
async def full(bucket: Bucket) -> Bucket:
    """A topic that has a reserved, a buried and a delayed job, and may have three."""
    await bucket.put_in("reserved", "reserved")
    await bucket.put_in("buried", "buried")
    await bucket.put_in("delayed", "delayed")
    assert await bound(bucket) == Code.OK
    return bucket


@pytest.fixture
async def dropping(bucket: Bucket) -> Bucket:
    """A topic that may have three jobs, of which the oldest gives way."""
    assert await bound(bucket, when_full="drop_oldest") == Code.OK
    return bucket


async def test_a_push_beyond_it_is_refused_and_says_how_many_there_may_be(full: Bucket) -> None:
    [refused] = await full.store.all_of(PUSH, [job("new")])
    assert (refused.code, refused.full) == (FULL, (MOST, MOST))
    assert await full.state("new") is None
    assert await count(full) == MOST


async def test_a_report_of_a_dead_letter_is_added_to_a_full_topic(full: Bucket) -> None:
    await full.store.limit(0, "u", {"buried_to": "t"})
    await full.put_in("buried", "dead", topic="u")
    assert await count(full) == MOST + 1


async def test_a_job_of_a_schedule_is_added_to_a_full_topic_at_its_time(full: Bucket) -> None:
    registry, now_ms = full.store.registry, await full.now_ms()
    entry = Entry("s", "{}", now_ms)
    await registry.register("schedules", entry, "fail")
    jobs = [OccurrenceJob("s@now", "s@now~", now_ms)]
    assert (await registry.enqueue_due(DueJobs(entry, None, job("", topic="t"), jobs))).done
    assert await count(full) == MOST + 1


async def test_each_bucket_has_its_share(bucket: Bucket) -> None:
    shares = []
    for number in range(3):
        await bucket.store.call("split_limits", 0, ["t", '{"limit":{"max_jobs":11}}', number, 3])
        pushed = await bucket.store.all_of(PUSH, [job(str(n)) for n in range(12)])
        shares.append([one.code for one in pushed].count(Code.OK))
        assert pushed[-1].full == (shares[-1], 11)
        [view] = await bucket.store.topics(0, ["t"])
        assert view.filled == 1
        await bucket.delete(*map(str, range(12)))
    assert shares == [4, 4, 3]


async def test_when_full_needs_max_jobs(bucket: Bucket) -> None:
    limits = {"when_full": "drop_oldest"}
    assert (await bucket.store.limit(0, "t", limits)).code == FULL
    await bound(bucket, **limits)
    limit = (await bucket.store.limit(0, "t", {"max_jobs": None})).limit
    assert (limit.max_jobs, limit.when_full) == (None, None)


async def test_the_oldest_ready_job_gives_way(dropping: Bucket) -> None:
    for name in "abcde":
        assert await dropping.push(job(name, retain_ms=HOUR_MS)) == [Code.OK]
    assert [await dropping.state(name) for name in "abcde"] == ["dropped"] * 2 + ["ready"] * 3
    assert dropping.store.metrics.events("dropped") == 2
    assert await dropping.pop_ids() == ["c", "d", "e"]


N: Final = tuple(many("noisy", 3))
QUIET: Final = of("quiet", "quiet")
ALONE: Final = job("alone")
# the jobs of a full topic, one more, and which of them gives way
GIVING_WAY: Final = {
    "the first of the group that has most": ([*N, QUIET], of("noisy", "new"), "noisy0"),
    "for one of a group with fewer": ([*N, QUIET], of("quiet", "new"), "noisy0"),
    "for one of a group with none": ([*N, QUIET], of("other", "new"), "noisy0"),
    "for one of no group": ([*N, ALONE], job("new"), "noisy0"),
    "one of no group, for one of a group with fewer": (
        [QUIET, ALONE, job("b")],
        of("quiet", "new"),
        "alone",
    ),
    "one of its own, if no other group has more": (
        [QUIET, job("b", texts={"group": "b"})],
        of("quiet", "new"),
        "quiet",
    ),
    "the least urgent of the group": (
        [of("noisy", "urgent", priority=1), *N],
        of("noisy", "new"),
        "noisy0",
    ),
    "not an urgent one of no group": (
        [job("urgent", priority=1), *N],
        of("noisy", "new"),
        "noisy0",
    ),
    "one that is less urgent than usual, before older ones": (
        [job("usual"), job("spare", priority=2**31)],
        job("new"),
        "spare",
    ),
    "the oldest with a call, if all have one": (
        [job("c1", call=CALL), job("c2", call=CALL)],
        job("new", call=CALL),
        "c1",
    ),
    "one with a call, after the others of its group": (
        [of("noisy", "called", call=CALL), *N],
        of("noisy", "new"),
        "noisy0",
    ),
    "one with a call, of the group that has most": (
        [of("noisy", "c1", call=CALL), of("noisy", "c2", call=CALL), QUIET],
        of("noisy", "new"),
        "c1",
    ),
    "a delayed one, if none is ready": (
        [of("noisy", "delayed", delay_ms=HOUR_MS)],
        of("noisy", "new"),
        "delayed",
    ),
}


@pytest.mark.parametrize(("jobs", "new", "gone"), GIVING_WAY.values(), ids=GIVING_WAY)
async def test_the_group_with_the_most_ready_jobs_gives_way(
    bucket: Bucket, jobs: list[Job], new: Job, gone: str
) -> None:
    await bound(bucket, max_jobs=len(jobs), when_full="drop_oldest")
    for each in [*jobs, new]:
        assert await bucket.push(replace(each, retain_ms=HOUR_MS)) == [Code.OK]
    states = {each.id: await bucket.state(each.id) for each in jobs}
    assert [each for each, state in states.items() if state == "dropped"] == [gone]


async def test_jobs_of_a_group_that_are_held_give_way_before_those_of_others(
    dropping: Bucket,
) -> None:
    await bound(dropping, group_concurrency=1)
    await dropping.push(*N[:2])
    assert await dropping.pop_ids() == ["noisy0"]
    await dropping.push(QUIET)
    for number in range(3):
        await dropping.push(of("noisy", f"new{number}"))
    assert await dropping.state("quiet") == "ready"


async def test_one_push_of_many_jobs_of_a_group_leaves_those_of_others(dropping: Bucket) -> None:
    """But for the one that makes room for its first."""
    await bound(dropping, max_jobs=10)
    await dropping.push(*[of(f"quiet{n}", f"quiet{n}") for n in range(10)])
    assert await dropping.push(*many("noisy", 30)) == [Code.OK] * 30
    found = await dropping.pop_ids()
    assert len(found) == 10
    assert [each for each in found if each.startswith("noisy")] == ["noisy29"]


async def test_pushes_never_end_jobs_of_a_group_that_has_fewer(bucket: Bucket) -> None:
    """But of the one that has most with the new job."""
    draw, most, ready = random.Random(7), 30, Counter[str]()
    await bound(bucket, max_jobs=most, when_full="drop_oldest")
    for number in range(200):
        group = draw.choices(["", "a", "bb", "c", "noisy"], [2, 1, 1, 2, 10])[0]
        new = of(group, str(number)) if group else job(str(number))
        await bucket.push(new)
        left = await groups_of(bucket)
        left[""] = (await bucket.store.topics(0, ["t"]))[0].ready - left.total()
        ready[group] += 1
        if ready.total() > most:
            [gone] = (ready - left).elements()
            assert ready[gone] == max(ready.values())
        ready = left


async def test_of_however_many_groups_a_large_one_gives_way(dropping: Bucket) -> None:
    """One of a quarter of the jobs; the others have one each."""
    await bound(dropping, max_jobs=400)
    await dropping.push(*[of(f"quiet{n}", f"quiet{n}") for n in range(300)])
    await dropping.push(*many("noisy", 100))
    for number in range(60):
        await dropping.push(of(f"other{number}", f"other{number}"))
        await dropping.push(of("noisy", f"new{number}"))
    assert (await groups_of(dropping))["noisy"] == 40
    assert await count(dropping) == 400
    assert await dropping.state("quiet0") == "ready"


async def test_a_dropped_job_can_be_pushed_again_in_the_same_call(dropping: Bucket) -> None:
    names = ["a", "b", "c", "d", "a"]
    jobs = [job(name, retain_ms=HOUR_MS, body=str(n)) for n, name in enumerate(names)]
    assert await dropping.push(*jobs) == [Code.OK] * 5
    assert [popped.body for popped in await dropping.pop()] == [b"2", b"3", b"4"]


async def test_a_topic_that_has_too_many_already_shrinks(dropping: Bucket) -> None:
    await bound(dropping, max_jobs=100)
    await dropping.push(*[job(str(n)) for n in range(100)])
    await bound(dropping, max_jobs=MOST)
    for number in range(20):
        await dropping.push(job(f"new-{number}"))
        if number == 0:  # one push ends ten at most
            assert await count(dropping) == 91
    assert await count(dropping) == MOST


async def test_ghosts_at_the_head_of_the_list_do_not_hide_the_oldest(dropping: Bucket) -> None:
    await bound(dropping, max_jobs=400)
    await dropping.push(*[job(str(n)) for n in range(400)])
    await dropping.delete(*[str(n) for n in range(300)])
    await bound(dropping, max_jobs=100)
    await a_moment()
    assert await dropping.push(job("new")) == [Code.OK]
    assert await dropping.state("300") is None


async def test_a_broken_key_is_told_as_ever(full: Bucket) -> None:
    await full.let_forget()
    await full.spoil("ranked:t")
    assert await full.push(job("new")) == [Code.UNAVAILABLE]
    await full.redis.delete(full.key("ranked:t"))


async def test_broken_settings_bound_nothing(bucket: Bucket) -> None:
    await bucket.push(job("first", delay_ms=HOUR_MS))
    await bucket.let_forget()
    await bucket.spoil("topics")
    assert await bucket.push(job("a"), job("b", delay_ms=HOUR_MS)) == [Code.OK] * 2
    assert await bucket.push(job("c")) == [Code.OK]
    await bucket.redis.delete(bucket.key("topics"))
    await bucket.redis.hset(bucket.key("topics"), "t", "")


async def test_a_topic_of_the_same_name_in_another_database_does_not_lift_it(
    valkey_server: StoreServer,
) -> None:
    """The functions that a store keeps built serve all its databases."""
    async with connect(valkey_server) as one, connect(valkey_server) as another:
        full, free = Bucket.over(one), Bucket.over(another)
        await bound(full)
        await free.push(job("free"))
        assert await full.push(*[job(str(n)) for n in range(MOST + 1)]) == [Code.OK] * MOST + [FULL]


@with_functions
async def test_a_push_to_a_topic_without_it_asks_the_store_no_more(bucket: Bucket) -> None:
    """But for one look a second: each push has one HGET, for a kept result of its id."""
    pushes = 200
    await bucket.push(job("first"))
    before = await calls_of(bucket.redis, "hget")
    for number in range(pushes):
        await bucket.push(job(str(number)))
    assert await calls_of(bucket.redis, "hget") - before < pushes * 1.5
