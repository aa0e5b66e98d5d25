"""add_history, history: what servers record of the past, whatever the clock, the topics and other servers do."""

from typing import Any, Final

import pytest

from delayqueue.answers.topics import TopicRates
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.history_steps import MOST_TOPICS, RINGS, HistoryStep, Mark, Row, TopicSum
from delayqueue.domain.topic_counters import Counts, TopicCounters
from tests.store.bucket import HOSTILE, Bucket, on_zset
from tests.store.turning import DAY_MS, START_MS, Clock, coarse

MINUTE_MS: Final = 60_000
YEAR_MS: Final = 365 * DAY_MS
ZEROS: Final = (0, 0, 0, 0)


def pushed(
    topic: str | TopicSum, number: int, depth: tuple[int, int, int, int] | None = None
) -> Row:
    return Row(topic, Counts(pushed=number), depth)


async def last_of(
    bucket: Bucket, span: str = "3h", topic: str | None = None, scope: Scope = EVERYWHERE
) -> HistoryStep | None:
    """The current step."""
    return (await bucket.store.history.read(RINGS[span], topic, scope)).steps[-1]


async def pushed_by_slot(bucket: Bucket, span: str, topic: str | None = None) -> dict[int, int]:
    """The pushed jobs by the start of their step in ms, for steps with data."""
    found = await bucket.store.history.read(RINGS[span], topic, EVERYWHERE)
    steps = enumerate(found.steps)
    return {
        found.start_ms + i * RINGS[span].step_ms: step.counts.pushed for i, step in steps if step
    }


async def test_what_two_servers_count_is_added(bucket: Bucket) -> None:
    one, two = bucket.store.history, bucket.store.history
    counts = Counts(
        pushed=1, delivered=2, finished=3, failed=4, late=2, late_sum_ms=50, late_worst_ms=40
    )
    assert await one.add([Row(TopicSum.ALL, counts), Row("t", counts)])
    assert not await two.add([Row(TopicSum.ALL, counts), Row("t", counts)])
    await one.add([Row(TopicSum.ALL, Counts(), (5, 0, 1, 0)), Row("t", Counts(), (5, 0, 0, 0))])
    await two.add([Row(TopicSum.ALL, Counts(late_worst_ms=60), (2, 3, 0, 0))])
    doubled = Counts(2, 4, 6, 8, 4, 100, 40)
    for span in RINGS:
        assert await last_of(bucket, span, "t") == HistoryStep(doubled, (5, 0, 0, 0))
        total = await last_of(bucket, span)
        assert total == HistoryStep(Counts(2, 4, 6, 8, 4, 100, 60), (5, 3, 1, 0))


@coarse
async def test_flushes_at_the_edge_of_a_slot_stand_in_one_of_the_two(
    wheel: Bucket, clock: Clock
) -> None:
    history = wheel.store.history
    clock.now_ms = START_MS + MINUTE_MS - 1
    assert await history.add([pushed(TopicSum.ALL, 1)])
    clock.pass_ms(1)
    assert await history.add([pushed(TopicSum.ALL, 2)])
    assert not await history.add([pushed(TopicSum.ALL, 4)])
    minutes = {START_MS: 1, START_MS + MINUTE_MS: 6}
    assert await pushed_by_slot(wheel, "3h") == minutes
    assert await pushed_by_slot(wheel, "2d") == {START_MS: 7}
    assert await pushed_by_slot(wheel, "30d") == {START_MS: 7}


@coarse
async def test_a_slot_is_kept_for_a_turn_of_its_ring_and_gives_its_key_to_the_next(
    wheel: Bucket, clock: Clock
) -> None:
    history, ring = wheel.store.history, RINGS["3h"]
    await history.add([pushed(TopicSum.ALL, 1)])
    clock.pass_ms(ring.step_ms * (ring.places - 1))
    assert await pushed_by_slot(wheel, "3h") == {START_MS: 1}
    clock.pass_ms(ring.step_ms)
    assert await pushed_by_slot(wheel, "3h") == {}
    await history.add([pushed(TopicSum.ALL, 2)])
    assert await pushed_by_slot(wheel, "3h") == {START_MS + ring.step_ms * ring.places: 2}
    assert len(await wheel.redis.keys("*:history:60000:*")) == 1


