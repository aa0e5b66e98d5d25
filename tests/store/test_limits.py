"""limit: how fast and how many at once a topic's jobs are handed out."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest
from redis.asyncio import Redis

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS
from delayqueue.domain.limit import Limit
from delayqueue.errors import Code
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.servers import Servers
from delayqueue.store.topics import limits_in
from delayqueue.store.types import START, Change, Demand, Recording
from delayqueue.store.verbs import RECORD, REQUEUE, Ending, Requeue
from tests.store.bucket import HOUR_MS, Bucket, TagPage, VerbStore, a_moment, job
from tests.store.conftest import fake
from tests.store.turning import Clock

MANY: Final = 100


async def limit(bucket: Bucket, topic: str = "t", **changes: float | None) -> Limit:
    """Limit the topic; what is in force."""
    limited = await bucket.store.limit(0, topic, changes)
    assert limited.code == Code.OK
    return limited.limit


async def fill(bucket: Bucket, count: int = MANY) -> None:
    """Ready jobs, in the order of their numbers."""
    await bucket.push(*(job(f"{n:03}") for n in range(count)))


async def ask(bucket: Bucket, topic: str = "t", wanted: int = MANY) -> tuple[int, int | None]:
    """How many jobs a caller gets, and ms until the rate admits the next ones, None if it holds none back."""
    popped = await bucket.store.pop(0, [Demand((topic,), wanted)])
    return len(popped.jobs[0]), popped.change.next_due_ms


@pytest.fixture
async def turned(clock: Clock) -> AsyncIterator[Bucket]:
    """A bucket whose clock the test turns."""
    async with fake() as redis:
        bucket = Bucket.over(redis)
        yield bucket
        assert await bucket.violations() == []


async def popped(bucket: Bucket) -> int:
    """How many jobs a caller gets that wants all."""
    return len(await bucket.pop())


# rates, on a clock that the test turns


@pytest.mark.parametrize(
    ("rate", "burst", "after_ms", "expected", "reason"),
    [
        (10, 1, 0, 0, "nothing but the burst at once"),
        (10, 1, 99, 0, "not before a whole one has grown back"),
        (10, 1, 100, 1, "one each 100 ms"),
        (10, 1, 5000, 1, "after a rest no more than the burst"),
        (10, 5, 250, 2, "they grow back one by one"),
        (10, 5, 60_000, 5, "up to the whole burst"),
        (0.5, 1, 1999, 0, "less than one a second"),
        (0.5, 1, 2000, 1, "one each 2 s"),
        (3, 1, 333, 0, "a third of a second is not 333 ms"),
        (3, 1, 334, 1, "a third of a second has passed"),
        (5000, 50, 1, 5, "many within a millisecond"),
    ],
)
async def test_a_rate_lets_so_many_go_after_its_burst(
    turned: Bucket,
    clock: Clock,
    *,
    rate: float,
    burst: int,
    after_ms: int,
    expected: int,
    reason: str,
) -> None:
    await limit(turned, rate=rate, burst=burst)
    await fill(turned)
    assert await popped(turned) == burst
    clock.pass_ms(after_ms)
    assert await popped(turned) == expected, reason


@pytest.mark.parametrize("asked", [1, 7, MANY], ids="{}-a-call".format)
async def test_a_rate_holds_over_time_however_many_are_asked_for(
    turned: Bucket, clock: Clock, asked: int
) -> None:
    await limit(turned, rate=40, burst=2)
    await fill(turned)
    times_ms: list[int] = []
    while len(times_ms) < MANY:
        times_ms += [clock.now_ms] * len(await turned.pop(wanted=asked))
        clock.pass_ms(5)
    lasted_ms = times_ms[-1] - times_ms[0]
    assert lasted_ms == pytest.approx((MANY - 2) * 25, abs=5)


@pytest.mark.parametrize(
    ("rate", "ready", "expected", "reason"),
    [
        (4, 1, (1, HOUR_MS), "no job is held back: the TTR"),
        (4, 2, (1, 250), "the next one"),
        (4, 9, (1, 250), "of many the next one, too"),
        (1000, 200, (100, 10), "a fast topic is woken for some at once"),
    ],
)
async def test_a_pop_tells_when_the_rate_lets_more_go(
    turned: Bucket, clock: Clock, *, rate: float, ready: int, expected: object, reason: str
) -> None:
    await limit(turned, rate=rate)
    await fill(turned, ready)
    assert await ask(turned, wanted=200) == expected, reason


async def test_the_timer_wakes_those_who_wait_when_the_rate_lets_more_go(
    turned: Bucket, clock: Clock
) -> None:
    await limit(turned, rate=4)
    await fill(turned, 3)
    assert await ask(turned) == (1, 250)
    clock.pass_ms(249)
    ticked = await turned.store.tick(0)
    assert (ticked.change.ready, ticked.change.next_due_ms) == ([], 1)
    clock.pass_ms(1)
    assert (await turned.store.tick(0)).change.ready == [("t", 2)]
    assert await ask(turned) == (1, 250)


async def test_nothing_wakes_a_topic_whose_jobs_may_go(turned: Bucket, clock: Clock) -> None:
    await limit(turned, rate=4, burst=2)
    await fill(turned, 5)
    assert await ask(turned, wanted=1) == (1, HOUR_MS), "the TTR of the job that goes"
    assert (await turned.store.tick(0)).change == Change([], HOUR_MS, is_news=False)


async def test_a_faster_rate_counts_at_once(turned: Bucket, clock: Clock) -> None:
    await limit(turned, rate=0.1)
    await fill(turned)
    assert await ask(turned) == (1, 10_000)
    limited = await turned.store.limit(0, "t", {"rate": 100})
    assert limited.change.ready == [("t", MANY - 1)]
    assert await ask(turned) == (0, 10)
    clock.pass_ms(10)
    assert await ask(turned) == (1, 10)


async def test_a_faster_rate_counts_from_when_it_was_set(turned: Bucket, clock: Clock) -> None:
    await limit(turned, rate=0.1)
    await fill(turned)
    assert await ask(turned) == (1, 10_000)
    await limit(turned, rate=100)
    clock.pass_ms(10)
    assert await ask(turned) == (1, 10)


async def test_a_job_that_is_reserved_by_its_id_counts(turned: Bucket, clock: Clock) -> None:
    await limit(turned, rate=1, burst=2)
    await fill(turned)
    await turned.store.reserve(0, ["007"])
    assert await ask(turned) == (1, 1000)


async def test_a_pause_ends_in_a_bucket_that_has_come_to_it(turned: Bucket, clock: Clock) -> None:
    paused = json.dumps({"paused_until": clock.now_ms + 1000})
    await turned.store.call("split_limits", 0, ["t", paused, 1, 2])
    await fill(turned, 1)
    assert await turned.pop_ids() == []
    clock.pass_ms(1000)
    assert (await turned.store.tick(0)).change.ready == [("t", 1)]


@pytest.mark.parametrize(("rate", "burst"), [(1, 1), (10, 2), (0.01, 1)])
async def test_a_clock_that_is_put_back_holds_back_no_longer_than_the_rate(
    turned: Bucket, clock: Clock, rate: float, burst: int
) -> None:
    await limit(turned, rate=rate, burst=burst)
    await fill(turned)
    assert await ask(turned) == (burst, 1000 / rate)
    clock.pass_ms(-HOUR_MS)
    assert await ask(turned) == (0, 1000 / rate)
    await turned.tick()
    clock.pass_ms(round(1000 / rate))
    assert await ask(turned) == (1, 1000 / rate)


async def test_a_delivery_that_is_undone_does_not_count(turned: Bucket, clock: Clock) -> None:
    await limit(turned, rate=1, burst=2)
    await fill(turned)
    await turned.requeue(*await turned.pop())
    assert await ask(turned) == (2, 1000)


async def test_who_waits_hears_that_another_may_go_instead_of_one_that_is_put_off(
    turned: Bucket, clock: Clock
) -> None:
    call = Call(url="https://example.com/")
    await limit(turned, rate=1)
    await turned.push(job("a", call=call), job("b", call=call))
    held = await turned.pop_one(CALLS)
    assert await turned.pop_ids(CALLS) == []
    _, change = await turned.store.requeue(0, [Requeue("a", held.nonce, delay_ms=HOUR_MS)])
    assert change.ready == [(CALLS, 1)]
    assert await turned.pop_ids(CALLS) == ["b"]


async def test_a_delivery_to_a_client_that_had_the_job_counts_though_it_is_undone(
    turned: Bucket, clock: Clock
) -> None:
    await limit(turned, rate=1, burst=2)
    await fill(turned)
    [held] = await turned.pop(wanted=1)
    await turned.store.all_of(REQUEUE, [Requeue(held.id, held.nonce, was_told=True)])
    assert (await turned.view(held.id)).attempt == 0
    assert await ask(turned) == (1, 1000)


async def test_a_delivery_in_which_a_subscriber_has_worked_counts_though_it_is_undone(
    turned: Bucket, clock: Clock
) -> None:
    await limit(turned, rate=1, burst=2)
    await fill(turned)
    [held] = await turned.pop(wanted=1)
    failed = Recording(
        held.id,
        held.nonce,
        "its name",
        succeeded=False,
        message="503",
        attempts=1,
        took_ms=0,
        delay_ms=0,
    )
    assert await turned.store.all_of(RECORD, [failed]) == [Code.OK]
    await turned.requeue(held)
    assert await ask(turned) == (1, 1000)


# concurrency


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda bucket: bucket.finish("000"), id="finish"),
        pytest.param(lambda bucket: bucket.delete("000"), id="delete"),
        pytest.param(lambda bucket: bucket.bury("000"), id="bury"),
        pytest.param(lambda bucket: bucket.release("000", delay_ms=HOUR_MS), id="release"),
        pytest.param(lambda bucket: bucket.push(job("000", delay_ms=HOUR_MS)), id="push"),
        pytest.param(
            lambda bucket: bucket.store.cancel(0, TagPage("tag", None, MANY, START, EVERYWHERE)),
            id="cancel",
        ),
        pytest.param(lambda bucket: bucket.store.purge(0, "t", "reserved", 1), id="purge"),
    ],
)
async def test_so_many_are_reserved_at_once_and_one_more_when_one_ends(
    bucket: Bucket, end: Callable[[Bucket], Awaitable[object]]
) -> None:
    await limit(bucket, concurrency=2)
    await bucket.push(job("000", tags=("tag",)))
    await bucket.push(*(job(f"{n:03}") for n in range(1, 5)))
    assert await bucket.pop_ids() == ["000", "001"]
    assert await bucket.pop_ids() == []
    await end(bucket)
    assert await bucket.pop_ids() == ["002"]
    assert await bucket.pop_ids() == []


@pytest.mark.parametrize("verb", ["finish", "delete", "bury"])
async def test_those_who_wait_hear_that_a_reservation_has_ended(bucket: Bucket, verb: str) -> None:
    await limit(bucket, concurrency=1)
    await fill(bucket, 3)
    [held] = await bucket.pop()
    ending = Ending(held.id, held.nonce, "")
    _, change = await getattr(bucket.store, verb)(0, [ending])
    assert change.ready == [("t", 2)]
    assert await bucket.pop_ids() == ["001"]


async def test_nobody_hears_of_the_end_where_nothing_waits_or_nothing_is_limited(
    bucket: Bucket,
) -> None:
    await limit(bucket, concurrency=1)
    await limit(bucket, "rated", rate=1000)
    await fill(bucket, 1)
    await bucket.push(
        *(job(f"{topic} {n}", topic=topic) for topic in ("free", "rated") for n in "12")
    )
    held = [await bucket.pop_one(topic) for topic in ("t", "free", "rated")]
    _, change = await bucket.store.finish(0, [Ending(each.id, None, "") for each in held])
    assert change.ready == []


async def test_a_ttr_that_runs_out_lets_another_go(bucket: Bucket) -> None:
    await limit(bucket, concurrency=1)
    await bucket.push(job("a", ttr_ms=1), job("b"))
    await bucket.pop_one()
    await a_moment()
    assert await bucket.pop_ids() == [], "until the timer has seen it"
    assert (await bucket.store.tick(0)).change.ready == [("t", 2)]
    assert await bucket.pop_ids() == ["b"]


async def test_a_lower_limit_takes_nothing_away(bucket: Bucket) -> None:
    await fill(bucket, 5)
    held = await bucket.pop(wanted=3)
    await limit(bucket, concurrency=2)
    assert await bucket.pop_ids() == []
    await bucket.finish(*(one.id for one in held[:2]))
    assert await bucket.pop_ids() == ["003"]


async def test_topics_of_one_call_have_their_own_limits(bucket: Bucket) -> None:
    await limit(bucket, "t", concurrency=1)
    await limit(bucket, "u", rate=1, burst=2)
    await bucket.push(*(job(f"{topic}{n}", topic=topic) for topic in "tuv" for n in range(3)))
    assert await bucket.pop_ids("t", "u", "v") == ["t0", "u0", "u1", "v0", "v1", "v2"]


# the limit in force


@pytest.mark.parametrize(
    ("changes", "expected", "reason"),
    [
        ([{}], Limit(), "asking sets nothing"),
        ([{"rate": 0.5}], Limit(rate=0.5, burst=1), "a burst of one at least"),
        ([{"rate": 95}], Limit(rate=95, burst=10), "a burst of a tenth of a second"),
        ([{"rate": 1, "burst": 7}], Limit(rate=1, burst=7), "the burst that is named"),
        ([{"rate": 1}, {"burst": 7}], Limit(rate=1, burst=7), "a burst for the rate there is"),
        ([{"rate": 20}, {"rate": 95}], Limit(rate=95, burst=10), "the usual burst of the new rate"),
        ([{"rate": 1, "burst": 7}, {"rate": 1}], Limit(rate=1, burst=7), "the rate it has already"),
        ([{"rate": 1, "burst": 7}, {"rate": 2}], Limit(rate=2, burst=7), "a named burst stays"),
        ([{"rate": 5, "burst": 1}, {"rate": 95}], Limit(rate=95, burst=1), "though it is as usual"),
        (
            [{"rate": 1, "burst": 7}, {"rate": 20, "burst": None}],
            Limit(rate=20, burst=2),
            "until it is lifted",
        ),
        (
            [{"rate": 1}, {"concurrency": 3}],
            Limit(rate=1, burst=1, concurrency=3),
            "what is not named stays",
        ),
        ([{"rate": 1, "concurrency": 3}, {"rate": None}], Limit(concurrency=3), "one is lifted"),
        ([{"rate": 1, "burst": 2}, {"rate": None}], Limit(), "its burst with it"),
        ([{"rate": 20}, {"burst": None}], Limit(rate=20, burst=2), "the usual burst again"),
        (
            [{"rate": 5, "burst": 1}, {"burst": None}, {"rate": 95}],
            Limit(rate=95, burst=10),
            "the usual burst of the new rate again",
        ),
    ],
)
async def test_limits_are_set_and_lifted_one_by_one(
    bucket: Bucket, changes: list[dict[str, float | None]], expected: Limit, reason: str
) -> None:
    for each in changes:
        found = (await bucket.store.limit(0, "t", each)).limit
    assert found == expected, reason
    assert (await bucket.counts()).limit == (None if expected == Limit() else expected)


@pytest.mark.parametrize(("noted", "burst"), [(7, 7), (2, 10)])
async def test_a_burst_that_an_older_version_noted_stays_unless_it_is_the_usual_one(
    bucket: Bucket, noted: int, burst: int
) -> None:
    noted_by_it = json.dumps({"limit": {"rate": 20, "burst": noted}})
    await bucket.redis.hset(bucket.key("topics"), "t", noted_by_it)
    assert (await limit(bucket, rate=95)).burst == burst


async def test_without_limits_all_go_again(bucket: Bucket) -> None:
    await limit(bucket, rate=1, concurrency=1)
    await fill(bucket)
    assert await popped(bucket) == 1
    lifted = await bucket.store.limit(0, "t", {"rate": None, "concurrency": None})
    assert lifted.change.ready == [("t", MANY - 1)]
    assert await popped(bucket) == MANY - 1


async def test_a_burst_without_a_rate_is_refused(bucket: Bucket) -> None:
    refused = await bucket.store.limit(0, "t", {"burst": 3, "concurrency": 1})
    assert (refused.code, refused.limit) == (Code.INVALID, Limit())
    await fill(bucket)
    assert await popped(bucket) == MANY


async def test_what_a_config_file_says_is_changed_there_only(bucket: Bucket) -> None:
    limits = bucket.store
    declared = Limit(concurrency=2, declared=True)
    await limit(bucket, rate=1, concurrency=9)
    assert (await limits.limit(0, "t", {"concurrency": 2}, declared=True)).limit == declared
    refused = await limits.limit(0, "t", {"concurrency": 5})
    assert (refused.code, refused.limit) == (Code.WRONG_STATE, declared)
    assert await limits_in(limits.bucket(0)) == {"t": declared}
    assert (await limits.limit(0, "t", {"concurrency": None}, declared=True)).limit == Limit()
    assert await limits_in(limits.bucket(0)) == {}


@pytest.mark.parametrize("redis", ["redis", "valkey"], indirect=True)
@pytest.mark.parametrize(
    ("buckets", "limits", "at_once"),
    [
        *((buckets, {"concurrency": 10}, 10) for buckets in (1, 2, 3, 4)),
        *((4, {"rate": 0.001, "burst": burst}, 4) for burst in (1, 4, 6)),
        (4, {"rate": 0.001, "burst": 8}, 8),
    ],
)
async def test_the_shares_of_all_buckets_are_the_whole(
    redis: Redis, buckets: int, limits: dict[str, float | None], at_once: int
) -> None:
    """Of a burst never more than max(burst, bucket_size), and each bucket's share in whole jobs: docs/limits.md."""
    store = VerbStore(Servers.one(redis), Buckets("dq_bucket_%d", "q_%s", Layout(buckets)))
    passed = 0
    for number in range(buckets):
        await store.limit(number, "t", limits)
        jobs = [job(f"{i}") for i in range(200) if store.buckets.of(f"{i}") == number]
        await store.push(number, jobs)
        passed += len((await store.pop(number, [Demand(("t",), MANY)])).jobs[0])
    assert passed == at_once
