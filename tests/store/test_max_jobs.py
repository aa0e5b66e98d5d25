"""max_jobs: a topic that has as many jobs as it may have, and what a push to it does."""

from typing import Any

import pytest

from delayqueue.domain.call import Call
from delayqueue.errors import Code
from delayqueue.store.verbs import PUSH
from tests.store.bucket import HOUR_MS, Bucket, a_moment, job, with_functions

FULL = Code.TOPIC_FULL
MOST = 3


async def bound(bucket: Bucket, topic: str = "t", **changes: Any) -> int:
    limits = {"max_jobs": MOST} | changes
    return (await bucket.store.limit(0, topic, limits)).code


async def count(bucket: Bucket, topic: str = "t") -> int:
    [found] = await bucket.store.topics(0, [topic])
    return found.delayed + found.ready + found.reserved + found.buried


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
    assert (refused.code, refused.max_jobs) == (FULL, MOST)
    assert await full.state("new") is None
    assert await count(full) == MOST


@pytest.mark.parametrize("state", ["reserved", "buried", "delayed"])
async def test_a_job_that_ends_makes_room(full: Bucket, state: str) -> None:
    assert await full.delete(state) == [Code.OK]
    assert await full.push(job("new"), job("newer")) == [Code.OK, FULL]


@pytest.mark.parametrize("state", ["reserved", "buried", "delayed"])
async def test_a_push_that_replaces_a_job_needs_no_room(full: Bucket, state: str) -> None:
    assert await full.push(job(state, body="again")) == [Code.OK]
    assert (await full.view(state)).body == b"again"
    assert await full.push(job("new")) == [FULL]


async def test_a_push_that_changes_nothing_is_not_refused(full: Bucket) -> None:
    kept = job("buried", if_exists="keep")
    assert await full.push(kept, job("buried", if_exists="fail")) == [Code.OK, Code.JOB_EXISTS]


async def test_a_job_that_comes_from_another_topic_needs_room(full: Bucket) -> None:
    await full.push(job("x", topic="u"))
    assert await full.push(job("x")) == [FULL]
    assert (await full.view("x")).topic == "u"


async def test_a_kept_result_takes_no_room_and_its_job_pushed_again_does(bucket: Bucket) -> None:
    await bound(bucket)
    for name in "abc":
        await bucket.push(job(name, retain_ms=HOUR_MS))
    await bucket.finish("a")
    assert await bucket.push(job("d")) == [Code.OK]
    assert await bucket.push(job("a")) == [FULL]
    assert await bucket.state("a") == "finished"


async def test_of_an_array_as_many_as_fit_are_added(bucket: Bucket) -> None:
    await bound(bucket)
    jobs = [job(str(n), delay_ms=n * HOUR_MS, priority=n) for n in range(5)]
    other = job("other", topic="u")
    assert await bucket.push(*jobs, other) == [*[Code.OK] * 3, FULL, FULL, Code.OK]
    assert await count(bucket) == MOST


async def test_an_id_twice_in_an_array_is_one_job(bucket: Bucket) -> None:
    await bound(bucket)
    names = ["a", "a", "b", "b", "c", "d"]
    codes = await bucket.push(*map(job, names))
    assert codes == [*[Code.OK] * 5, FULL]


async def test_retries_kicks_and_requeues_never_fail_by_it(bucket: Bucket) -> None:
    for name in "abcd":
        await bucket.push(job(name))
    jobs = await bucket.pop()
    await bound(bucket)
    await bucket.requeue(jobs[0])
    await bucket.release("b", delay_ms=0)
    await bucket.bury("c")
    assert await bucket.kick("c") == [Code.OK]
    await bucket.release("d", delay_ms=HOUR_MS)
    await bucket.reschedule("d", delay_ms=1)
    assert await count(bucket) == 4
    assert await bucket.push(job("new")) == [FULL]


async def test_a_report_of_a_dead_letter_is_added_to_a_full_topic(full: Bucket) -> None:
    await full.store.limit(0, "u", {"buried_to": "t"})
    await full.put_in("buried", "dead", topic="u")
    assert await count(full) == MOST + 1


async def test_ghosts_take_no_room(bucket: Bucket) -> None:
    await bound(bucket)
    for _ in range(3):
        await bucket.push(job("a"), job("b"), job("c"))
    await bucket.push(job("a", delay_ms=HOUR_MS))
    await bucket.delete("b")
    assert await bucket.push(job("d"), job("e")) == [Code.OK, FULL]