@coarse
@pytest.mark.parametrize("step_ms", [YEAR_MS, -YEAR_MS])
async def test_a_clock_that_was_wrong_leaves_nothing_behind(
    wheel: Bucket, clock: Clock, step_ms: int
) -> None:
    history = wheel.store.history
    await history.add([pushed(TopicSum.ALL, 1)], [Mark("started", 0, 0, "here")])
    clock.pass_ms(step_ms)
    for _ in range(3):
        await history.add([pushed(TopicSum.ALL, 2)])
        clock.pass_ms(MINUTE_MS)
    clock.now_ms = START_MS + MINUTE_MS
    await history.add([pushed(TopicSum.ALL, 4)])
    assert (await pushed_by_slot(wheel, "3h"))[START_MS + MINUTE_MS] == 4
    assert 2 not in (await pushed_by_slot(wheel, "3h")).values()
    assert len(await wheel.redis.keys("*:history:*")) < 10
    clock.pass_ms(31 * DAY_MS)
    assert await pushed_by_slot(wheel, "30d") == {}


@on_zset
async def test_a_topic_is_named_as_it_is_and_nothing_else(bucket: Bucket) -> None:
    history = bucket.store.history
    names = [*HOSTILE, "a", "o", "s", "n", "l", "ta", ",", "1,2,3,"]
    await history.add([pushed(topic, place + 1) for place, topic in enumerate(names)])
    await history.add([pushed(TopicSum.ALL, 1, ZEROS)])
    for place, topic in enumerate(names):
        step = await last_of(bucket, topic=topic)
        assert step is not None
        assert step.counts.pushed == place + 1
    assert await last_of(bucket, topic="unknown") == HistoryStep(Counts(), ZEROS)


@on_zset
async def test_a_slot_names_some_topics_and_adds_up_the_others(bucket: Bucket) -> None:
    history = bucket.store.history
    for first in range(0, 3 * MOST_TOPICS, MOST_TOPICS):
        names = [f"t{number}" for number in range(first, first + MOST_TOPICS)]
        await history.add(
            [*(pushed(topic, 1, (0, 2, 0, 0)) for topic in names), pushed(TopicSum.OTHERS, 5)]
        )
    await history.add([pushed(TopicSum.ALL, 1, (0, 600, 0, 0)), pushed("t1", 1)])
    assert await last_of(bucket, topic="t1") == HistoryStep(Counts(pushed=2), (0, 2, 0, 0))
    assert await last_of(bucket, topic="t150") is None
    redis: Any = bucket.redis  # redis-py's own types say bytes or str for every answer
    [key] = await redis.keys("*:history:60000:*")
    assert await redis.hlen(key) == MOST_TOPICS + 5
    assert (await redis.hget(key, "o")).split(b",")[0] == b"215"
    assert await redis.object("encoding", key) != b"hashtable"  # it is small
    assert await redis.memory_usage(key) < 7000


