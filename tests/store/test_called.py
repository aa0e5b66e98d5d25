"""Jobs with a call: ready ones stand apart, no worker gets them, and whoever calls gets those of all topics."""

from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import NAME, Call
from delayqueue.domain.job import CALLS, USUAL_PRIORITY, Job, Reserved
from delayqueue.domain.subscriber import Method
from delayqueue.errors import Code
from delayqueue.store.topics import Topics
from delayqueue.store.types import Demand, Listing, Recording
from delayqueue.store.verbs import RECORD, REQUEUE, Requeue
from tests.store.bucket import (
    ALWAYS,
    HOUR_MS,
    LATER_MS,
    SOON_MS,
    Bucket,
    a_moment,
    job,
    later,
    on_one_store,
    on_zset,
)

CALL: Final = Call(
    url="https://example.com/?a=1",
    method=Method.PUT,
    headers={"Authorization": "Bearer secret", "X-Empty": "x"},
    timeout_ms=5000,
    expect="success",
    give_up=True,
)


def called(job_id: str, **options: Any) -> Job:
    return job(job_id, call=CALL, **options)


async def calls(bucket: Bucket, wanted: int = 1000) -> list[str]:
    return await bucket.pop_ids(CALLS, wanted=wanted)


def failure(job_id: str, held: Reserved) -> Recording:
    nonce = held.nonce
    return Recording(
        job_id, nonce, NAME, succeeded=False, message="503", attempts=1, took_ms=40, delay_ms=0
    )


@pytest.mark.parametrize("call", [CALL, Call(url="http://x/")])
async def test_a_call_is_kept_as_it_was_pushed(bucket: Bucket, call: Call) -> None:
    await bucket.push(job("a", call=call))
    assert (await bucket.view("a")).call == call
    [popped] = await bucket.pop(CALLS)
    assert (popped.call, popped.topic, popped.attempt) == (call, "t", 1)


@pytest.mark.parametrize("priority", [USUAL_PRIORITY, 7])
@pytest.mark.parametrize("delay_ms", [0, SOON_MS])
async def test_no_worker_gets_it(bucket: Bucket, priority: int, delay_ms: int) -> None:
    await bucket.push(
        called("a", priority=priority, delay_ms=delay_ms), job("b", delay_ms=delay_ms)
    )
    await a_moment()
    await bucket.tick()
    counts = await bucket.counts()
    assert (counts.ready, counts.called) == (2, 1)
    assert await bucket.pop_ids() == ["b"]
    [(code, _)], _ = await bucket.store.reserve(0, ["a"])
    assert code == Code.NO_SUCH_JOB
    assert await calls(bucket) == ["a"]


async def test_polls_are_told_of_it_apart(bucket: Bucket) -> None:
    pushed = await bucket.store.push(0, [called("a"), job("b"), called("c", topic="u")])
    assert dict(pushed.change.ready) == {CALLS: 2, "t": 1}
    await bucket.push(called("d", delay_ms=SOON_MS), job("e", delay_ms=SOON_MS))
    await a_moment()
    assert dict((await bucket.store.tick(0)).change.ready) == {CALLS: 1, "t": 1}


async def test_the_smallest_priority_goes_first_then_the_first_that_was_due(bucket: Bucket) -> None:
    await bucket.push(
        called("late", due_ms=2000), called("early", due_ms=1000), called("urgent", priority=1)
    )
    assert await calls(bucket) == ["urgent", "early", "late"]


async def test_topics_take_turns(bucket: Bucket) -> None:
    """However many jobs one has, and however few it is asked for."""
    await bucket.push(*(called(f"t{n}", topic="t") for n in range(50)))
    await bucket.push(called("u0", topic="u"), called("v0", topic="v"))
    first = await calls(bucket, wanted=10)
    assert (len(first), {"u0", "v0"} <= {*first}) == (10, True)
    await bucket.push(called("u1", topic="u"))
    await a_moment()
    assert "u1" in await calls(bucket, wanted=2)
    assert len(await calls(bucket)) == 41


async def test_a_pop_that_looked_at_some_topics_only_says_so(bucket: Bucket) -> None:
    """Otherwise the poll would wait for the next report, although jobs are ready."""
    await bucket.push(*(called(f"{n}", topic=f"topic-{n}") for n in range(100)))
    popped = await bucket.store.pop(0, [Demand((CALLS,), 1000)])
    assert (len(popped.jobs[0]), popped.complete) == (64, 0)
    popped = await bucket.store.pop(0, [Demand((CALLS,), 1000)])
    assert (len(popped.jobs[0]), popped.complete) == (36, 1)


async def test_a_paused_topic_keeps_its_calls_and_holds_up_no_other(bucket: Bucket) -> None:
    topics = Topics(bucket.store, EVERYWHERE)
    await topics.pause("t", 0)
    await bucket.push(called("a"), called("b", topic="u"))
    assert await calls(bucket) == ["b"]
    assert await calls(bucket) == []
    change = await bucket.store.pause(0, "t", None)
    assert dict(change.ready)[CALLS] == 1
    assert await calls(bucket) == ["a"]