@pytest.mark.parametrize("lifted", [{"max_jobs": None}, {"max_jobs": MOST + 1}])
async def test_another_limit_is_in_force_at_once(full: Bucket, lifted: dict[str, Any]) -> None:
    assert await full.push(job("new")) == [FULL]
    await full.store.limit(0, "t", lifted)
    assert await full.push(job("new")) == [Code.OK]
    await bound(full)
    assert await full.push(job("newer")) == [FULL]


async def test_each_bucket_has_its_share(bucket: Bucket) -> None:
    shares = []
    for number in range(3):
        await bucket.store.call("split_limits", 0, ["t", '{"limit":{"max_jobs":11}}', number, 3])
        codes = await bucket.push(*[job(str(n)) for n in range(12)])
        shares.append(codes.count(Code.OK))
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


async def test_a_dropped_job_can_be_pushed_again_in_the_same_call(dropping: Bucket) -> None:
    names = ["a", "b", "c", "d", "a"]
    jobs = [job(name, retain_ms=HOUR_MS, body=str(n)) for n, name in enumerate(names)]
    assert await dropping.push(*jobs) == [Code.OK] * 5
    assert [popped.body for popped in await dropping.pop()] == [b"2", b"3", b"4"]


async def test_of_jobs_with_priorities_the_least_urgent_give_way(dropping: Bucket) -> None:
    priorities = {"urgent": 1, "usual": 1024, "low": 5000}
    for name, priority in priorities.items():
        await dropping.push(job(name, priority=priority))
    dropped = []
    for number in range(3):
        await dropping.push(job(f"new-{number}", priority=0))
        dropped += [name for name in priorities if await dropping.state(name) is None]
        priorities = {name: 0 for name in priorities if name not in dropped}
    assert dropped == ["low", "usual", "urgent"]


async def test_if_no_job_is_ready_the_one_that_is_due_next_gives_way(dropping: Bucket) -> None:
    for hours in (3, 1, 2):
        await dropping.push(job(str(hours), delay_ms=hours * HOUR_MS))
    await dropping.push(job("new", delay_ms=9 * HOUR_MS))
    assert [await dropping.state(name) for name in "123"] == [None, "delayed", "delayed"]


async def test_reserved_and_buried_jobs_do_not_give_way(full: Bucket) -> None:
    await bound(full, when_full="drop_oldest")
    assert await full.push(job("new")) == [Code.OK]
    assert await full.state("delayed") is None
    await full.pop_ids()
    assert await full.push(job("newer")) == [FULL]
    assert [await full.state(name) for name in ("reserved", "buried", "new")] == [
        "reserved",
        "buried",
        "reserved",
    ]


async def test_a_topic_that_has_too_many_already_shrinks(dropping: Bucket) -> None:
    await bound(dropping, max_jobs=100)
    await dropping.push(*[job(str(n)) for n in range(100)])
    await bound(dropping, max_jobs=MOST)
    for number in range(20):
        await dropping.push(job(f"new-{number}"))
    assert await count(dropping) == MOST


async def test_ghosts_at_the_head_of_the_list_do_not_hide_the_oldest(dropping: Bucket) -> None:
    await bound(dropping, max_jobs=400)
    await dropping.push(*[job(str(n)) for n in range(400)])
    await dropping.delete(*[str(n) for n in range(300)])
    await bound(dropping, max_jobs=100)
    await a_moment()
    assert await dropping.push(job("new")) == [Code.OK]
    assert await dropping.state("300") is None


async def test_a_job_with_a_call_gives_way_if_no_other_is_ready(dropping: Bucket) -> None:
    for name in "abc":
        await dropping.push(job(name, call=Call(url="https://example.com/")))
    assert await dropping.push(job("new")) == [Code.OK]
    assert await dropping.state("a") is None


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


@with_functions
async def test_a_push_to_a_topic_without_it_asks_the_store_no_more(bucket: Bucket) -> None:
    """But for one look a second: each push has one HGET, for a kept result of its id."""
    pushes = 200

    async def looks() -> int:
        stats: Any = await bucket.redis.info("commandstats")
        return int(stats["cmdstat_hget"]["calls"])

    await bucket.push(job("first"))
    before = await looks()
    for number in range(pushes):
        await bucket.push(job(str(number)))
    assert await looks() - before < pushes * 1.5
