"""The timing wheel by itself. The other tests run with both schedulers, and show that it does what sorted sets do."""

import random
from typing import Any, Final

import pytest

from delayqueue.errors import Code
from delayqueue.store.types import Range
from tests.store.bucket import HOUR_MS, Bucket, calls_of, job
from tests.store.turning import DAY_MS, START_MS, Clock, fine

CROWD: Final = 30_000  # a script that unpacks more than 8,000 values fails


async def next_due_ms(wheel: Bucket) -> int | None:
    """How long the timer may sleep; nothing is due."""
    ticked = await wheel.store.tick(0)
    assert ticked.change.ready == []
    return ticked.change.next_due_ms


async def delivered(wheel: Bucket) -> list[str]:
    """The ids of all due jobs, in the order in which they are handed out; none of them comes twice."""
    await wheel.tick()
    ids = await wheel.pop_ids()
    await wheel.finish(*ids)
    return ids


async def test_a_job_three_hours_ahead_lets_the_hand_pass_twice(
    wheel: Bucket, clock: Clock
) -> None:
    await wheel.push(job("a", delay_ms=3 * HOUR_MS))
    for hours_left in (3, 2, 1):
        assert await next_due_ms(wheel) == hours_left * HOUR_MS
        clock.pass_ms(HOUR_MS)
    await wheel.tick()
    assert await wheel.pop_ids() == ["a"]


async def test_jobs_of_one_slot_and_other_rounds_are_due_in_their_own(
    wheel: Bucket, clock: Clock
) -> None:
    await wheel.push(*(job(f"in {n} h", delay_ms=n * HOUR_MS) for n in (24 * 400, 2, 7, 1)))
    for hours, expected in ((1, "in 1 h"), (1, "in 2 h"), (5, "in 7 h"), (9593, "in 9600 h")):
        clock.pass_ms(hours * HOUR_MS - 1)
        assert await next_due_ms(wheel) == 1
        clock.pass_ms(1)
        assert await delivered(wheel) == [expected]


EDGES: Final = [
    (0, "the first ms of a turn"),
    (-1, "the last ms of a turn"),
    (1, "one later"),
    (999, "the last ms of a slot of a second"),
    (1000, "the first ms of the next"),
    (59_999, "the last ms of a slot of a minute"),
    (60_000, "the first ms of the next"),
    (HOUR_MS - 1, "the last ms of the last slot"),
]


@pytest.mark.parametrize("edge_ms", [row[0] for row in EDGES], ids=[row[1] for row in EDGES])
async def test_a_job_is_due_to_the_millisecond_at_every_edge(
    wheel: Bucket, clock: Clock, edge_ms: int
) -> None:
    due_ms = START_MS + HOUR_MS + edge_ms
    await wheel.push(job("a", due_ms=due_ms))
    assert (await wheel.view("a")).due_ms == due_ms
    clock.now_ms = due_ms - 1
    assert await next_due_ms(wheel) == 1
    clock.now_ms = due_ms
    await wheel.tick()
    assert await wheel.pop_ids() == ["a"]


DOWNTIMES: Final = [
    (5_000, "seconds"),
    (HOUR_MS - 1, "all but a turn"),
    (HOUR_MS, "a turn"),
    (HOUR_MS + 1, "more than a turn"),
    (7 * HOUR_MS, "hours"),
    (30 * DAY_MS, "a month"),
]


@pytest.mark.parametrize(
    "down_ms", [row[0] for row in DOWNTIMES], ids=[row[1] for row in DOWNTIMES]
)
async def test_after_a_downtime_all_that_fell_due_is_caught_up_in_its_order(
    wheel: Bucket, clock: Clock, down_ms: int
) -> None:
    dice = random.Random(down_ms)
    delays = [0, down_ms, *(dice.randint(1, down_ms) for _ in range(200)), down_ms + 1]
    await wheel.push(*(job(f"{n}", delay_ms=delay + 1) for n, delay in enumerate(delays)))
    clock.pass_ms(down_ms + 1)
    await wheel.tick()
    due = [delays[int(job_id)] for job_id in await wheel.pop_ids()]
    assert due == sorted(delays[:-1])
    assert await next_due_ms(wheel) == 1


@fine
async def test_a_tick_after_a_downtime_moves_no_more_than_its_limit(
    wheel: Bucket, clock: Clock
) -> None:
    await wheel.push(*(job(f"{n}", delay_ms=1 + n * 7_919) for n in range(500)))
    clock.pass_ms(DAY_MS)
    moved: list[int] = []
    while sum(moved) < 500:
        (ready, next_due, _), *_ = await wheel.store.tick(0, limit=150)
        moved.append(dict(ready)["t"])
        assert (next_due == 0) == (sum(moved) < 500)
    assert max(moved) == 150


