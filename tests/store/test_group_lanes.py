"""Strict order holds between a group's jobs with a call, which the server makes, and those of its workers."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from delayqueue.domain.job import CALLS, PolledTopic
from delayqueue.store.verbs import Ending
from tests.store.bucket import HOUR_MS, SOON_MS, Bucket, a_moment, job
from tests.store.test_groups import CALL, limit, of
from tests.store.test_inspect import examined

OTHER: Final[dict[PolledTopic, PolledTopic]] = {"t": CALLS, CALLS: "t"}


def in_lane(topic: PolledTopic, job_id: str, **options: Any) -> Any:
    """A job of the group that is handed out to those who ask for `topic`."""
    return of("a", job_id, call=CALL if topic == CALLS else None, **options)


@pytest.fixture
async def strict(bucket: Bucket) -> Bucket:
    await limit(bucket, group_order=True)
    return bucket


async def test_a_groups_jobs_go_in_the_order_of_their_pushes_whoever_gets_them(
    strict: Bucket,
) -> None:
    order: list[PolledTopic] = ["t", CALLS, CALLS, "t", "t", CALLS]
    await strict.push(*(in_lane(topic, f"{n}") for n, topic in enumerate(order)))
    for n, topic in enumerate(order):
        assert await strict.pop_ids(OTHER[topic]) == []
        assert await strict.pop_ids(topic) == [f"{n}"]
        assert await strict.pop_ids(OTHER[topic]) == []
        await strict.finish(f"{n}")
    assert (await strict.counts()).ready == 0


@pytest.mark.parametrize("topic", OTHER)
async def test_who_waits_for_the_other_lane_is_told_when_its_job_has_ended(
    strict: Bucket, topic: PolledTopic
) -> None:
    await strict.push(in_lane(topic, "first"), in_lane(OTHER[topic], "second"))
    assert await strict.pop_ids(OTHER[topic]) == []
    assert await strict.pop_ids(topic) == ["first"]
    _, change = await strict.store.finish(0, [Ending("first", "", "")])
    assert dict(change.ready) == {OTHER[topic]: 1}
    assert await strict.pop_ids(OTHER[topic]) == ["second"]


@pytest.mark.parametrize("topic", OTHER)
async def test_a_retry_in_one_lane_holds_up_the_other(strict: Bucket, topic: PolledTopic) -> None:
    await strict.push(in_lane(topic, "first"), in_lane(OTHER[topic], "second"))
    held = await strict.pop_one(topic)
    await strict.release(held.id, nonce=held.nonce, delay_ms=SOON_MS)
    assert await strict.pop_ids(OTHER[topic]) == []
    await a_moment()
    await strict.tick()
    assert await strict.pop_ids(OTHER[topic]) == []
    assert await strict.pop_ids(topic) == ["first"]
    await strict.finish("first")
    assert await strict.pop_ids(OTHER[topic]) == ["second"]


async def test_a_call_that_is_put_back_stays_first(strict: Bucket) -> None:
    """As when the server has no room for another call: workers wait for it, and do not overtake."""
    await strict.push(in_lane(CALLS, "first"), in_lane("t", "second"))
    for _ in range(2):
        await strict.requeue(await strict.pop_one(CALLS))
        assert await strict.pop_ids("t") == []
    assert await strict.pop_ids(CALLS) == ["first"]


async def test_a_more_urgent_job_goes_first_whoever_gets_it(strict: Bucket) -> None:
    await strict.push(in_lane("t", "usual"), in_lane(CALLS, "urgent", priority=1))
    assert await strict.pop_ids("t") == []
    assert await strict.pop_ids(CALLS) == ["urgent"]


async def test_other_groups_and_topics_without_order_do_not_wait(bucket: Bucket) -> None:
    await bucket.push(in_lane(CALLS, "first"), in_lane("t", "second"), of("b", "other"))
    assert {*await bucket.pop_ids("t")} == {"second", "other"}
    await limit(bucket, group_order=True)
    await bucket.push(in_lane("t", "third"), of("c", "new"), job("alone"))
    assert {*await bucket.pop_ids("t")} == {"new", "alone"}


async def expire(bucket: Bucket) -> None:
    await a_moment()
    await bucket.tick()


async def forget(bucket: Bucket) -> None:
    """As an older version of the server ends it, which knows no groups; then fsck."""
    for name in "job", "priorities":
        await bucket.redis.hdel(bucket.key(name), "first")
    await examined(bucket, repair=True)


GONE: Final[dict[str, Callable[[Bucket], Awaitable[Any]]]] = {
    "deleted": lambda bucket: bucket.delete("first"),
    "buried": lambda bucket: bucket.bury("first"),
    "expired": expire,
    "taken": lambda bucket: bucket.take(most=1),
    "replaced": lambda bucket: bucket.push(of("a", "first", call=CALL, delay_ms=HOUR_MS)),
    "of another group": lambda bucket: bucket.push(of("b", "first", call=CALL)),
    "put off": lambda bucket: bucket.change("first", delay_ms=HOUR_MS),
    "less urgent": lambda bucket: bucket.change("first", priority=5000),
    "forgotten": forget,
}


@pytest.mark.parametrize("how", GONE)
async def test_a_ready_job_that_goes_lets_the_other_lane_go(strict: Bucket, how: str) -> None:
    expire_ms = SOON_MS if how == "expired" else 0
    await strict.push(in_lane(CALLS, "first", expire_ms=expire_ms), in_lane("t", "second"))
    assert await strict.pop_ids("t") == []
    assert (await strict.counts()).groups_held == 1
    await GONE[how](strict)
    assert (await strict.counts()).groups_held == 0
    assert await strict.pop_ids("t") == ["second"]


async def test_a_pop_that_finds_the_first_job_without_a_record_lets_the_other_lane_go(
    strict: Bucket,
) -> None:
    await strict.push(in_lane(CALLS, "first"), in_lane("t", "second"))
    assert await strict.pop_ids("t") == []
    for name in "job", "priorities":
        await strict.redis.hdel(strict.key(name), "first")
    assert await strict.pop_ids(CALLS) == []
    assert await strict.pop_ids("t") == ["second"]


async def test_a_paused_topic_hands_out_nothing_and_goes_on_in_order(strict: Bucket) -> None:
    await strict.push(in_lane(CALLS, "first"), in_lane("t", "second"))
    await strict.store.pause(0, "t", 0)
    assert [await strict.pop_ids(topic) for topic in OTHER] == [[], []]
    await strict.store.pause(0, "t", None)
    assert await strict.pop_ids("t") == []
    assert await strict.pop_ids(CALLS) == ["first"]
