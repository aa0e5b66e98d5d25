"""push: adds jobs, or replaces jobs with the same id, wherever they are."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from delayqueue.domain.access import Scope
from delayqueue.errors import Code
from tests.store.bucket import (
    HOSTILE,
    HOUR_MS,
    SCHEDULERS,
    STATES,
    Bucket,
    a_moment,
    job,
    on_one_store,
)
from tests.store.contents import read
from tests.store.turning import Clock, coarse


async def test_a_job_without_delay_is_ready_at_once(bucket: Bucket) -> None:
    pushed = await bucket.store.push(0, [job("a")])
    assert pushed.codes == [Code.OK]
    assert pushed.change.ready == [("t", 1)]
    assert pushed.change.next_due_ms is None
    assert await bucket.pop_ids() == ["a"]


async def test_a_delayed_job_is_not_ready_and_the_timer_hears_when_it_is_due(
    bucket: Bucket,
) -> None:
    pushed = await bucket.store.push(0, [job("a", delay_ms=HOUR_MS), job("b", delay_ms=500)])
    assert pushed.change.ready == []
    assert pushed.change.next_due_ms == 500
    assert await bucket.pop_ids() == []
    assert await bucket.state("a") == "delayed"


async def test_an_absolute_due_time_is_kept(bucket: Bucket) -> None:
    due_ms = await bucket.now_ms() + HOUR_MS
    await bucket.push(job("later", due_ms=due_ms), job("past", due_ms=5))
    assert (await bucket.view("later")).due_ms == due_ms
    assert (await bucket.view("past")).due_ms == 5
    assert await bucket.state("later") == "delayed"
    assert await bucket.pop_ids() == ["past"]


async def test_a_relative_delay_counts_from_the_stores_own_time(bucket: Bucket) -> None:
    before_ms = await bucket.now_ms()
    await bucket.push(job("a", delay_ms=HOUR_MS))
    view = await bucket.view("a")
    assert before_ms <= view.due_ms - HOUR_MS <= await bucket.now_ms()
    assert view.created_ms == view.due_ms - HOUR_MS


async def test_a_job_that_is_due_now_queues_behind_those_that_are_overdue(bucket: Bucket) -> None:
    await bucket.push(job("first", delay_ms=1), job("second", delay_ms=2))
    await a_moment()
    pushed = await bucket.store.push(0, [job("third")])
    assert pushed.change.next_due_ms == 0
    await bucket.tick()
    assert await bucket.pop_ids() == ["first", "second", "third"]


@pytest.mark.parametrize("delay_ms", [0, HOUR_MS], ids=["ready", "delayed"])
async def test_the_timer_hears_when_a_job_expires(bucket: Bucket, delay_ms: int) -> None:
    pushed = await bucket.store.push(0, [job("a", delay_ms=delay_ms, expire_ms=500)])
    assert pushed.change.next_due_ms == (delay_ms or 500)


@pytest.mark.parametrize("if_exists", ["replace", "keep", "fail"])
@pytest.mark.parametrize("state", STATES)
async def test_a_push_with_the_same_key_changes_nothing(
    bucket: Bucket, state: str, if_exists: str
) -> None:
    await bucket.put_in(state, body="old", texts={"idempotency_key": "7"})
    again = job("a", body="new", if_exists=if_exists, texts={"idempotency_key": "7"})
    assert await bucket.push(again, job("b"), again) == [Code.OK] * 3
    view = await bucket.view("a")
    assert (view.body, view.state) == (b"old", state)


@pytest.mark.parametrize("end", ["finish", "delete"])
async def test_the_key_is_remembered_for_as_long_as_the_result_is_kept(
    bucket: Bucket, end: str
) -> None:
    first = job("a", retain_ms=HOUR_MS, texts={"idempotency_key": "7"}, if_exists="keep")
    await bucket.push(first)
    await getattr(bucket, end)("a")
    ended = await bucket.state("a")
    assert await bucket.push(first) == [Code.OK]
    assert await bucket.state("a") == ended
    second = job("a", body="2", texts={"idempotency_key": "8"}, if_exists="keep")
    assert await bucket.push(second) == [Code.OK]
    assert (await bucket.view("a")).body == b"2"


async def test_another_key_is_another_push_for_which_the_rule_counts(bucket: Bucket) -> None:
    await bucket.push(job("a", body="1", texts={"idempotency_key": "7"}))
    for if_exists, key, code in (
        ("keep", "8", Code.OK),
        ("fail", "8", Code.JOB_EXISTS),
        ("keep", "", Code.OK),
    ):
        pushed = job("a", body="2", texts={"idempotency_key": key}, if_exists=if_exists)
        assert await bucket.push(pushed) == [code]
    assert (await bucket.view("a")).body == b"1"
    await bucket.push(job("a", body="2", texts={"idempotency_key": "8"}))
    assert (await bucket.view("a")).body == b"2"


@pytest.mark.parametrize("end", [None, "delete"])
async def test_the_same_key_in_another_topic_is_another_push(
    bucket: Bucket, end: str | None
) -> None:
    await bucket.push(job("a", retain_ms=HOUR_MS, texts={"idempotency_key": "7"}))
    if end:
        await getattr(bucket, end)("a")
    elsewhere = job("a", topic="u", texts={"idempotency_key": "7"})
    assert await bucket.push(replace(elsewhere, is_strict=True)) == [Code.JOB_EXISTS]
    assert await bucket.push(elsewhere) == [Code.OK]
    assert await bucket.pop_ids("u") == ["a"]


async def test_a_job_given_the_same_tag_twice_has_it_once(bucket: Bucket) -> None:
    await bucket.push(job("a", tags=("x", "x")))
    assert len((await read(bucket.redis, bucket.keys)).tag[b"x"]) == 1


@on_one_store
async def test_a_whole_batch_of_jobs_may_have_all_tags_in_common(bucket: Bucket) -> None:
    """Lua hands at most about 8,000 values to one command."""
    tags = tuple(f"tag-{n}" for n in range(16))
    jobs = [job(f"job-{n}", tags=tags, delay_ms=n % 2 * HOUR_MS) for n in range(1499)]
    assert await bucket.push(*jobs) == [Code.OK] * 1499
    assert await bucket.push(*jobs) == [Code.OK] * 1499


async def test_a_batch_over_many_topics_reaches_each(bucket: Bucket) -> None:
    pushed = await bucket.store.push(0, [job(f"job-{n}", topic=f"topic-{n}") for n in range(50)])
    assert sorted(pushed.change.ready) == sorted((f"topic-{n}", 1) for n in range(50))


@pytest.mark.parametrize("name", HOSTILE)
async def test_any_text_is_an_id_a_topic_a_tag_and_a_body(bucket: Bucket, name: str) -> None:
    await bucket.push(job("bystander", topic="else", delay_ms=HOUR_MS))
    hostile = job(name, topic=name, body=name, tags=(name,), delay_ms=1, retain_ms=HOUR_MS)
    await bucket.push(hostile)
    await a_moment()
    await bucket.tick()
    [popped] = await bucket.pop(name)
    assert (popped.id, popped.topic, popped.body) == (name, name, name.encode())
    assert await bucket.finish(name, nonce=popped.nonce, message=name) == [Code.OK]
    view = await bucket.view(name)
    assert (view.state, view.tags, view.message) == ("finished", (name,), name)
    assert await bucket.state("bystander") == "delayed"


async def test_a_body_comes_back_byte_for_byte(bucket: Bucket) -> None:
    texts = "", " outer spaces ", "1 2 3 4 5 6 7 8\n", "\x00\x01", "🐘" * 1000, "x" * 2**20
    for body in (*map(str.encode, texts), bytes(range(256))):
        await bucket.push(job("a", body=body))
        assert (await bucket.view("a")).body == body
        assert (await bucket.pop_one()).body == body


async def test_a_tag_whose_key_is_broken_spoils_no_other_job_of_the_batch(bucket: Bucket) -> None:
    await bucket.spoil("tag:bad")
    batch = job("a", tags=("good",)), job("b", tags=("good", "bad")), job("c")
    assert await bucket.push(*batch) == [Code.OK, Code.UNAVAILABLE, Code.OK]
    assert await bucket.pop_ids() == ["a", "c"]
    await bucket.redis.delete(bucket.key("tag:bad"))


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize(
    ("scheduler", "key"),
    [
        ("zset", "delay:bad"),
        ("wheel", "wheel:bad"),
        ("wheel", "rounds:bad"),
        *product(
            SCHEDULERS, ["dq_queue_bad", "reserved:bad", "buried:bad", "expire:bad", "done:bad"]
        ),
    ],
)
async def test_a_topic_with_a_broken_key_spoils_no_other_job_of_the_batch(
    bucket: Bucket, key: str
) -> None:
    await bucket.push(job("replaced", topic="good", body="old"))
    await bucket.push(job("from bad", topic="bad", delay_ms=HOUR_MS))
    await bucket.spoil(key)
    await bucket.let_forget()
    codes = await bucket.push(
        job("replaced", topic="good", body="new"),
        job("to bad", topic="bad"),
        job("from bad", topic="good"),
        job("new", topic="good"),
    )
    assert codes == [Code.OK, Code.UNAVAILABLE, Code.UNAVAILABLE, Code.OK]
    assert [job.body for job in await bucket.pop("good")] == [b"new", b"body"]
    assert await bucket.state("to bad") is None


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize(
    ("scheduler", "key", "options"),
    [
        *product(SCHEDULERS, ["dq_queue_bad"], [{}]),
        *product(SCHEDULERS, ["ranked:bad", "priorities"], [{"priority": 1}]),
        *product(SCHEDULERS, ["expire:bad"], [{"expire_ms": HOUR_MS}]),
        *product(SCHEDULERS, ["tag:bad"], [{"tags": ("bad",)}]),
        *product(SCHEDULERS, ["grouped:bad", "held:bad"], [{"texts": {"group": "g"}}]),
        ("zset", "delay:bad", {"delay_ms": HOUR_MS}),
        *product(["wheel"], ["wheel:bad", "rounds:bad"], [{"delay_ms": HOUR_MS}]),
    ],
)
async def test_a_key_that_breaks_after_a_push_spoils_no_other_job_of_the_next(
    bucket: Bucket, key: str, options: dict[str, Any]
) -> None:
    bad = job("to bad", topic="bad", **options)
    await bucket.push(bad)
    await bucket.delete("to bad")
    await bucket.redis.delete(bucket.key("dq_queue_bad"), bucket.key("ghosts"))
    await bucket.spoil(key)
    codes = await bucket.push(job("a", topic="good"), bad, job("b", topic="good"))
    assert codes == [Code.OK, Code.UNAVAILABLE, Code.OK]
    assert await bucket.pop_ids("good") == ["a", "b"]
    assert await bucket.push(bad) == [Code.UNAVAILABLE]
    assert await bucket.state("to bad") is None


@pytest.mark.usefixtures("poison")
async def test_a_kept_record_that_cannot_go_spoils_no_other_job_of_the_batch(
    bucket: Bucket,
) -> None:
    await bucket.push(job("ended", topic="bad", retain_ms=HOUR_MS), job("replaced", body="old"))
    await bucket.finish("ended")
    await bucket.spoil("done:bad")
    codes = await bucket.push(job("replaced", body="new"), job("ended"), job("b"))
    assert codes == [Code.OK, Code.UNAVAILABLE, Code.OK]
    assert [popped.body for popped in await bucket.pop()] == [b"new", b"body"]
    assert await bucket.state("ended") == "finished"


@coarse
@pytest.mark.parametrize("put_back_ms", [0, 3], ids=["in the same ms", "after the clock went back"])
@pytest.mark.parametrize("has_ended", [True, False], ids=["a kept record", "a job"])
async def test_no_push_of_an_id_has_the_time_of_the_one_before(
    wheel: Bucket, clock: Clock, put_back_ms: int, *, has_ended: bool
) -> None:
    times = []
    for _ in range(5):
        await wheel.push(job("a", retain_ms=HOUR_MS))
        times.append((await wheel.view("a")).created_ms)
        if has_ended:
            await wheel.finish("a")
        clock.pass_ms(-put_back_ms)
    assert len({*times}) == len(times)
    clock.pass_ms(-HOUR_MS)
    await wheel.push(job("a"))
    assert (await wheel.view("a")).created_ms == clock.now_ms


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("is_strict", [True, False], ids=["strict", "not strict"])
async def test_a_push_tells_which_other_topic_has_the_id(
    bucket: Bucket, state: str, *, is_strict: bool
) -> None:
    await bucket.put_in(state, tags=("x",), expire_ms=HOUR_MS)
    before = await bucket.view("a")
    fresh, other = job("b", is_strict=is_strict), job("a", topic="u", is_strict=is_strict)
    pushed = await bucket.store.push(0, [fresh, other])
    assert pushed.codes == [Code.OK, Code.JOB_EXISTS if is_strict else Code.OK]
    assert pushed.other_topics == [None, "t"]
    view = await bucket.view("a")
    assert (view == before) if is_strict else (view.topic == "u")


async def test_a_client_of_some_topics_does_not_hear_of_others(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    hidden = job("a", topic="u")
    pushed = await bucket.store.push(0, [hidden], Scope(("u",)))
    assert (pushed.codes, pushed.other_topics) == ([Code.JOB_EXISTS], [None])