async def test_a_clock_that_steps_back_makes_nothing_early_and_loses_nothing(
    wheel: Bucket, clock: Clock
) -> None:
    await wheel.push(job("later", delay_ms=1000), job("ready", delay_ms=1))
    clock.pass_ms(10)
    await wheel.tick()
    clock.pass_ms(-2 * HOUR_MS)
    assert await next_due_ms(wheel) == 2 * HOUR_MS + 990
    await wheel.push(job("behind the hand", delay_ms=500))
    clock.pass_ms(500)
    assert await delivered(wheel) == ["ready", "behind the hand"]
    clock.pass_ms(2 * HOUR_MS + 490)
    assert await delivered(wheel) == ["later"]


async def test_a_job_that_was_due_when_it_was_handed_out_is_so_after_a_step_back(
    wheel: Bucket, clock: Clock
) -> None:
    await wheel.push(job("a", delay_ms=1000))
    clock.pass_ms(1000)
    await wheel.tick()
    assert await wheel.pop_ids() == ["a"]
    clock.pass_ms(-500)
    assert (await wheel.release("a")).code == Code.OK
    assert await wheel.pop_ids() == ["a"]


@pytest.mark.parametrize("scheduler", ["wheel"])
@pytest.mark.parametrize("redis", ["redis"], indirect=True)
async def test_a_long_forecast_is_made_of_short_calls(bucket: Bucket) -> None:
    now_ms = await bucket.now_ms()
    half_past_ms = now_ms // HOUR_MS * HOUR_MS + HOUR_MS // 2
    dice = random.Random(3)
    delays = [dice.randint(HOUR_MS, 20 * HOUR_MS) for _ in range(5000)]
    for first in range(0, 5000, 1000):
        batch = range(first, first + 1000)
        await bucket.push(*(job(f"{n}", due_ms=now_ms + delays[n]) for n in batch))
    before = [await calls_of(bucket.redis, name) for name in ("zcount", "fcall")]
    counts = await bucket.store.forecast(0, ["t"], half_past_ms, HOUR_MS, 30)
    assert sum(counts) == 5000
    zcounts = await calls_of(bucket.redis, "zcount") - before[0]
    assert zcounts > 10 * 3600
    assert zcounts / (await calls_of(bucket.redis, "fcall") - before[1]) < 8_000


@pytest.mark.parametrize("scheduler", ["wheel"])
@pytest.mark.parametrize("redis", ["redis"], indirect=True)
async def test_a_slot_may_hold_more_jobs_than_lua_has_room_for(bucket: Bucket) -> None:
    second_ms = (await bucket.now_ms() + 2 * DAY_MS) // 1000 * 1000
    for first in range(0, CROWD, 1000):
        batch = range(first, first + 1000)
        await bucket.push(*(job(f"{n}", body="", due_ms=second_ms + n % 1000) for n in batch))
    assert (await bucket.counts()).delayed == CROWD
    assert await bucket.delete("0", "5500", f"{CROWD - 1}") == [Code.OK] * 3
    assert (await bucket.reschedule("7")).code == Code.OK
    assert await bucket.state("8") == "delayed"
    await bucket.tick()
    assert await bucket.pop_ids() == ["7"]
    taken = await bucket.take(Range(second_ms, second_ms))
    assert {int(job.id) % 1000 for job in taken} == {0}
    dropped, more, _ = await bucket.store.purge(0, "t", "delayed", 50)
    assert (dropped, more) == (50, True)
    assert (await bucket.counts()).delayed == CROWD - 4 - len(taken) - 50


@fine
async def test_a_slot_that_rings_without_jobs_does_not_keep_the_timer_busy(wheel: Bucket) -> None:
    await wheel.push(job("a", delay_ms=HOUR_MS))
    client: Any = wheel.redis
    await client.zadd(wheel.key("wheel:t"), {"7": 7})
    await client.zadd(wheel.key("timers"), {"t": 7})
    assert await next_due_ms(wheel) == HOUR_MS


@fine
@pytest.mark.parametrize("key", ["slot:{slot}:bad", "wheel:bad", "rounds:bad"])
async def test_a_broken_key_of_a_wheel_holds_up_no_other_topic(
    clock: Clock, key: str, wheel: Bucket
) -> None:
    for topic in ("bad", "good"):
        await wheel.push(job(topic, topic=topic, delay_ms=1000))
    await wheel.spoil(key.format(slot=(START_MS + 1000) // 1000 % 3600))
    await wheel.let_forget()
    refused = job("refused", topic="bad", delay_ms=1000)
    assert await wheel.push(refused, job("also", topic="good", delay_ms=1000)) == [
        Code.UNAVAILABLE,
        Code.OK,
    ]
    clock.pass_ms(1000)
    ticked = await wheel.store.tick(0)
    assert ticked.change.ready == [("good", 2)]
    assert ticked.set_aside == 1
    assert (await wheel.store.tick(0)).change.next_due_ms != 0
    await wheel.redis.flushdb()  # the broken key is not judged