@on_one_store
async def test_the_more_topics_are_held_the_longer_they_are_not_looked_at(bucket: Bucket) -> None:
    """Each once a second, a hundred thousand would keep the store busy."""
    topics = [f"topic-{number}" for number in range(3000)]
    await bucket.redis.hset(
        bucket.key("topics"), mapping=dict.fromkeys(topics, '{"paused_until":0}')
    )
    await bucket.push(*(called(topic, topic=topic) for topic in topics))
    began_ms = await bucket.now_ms()
    popped = await bucket.store.pop(0, [Demand((CALLS,), 1000)])
    while not popped.complete:
        popped = await bucket.store.pop(0, [Demand((CALLS,), 1000)])
    held: Any = await bucket.redis.zrange(bucket.key("called_topics"), 0, 0, withscores=True)
    assert held[0][1] >= began_ms + len(topics)
    await bucket.store.pause(0, "topic-7", None)
    # on a slow machine it is time to look at the others, too: at a few in each call
    found = [await calls(bucket) for _ in range(len(topics) // 50)]
    assert [each for each in found if each] == [["topic-7"]]


async def test_a_topics_limit_holds_for_calls(bucket: Bucket) -> None:
    topics = Topics(bucket.store, EVERYWHERE)
    await topics.limit("t", {"concurrency": 1})
    await bucket.push(called("a", due_ms=1), called("b", due_ms=2), job("c"))
    assert await calls(bucket) == ["a"]
    assert await bucket.pop_ids() == []
    await bucket.finish("a")
    assert await calls(bucket) == ["b"]
    await bucket.finish("b")
    assert await bucket.pop_ids() == ["c"]


async def test_one_that_is_put_back_is_called_at_once_or_after_a_while(bucket: Bucket) -> None:
    await bucket.push(called("a"))
    [popped] = await bucket.pop(CALLS)
    await bucket.requeue(popped)
    [popped] = await bucket.pop(CALLS)
    assert popped.attempt == 1
    back = Requeue("a", popped.nonce, delay_ms=LATER_MS)
    await bucket.store.all_of(REQUEUE, [back])
    view = await bucket.view("a")
    assert (view.state, view.attempt) == ("delayed", 0)
    await later()
    await bucket.tick()
    assert await calls(bucket) == ["a"]


async def test_one_that_has_failed_before_is_put_back_without_counting_an_attempt(
    bucket: Bucket,
) -> None:
    await bucket.push(called("a"))
    [popped] = await bucket.pop(CALLS)
    await bucket.store.all_of(RECORD, [failure("a", popped)])
    await bucket.release("a", nonce=popped.nonce)
    for _ in range(2):
        await a_moment()
        [popped] = await bucket.pop(CALLS)
        assert popped.attempt == 2
        await bucket.requeue(popped)


async def test_a_priority_can_change_and_go(bucket: Bucket) -> None:
    await bucket.push(called("a", due_ms=1), called("b", due_ms=2))
    await bucket.change("b", priority=1)
    await bucket.change("a", priority=9)
    await bucket.change("a", priority=USUAL_PRIORITY)
    assert await calls(bucket) == ["b", "a"]


async def test_a_subscriber_of_that_name_is_not_told_of_it(bucket: Bucket) -> None:
    """Whoever may see the subscriber may not see the jobs of all topics, nor what was answered."""
    await bucket.push(called("a"))
    [popped] = await bucket.pop(CALLS)
    await bucket.store.all_of(RECORD, [failure("a", popped)])
    assert await bucket.redis.keys(bucket.key(f"subscriber_*:{NAME}")) == []


async def test_counts_and_ages_take_it_in(bucket: Bucket) -> None:
    await bucket.push(called("a"))
    await later()
    counts = await bucket.counts()
    assert (counts.ready, (counts.oldest_age_ms or 0) >= LATER_MS) == (1, True)


async def test_it_is_listed_in_its_state(bucket: Bucket) -> None:
    await bucket.push(called("a"), job("b"), called("c", delay_ms=HOUR_MS))
    pages = [page async for page in bucket.pages(Listing("t", "", "ready", ALWAYS))]
    assert {each.id for page in pages for each in page} == {"a", "b"}


# what an older version of the server, without calls, leaves behind


@on_zset
async def test_no_worker_gets_one_that_an_older_server_made_ready(bucket: Bucket) -> None:
    await bucket.push(called("a", delay_ms=HOUR_MS), job("b"))
    await bucket.redis.zrem(bucket.key("delay:t"), "a")
    await bucket.redis.lpush(bucket.key("dq_queue_t"), "a")
    popped = await bucket.store.pop(0, [Demand(("t",), 9)])
    assert ([each.id for each in popped.jobs[0]], dict(popped.change.ready)) == (["b"], {CALLS: 1})
    assert await calls(bucket) == ["a"]


@on_zset
async def test_nor_one_that_it_put_among_those_with_a_priority(bucket: Bucket) -> None:
    await bucket.push(called("a", due_ms=1, priority=7), job("b"))
    await bucket.redis.delete(bucket.key("called:t"))
    await bucket.redis.zadd(bucket.key("ranked:t"), {"000000000000010001a": 7})
    assert await bucket.pop_ids() == ["b"]
    assert await calls(bucket) == ["a"]


async def test_an_entry_of_a_job_that_an_older_server_replaced_is_dropped(bucket: Bucket) -> None:
    await bucket.push(called("a", due_ms=1))
    await bucket.push(job("a"))
    await bucket.redis.zadd(bucket.key("called:t"), {"000000000000010001a": USUAL_PRIORITY})
    await bucket.redis.zadd(bucket.key("called_topics"), {"t": 0})
    assert (await calls(bucket), await bucket.pop_ids()) == ([], ["a"])


async def test_topics_are_served_though_the_clock_was_put_back(bucket: Bucket) -> None:
    await bucket.push(called("a"))
    await bucket.redis.zadd(bucket.key("called_topics"), {"t": await bucket.now_ms() + HOUR_MS})
    assert await calls(bucket) == ["a"]