@coarse
async def test_rates_are_those_of_the_last_minute(wheel: Bucket, clock: Clock) -> None:
    history = wheel.store.history
    assert await history.rates(["t"]) == {}  # nobody has counted anything
    counts = Counts(pushed=120, delivered=60, finished=30, failed=6)
    rows = [Row(TopicSum.ALL, counts, ZEROS), Row("t", counts), Row("u", Counts(pushed=6))]
    await history.add(rows)
    assert await history.rates(["t", "unknown"]) == {
        "t": TopicRates(2, 1, 0.5, 0.1),
        "unknown": TopicRates(0, 0, 0, 0),
    }
    clock.pass_ms(MINUTE_MS + MINUTE_MS // 4)
    await history.add([Row(TopicSum.ALL, Counts(pushed=30)), Row("t", Counts(pushed=30))])
    # three quarters of the minute before, and what came since
    assert await history.rates(["t", "u"]) == {
        "t": TopicRates(2, 0.75, 0.375, 0.075),
        "u": TopicRates(0.075, 0, 0, 0),
    }
    clock.pass_ms(2 * MINUTE_MS)
    assert await history.rates(["t"]) == {}


@on_zset
async def test_a_topic_that_a_full_slot_does_not_name_has_no_rates(bucket: Bucket) -> None:
    history = bucket.store.history
    named = [Row(f"t-{n}", Counts(pushed=60)) for n in range(MOST_TOPICS)]
    await history.add([Row(TopicSum.ALL, Counts(), ZEROS), *named])
    assert (await history.rates(["t-0", "late"])).keys() == {"t-0"}


@on_zset
async def test_a_client_sees_the_topics_that_it_may_reach(bucket: Bucket) -> None:
    await bucket.store.history.add(
        [
            pushed(TopicSum.ALL, 7, (1, 2, 0, 0)),
            pushed("a.1", 1, (1, 0, 0, 0)),
            pushed("a.2", 2),
            pushed("b", 4),
        ]
    )
    scope = Scope.of(["a.*"])
    assert await last_of(bucket, scope=scope) == HistoryStep(Counts(pushed=3), (1, 0, 0, 0))
    assert await last_of(bucket, topic="b", scope=scope) is None
    assert await last_of(bucket, topic="a.2", scope=scope) == HistoryStep(Counts(pushed=2), ZEROS)


@on_zset
@pytest.mark.parametrize("kind", ["string", "list", "hash"])
async def test_what_stands_in_its_keys_and_is_not_its_own_is_replaced(
    bucket: Bucket, kind: str
) -> None:
    history = bucket.store.history
    await history.add([pushed(TopicSum.ALL, 1), pushed("t", 1)], [Mark("started", 0, 0, "here")])
    keys: list[Any] = await bucket.redis.keys("*:history:*")
    for key in keys:
        if kind == "hash" and not key.endswith(b"marks"):
            await bucket.redis.hset(key, mapping={"a": "\x00broken", "n": "many"})
            continue
        await bucket.redis.delete(key)
        if kind == "string":
            await bucket.redis.set(key, "x")
        elif kind == "list":
            await bucket.redis.rpush(key, "x")
        else:
            await bucket.redis.hset(key, "x", "y")
    found = await history.read(RINGS["3h"], None, EVERYWHERE)
    assert found.marks == []
    await history.add([pushed(TopicSum.ALL, 3)], [Mark("started", 0, 0, "here")])
    step = await last_of(bucket)
    assert step is not None
    assert step.counts.pushed == 3
    assert len((await history.read(RINGS["3h"], None, EVERYWHERE)).marks) == 1


@coarse
async def test_what_all_servers_saw_is_marked_once(wheel: Bucket, clock: Clock) -> None:
    history = wheel.store.history
    for server in ("one", "two"):
        marks = [Mark("outage", 9_000, 4_000, ""), Mark("started", 1_000, 0, server)]
        await history.add([], marks)
        clock.pass_ms(2_000)
    await history.add([], [Mark("failover", 11_000, 0, "")])
    clock.pass_ms(MINUTE_MS)
    await history.add([], [Mark("outage", 9_000, 4_000, "")])
    found = await history.read(RINGS["3h"], None, EVERYWHERE)
    assert [(mark.kind, mark.server) for mark in found.marks] == [
        ("outage", ""),
        ("failover", ""),
        ("started", "two"),
        ("started", "one"),
        ("outage", ""),
    ]
    assert found.marks[-1].at == (clock.now_ms - MINUTE_MS - 4_000 - 9_000) / 1000
    clock.pass_ms(4 * 60 * MINUTE_MS)
    assert (await history.read(RINGS["3h"], None, EVERYWHERE)).marks == []
    assert len((await history.read(RINGS["2d"], None, EVERYWHERE)).marks) == 5


def test_the_counters_tell_the_busiest_topics_apart() -> None:
    counters = TopicCounters()
    for topic, number in (("a", 1), ("b", 3), ("c", 2)):
        counters.count("pushed", topic, number, ())
    counters.count("delivered", "b", 2, (30, 50))
    counters.count("taken", "b", 1, ())
    counters.count("deleted", "b", 3, (7,))
    counters.count("deleted", "d", 3, ())  # they were not reserved
    topics, others = counters.take(1)
    assert topics == {"b": Counts(3, 3, 2, 0, 2, 80, 50)}
    assert others == Counts(pushed=3)
    assert counters.take(1) == ({}, Counts())
