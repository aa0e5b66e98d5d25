"""buried_retain: dead letters end after their time, a bounded number in each sweep."""

from tests.store.bucket import HOUR_MS, Bucket, a_moment, job

MANY = 500


async def sweep(bucket: Bucket, retain_ms: int | None) -> int:
    """How many dead letters a sweep of all topics has ended."""
    return (await bucket.store.sweep(0, 0, 1000, retain_ms)).ended


async def test_a_buried_job_stays_where_nobody_says_for_how_long(bucket: Bucket) -> None:
    await bucket.put_in("buried")
    await a_moment()
    assert await sweep(bucket, None) == 0
    assert await bucket.state("a") == "buried"


async def test_a_buried_job_ends_when_its_time_is_over_and_no_other_does(bucket: Bucket) -> None:
    for state in ("delayed", "ready", "reserved", "buried"):
        await bucket.put_in(state, state, tags=("x",), topic=state, expire_ms=HOUR_MS)
    assert await sweep(bucket, HOUR_MS) == 0
    an_hour_ago_ms = await bucket.now_ms() - HOUR_MS
    await bucket.redis.zadd(bucket.key("buried:buried"), {"buried": an_hour_ago_ms})
    await bucket.put_in("buried", "just now")
    assert await sweep(bucket, HOUR_MS) == 1
    assert await bucket.state("buried") is None
    assert await bucket.state("just now") == "buried"
    assert bucket.store.metrics.events("buried_expired") == 1


async def test_its_record_is_kept_as_of_any_job_that_ended(bucket: Bucket) -> None:
    await bucket.push(job("a", retain_ms=HOUR_MS))
    await bucket.bury("a", message="card refused")
    await a_moment()
    assert await sweep(bucket, 1) == 1
    view = await bucket.view("a")
    assert (view.state.value, view.message) == ("expired", "card refused")


async def test_a_topics_own_time_wins_be_it_longer_or_shorter(bucket: Bucket) -> None:
    limits = bucket.store
    for topic, retain_ms in (("short", 1), ("long", HOUR_MS), ("other", None)):
        await bucket.put_in("buried", topic, topic=topic)
        await limits.limit(0, topic, {"buried_retain_ms": retain_ms})
    await a_moment()
    assert await sweep(bucket, None) == 1
    assert await bucket.state("short") is None
    assert await sweep(bucket, 1) == 1
    assert await bucket.state("other") is None
    assert (await limits.limit(0, "long", {"rate": 1})).limit.buried_retain_ms == HOUR_MS
    lifted = await limits.limit(0, "long", {"rate": None, "buried_retain_ms": None})
    assert lifted.limit.buried_retain_ms is None
    assert await sweep(bucket, 1) == 1
    assert (await bucket.counts("long")).limit is None


async def test_one_sweep_ends_a_bounded_number_and_the_next_goes_on(bucket: Bucket) -> None:
    ids = [f"{n}" for n in range(MANY)]
    await bucket.push(*map(job, ids))
    await bucket.bury(*ids)
    await a_moment()
    cursor, ended = 0, list[int]()
    while sum(ended) < MANY:
        swept = await bucket.store.sweep(0, cursor, 10, 1)
        assert swept.is_cut_short or sum(ended) + swept.ended == MANY
        cursor = swept.cursor
        ended.append(swept.ended)
    assert 1 < max(ended) < 200


async def test_a_look_at_many_topics_leaves_time_to_end_some(bucket: Bucket) -> None:
    await bucket.push(*(job(f"{n}", topic=f"{n}", delay_ms=HOUR_MS) for n in range(400)))
    await bucket.put_in("buried")
    await a_moment()
    assert (await bucket.store.sweep(0, 0, 1000, 1)).ended == 1


async def test_large_bodies_count_for_more(bucket: Bucket) -> None:
    ids = [f"{n}" for n in range(10)]
    for job_id in ids:
        await bucket.push(job(job_id, body="x" * 1_000_000))
    await bucket.bury(*ids)
    await a_moment()
    assert [await sweep(bucket, 1) for _ in range(3)] == [2, 2, 2]


async def test_what_cannot_be_ended_does_not_stand_in_the_way(bucket: Bucket) -> None:
    await bucket.put_in("buried", "bad", retain_ms=HOUR_MS)
    await bucket.put_in("buried", "good")
    await bucket.redis.set(bucket.key("ended"), "of another type")
    await a_moment()
    swept = await bucket.store.sweep(0, 0, 10, 1)
    assert swept.ended == 1
    await bucket.redis.delete(bucket.key("ended"))
    assert await bucket.state("good") is None
    assert await bucket.state("bad") == "buried"
    await bucket.finish("bad")
