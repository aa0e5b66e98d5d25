"""A broken key affects only what needs it: what a script reports is done, and what it has done is reported."""

from typing import Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import Call
from delayqueue.engine.fsck import examine
from delayqueue.engine.job_answers import job_details
from delayqueue.errors import Code
from delayqueue.store.types import NO_CHANGE, START, Range
from delayqueue.store.verbs import REQUEUE, Requeue
from tests.store.bucket import HOUR_MS, SOON_MS, Bucket, TagPage, a_moment, job, on_zset

EVER: Final = Range(0, 10**13)
OF_THE_END: Final = ("done:t", "ended", "tag:x", "ghosts")  # keys that the end of a job needs
UNREADABLE: Final = (
    "{",
    "5",
    "null",
    '{"tags":5}',
    '{"tags":[{}]}',
    '{"tags":[["x"]]}',
    '{"retry":"soon"}',
    '{"retry":null}',
    '{"retry":["soon"]}',
    '{"traceparent":[]}',
)


async def heal(bucket: Bucket) -> None:
    """Let the inspection set it aside; the bucket must be whole then."""
    assert not (await examine(bucket.store, lambda *_: None, repair=True)).left
    assert await bucket.violations() == []


def record(options: str) -> str:
    """A record of a long due job of topic t with these options, less than 90 bytes."""
    length = "!!!!" + chr(ord("!") + len(options))
    return "1" + "!!!!!#z" * 2 + "!!!#z" + '!"' + "!" * 14 + length + "t" + options + "body"


@pytest.mark.parametrize("key", OF_THE_END)
async def test_a_job_that_cannot_be_ended_does_not_let_others_be_handed_out_twice(
    bucket: Bucket, key: str
) -> None:
    good = [f"job-{n}" for n in range(5)]
    late = job("late", expire_ms=SOON_MS, retain_ms=0 if key == "tag:x" else HOUR_MS, tags=("x",))
    await bucket.push(*map(job, good[:3]), late, *map(job, good[3:]))
    await bucket.spoil(key)
    await a_moment()
    assert await bucket.pop_ids() == good
    assert await bucket.pop_ids() == []
    assert await bucket.finish(*good) == [Code.OK] * 5
    await heal(bucket)
    await bucket.tick()
    await heal(bucket)
    assert await bucket.state("late") == (None if key == "tag:x" else "expired")


@pytest.mark.parametrize("key", ["done:t", "ended"])
async def test_what_take_has_removed_it_answers_though_another_job_cannot_be_ended(
    bucket: Bucket, key: str
) -> None:
    await bucket.push(job("a"), job("stays", retain_ms=HOUR_MS), job("b"))
    await bucket.push(job("c", delay_ms=HOUR_MS))
    await bucket.spoil(key)
    taken = await bucket.take(most=10)
    assert [each.id for each in taken] == ["a", "b", "c"]
    await heal(bucket)
    assert await bucket.pop_ids() == ["stays"]


async def test_what_take_has_removed_it_answers_though_the_ready_list_is_broken(
    bucket: Bucket,
) -> None:
    await bucket.push(job("urgent", priority=1))
    await bucket.spoil("dq_queue_t")
    taken = await bucket.store.call("take", 0, ["t", *EVER, "urgent"])
    assert len(taken.results) == 1
    await heal(bucket)
    assert await bucket.get("urgent") is None


@pytest.mark.parametrize("scheduler", ["wheel"])
async def test_what_take_has_removed_it_answers_though_the_delayed_jobs_cannot_be_looked_at(
    bucket: Bucket,
) -> None:
    await bucket.push(job("ready"), job("delayed", delay_ms=HOUR_MS // 2))
    slot = (await bucket.view("delayed")).due_ms // 1000 % bucket.wheel_slots
    await bucket.redis.delete(bucket.key(f"slot:{slot}:t"))
    await bucket.spoil(f"slot:{slot}:t")
    taken = await bucket.take(most=10)
    assert [each.id for each in taken] == ["ready"]
    await heal(bucket)
    assert await bucket.state("delayed") == "delayed"


@pytest.mark.parametrize(
    ("state", "verb", "key"),
    [
        ("reserved", "finish", "done:u"),
        ("delayed", "finish", "done:u"),
        ("ready", "finish", "buried:u"),
        ("buried", "delete", "done:u"),
        ("reserved", "bury", "buried:u"),
        ("ready", "bury", "buried:u"),
        ("buried", "kick", "dq_queue_u"),
        ("delayed", "kick", "dq_queue_u"),
        ("delayed", "kick", "expire:u"),
    ],
)
async def test_a_broken_key_is_told_for_the_job_that_needs_it_alone(
    bucket: Bucket, state: str, verb: str, key: str
) -> None:
    for job_id, topic in (("a", "t"), ("bad", "u"), ("b", "v")):
        await bucket.put_in(state, job_id, topic=topic, retain_ms=HOUR_MS, expire_ms=HOUR_MS)
    await bucket.redis.delete(bucket.key(key))
    await bucket.spoil(key)
    codes = await getattr(bucket, verb)("a", "bad", "b")
    assert codes == [Code.OK, Code.UNAVAILABLE, Code.OK]
    await heal(bucket)
    assert await bucket.state("bad") == state
    assert await bucket.state("a") != state
    assert await bucket.finish("bad") == [Code.OK]


@pytest.mark.parametrize("key", ["called:t", "called_topics", "priorities"])
async def test_a_job_with_a_call_stays_where_it_is_without_what_it_needs(
    bucket: Bucket, key: str
) -> None:
    await bucket.put_in("delayed", call=Call(url="http://x/"))
    await bucket.redis.delete(bucket.key(key))
    await bucket.spoil(key)
    assert await bucket.kick("a") == [Code.UNAVAILABLE]
    await heal(bucket)
    assert await bucket.state("a") == "delayed"


@on_zset
async def test_a_job_that_cannot_be_put_back_stays_as_it_is(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    held = await bucket.pop_one()
    before = await bucket.view("a")
    await bucket.spoil("delay:t")
    later = Requeue("a", held.nonce, delay_ms=HOUR_MS)
    await bucket.store.all_of(REQUEUE, [later])
    assert await bucket.view("a") == before
    await heal(bucket)


async def test_a_nonce_is_worth_nothing_without_a_reservation(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    popped = await bucket.pop_one()
    await bucket.redis.zrem(bucket.key("reserved:t"), "a")
    assert await bucket.finish("a", nonce=popped.nonce) == [Code.STALE_RECEIPT]
    await heal(bucket)
    assert await bucket.state("a") == "ready"


async def test_a_reservation_that_cannot_end_does_not_keep_others_from_their_turn(
    bucket: Bucket,
) -> None:
    bad = [job(f"bad-{n}", ttr_ms=1, retry_ms=()) for n in range(3)]
    await bucket.push(*bad, job("good", ttr_ms=2), job("delayed", delay_ms=1))
    assert len(await bucket.pop()) == 4
    await bucket.spoil("buried:t")
    await a_moment()
    ticked = await bucket.store.tick(0, limit=4)
    assert (ticked.redelivered, ticked.buried) == (1, 0)
    await bucket.tick()
    assert (await bucket.store.tick(0)).set_aside == 0
    await heal(bucket)
    assert sorted(await bucket.pop_ids()) == ["delayed", "good"]


@pytest.mark.parametrize("scheduler", ["wheel"])
@pytest.mark.parametrize("key", ["rounds:t", "dq_queue_t"])
async def test_jobs_that_cannot_become_ready_stay_where_they_are(bucket: Bucket, key: str) -> None:
    await bucket.push(job("a", delay_ms=SOON_MS))
    await a_moment()
    await bucket.spoil(key)
    assert (await bucket.store.tick(0)).set_aside == 1
    assert await bucket.state("a") == "delayed"
    await heal(bucket)
    await bucket.tick()
    assert await bucket.pop_ids() == ["a"]


async def test_a_job_that_cannot_expire_does_not_keep_others_from_their_turn(
    bucket: Bucket,
) -> None:
    await bucket.push(
        *(job(f"bad-{n}", delay_ms=1, expire_ms=1, retain_ms=HOUR_MS) for n in range(3)),
        job("expires", delay_ms=2, expire_ms=1),
        job("delayed", delay_ms=3),
    )
    await bucket.spoil("ended")
    await a_moment()
    await a_moment()
    for _ in range(3):
        await bucket.store.tick(0, limit=4)
    assert not await bucket.redis.hexists(bucket.key("job"), "expires")
    assert await bucket.pop_ids() == ["delayed"]
    await heal(bucket)


async def test_the_end_of_a_reservation_is_told_though_the_ready_list_is_broken(
    bucket: Bucket,
) -> None:
    await bucket.put_in("reserved")
    await bucket.store.limit(0, "t", {"concurrency": 1})
    await bucket.spoil("dq_queue_t")
    assert await bucket.finish("a") == [Code.OK]
    await heal(bucket)


@pytest.mark.parametrize("verb", ["cancel", "purge"])
async def test_a_job_that_cannot_be_ended_does_not_keep_others_from_their_end(
    bucket: Bucket, verb: str
) -> None:
    await bucket.push(*(job(i, retain_ms=HOUR_MS, tags=("x",)) for i in ("a", "b")))
    await bucket.push(job("c", topic="u", tags=("x",)))
    await bucket.spoil("ghosts" if verb == "purge" else "done:t")
    if verb == "cancel":
        assert await bucket.store.cancel(0, TagPage("x", None, 10, START, EVERYWHERE)) == (
            START,
            1,
            NO_CHANGE,
        )
        assert await bucket.state("c") is None
    else:
        dropped, more, _ = await bucket.store.purge(0, "t", "delayed", 10)
        assert (dropped, more) == (0, False)
    await heal(bucket)
    assert await bucket.pop_ids() == ["a", "b"]


@pytest.mark.parametrize("options", UNREADABLE)
async def test_a_record_whose_options_cannot_be_read_is_set_aside(
    bucket: Bucket, options: str
) -> None:
    await bucket.push(job("a"), job("odd"), job("b"))
    await bucket.redis.hset(bucket.key("job"), "odd", record(options))
    assert await bucket.pop_ids() == ["a", "b"]
    assert await bucket.redis.zscore(bucket.key("broken"), "odd") is not None
    assert await bucket.get("odd") is None
    assert await bucket.finish("odd", "a") == [Code.OK, Code.OK]
    assert await bucket.redis.hget(bucket.key("job"), "odd") == record(options).encode()


@pytest.mark.parametrize(
    "options", ['{"traceparent":"a\nb"}', '{"retry":[01]}', '{"tags":["caf\udce9"]}']
)
async def test_what_only_the_scripts_can_read_of_the_options_does_no_harm(
    bucket: Bucket, options: str
) -> None:
    await bucket.push(job("a"), job("odd"), job("b"))
    written = record(options).encode(errors="surrogateescape")
    await bucket.redis.hset(bucket.key("job"), "odd", written)
    assert await bucket.pop_ids() == ["a", "odd", "b"]
    assert await bucket.state("odd") == "reserved"
    assert await bucket.finish("odd") == [Code.OK]
    await heal(bucket)


RUN = "1 0 r 1"
ODD_RESULT = '{"name":1,"ok":"x","message":[],"attempts":{},"started":"x","ended":null,"due":[]}'
ODD_RUNS = (
    "nonsense",
    f"{RUN} 5\n[1,2]",
    f"1 0 r {'9' * 5000}\n",
    f"{RUN}\n1 1 1 {'9' * 5000} x",
    f"{RUN} 6000\n{'[' * 6000}",
    f"{RUN} {len(ODD_RESULT) + 2}\n[{ODD_RESULT}]",
)
ODD_ENDS = (
    "nonsense",
    "finished 1 0 0\n",
    "other 1 0 0\n" + record(""),
    f"finished {'9' * 5000} 0 0\n" + record(""),
    f"finished 1 0 {'9' * 5000}\n" + record(""),
    "finished 1 0 0\nnonsense",
)


async def known(bucket: Bucket) -> list[str]:
    """The jobs that are answered, as clients see them."""
    found = await bucket.store.get(0, ["a", "odd", "b"])
    return [job_details(each).id for each in found if each]


@pytest.mark.parametrize("run", ODD_RUNS, ids=lambda run: run[:20])
async def test_a_run_that_cannot_be_read_costs_no_job_its_answer(bucket: Bucket, run: str) -> None:
    await bucket.push(job("a"), job("odd"), job("b"))
    await bucket.redis.hset(bucket.key("run"), "odd", run)
    assert await known(bucket) == ["a", "odd", "b"]
    await bucket.redis.hdel(bucket.key("run"), "odd")


@pytest.mark.parametrize("ended", ODD_ENDS, ids=lambda ended: ended[:20])
async def test_a_kept_record_that_cannot_be_read_costs_no_other_job_its_answer(
    bucket: Bucket, ended: str
) -> None:
    await bucket.push(job("a"), job("b"))
    await bucket.redis.hset(bucket.key("ended"), "odd", ended)
    await bucket.redis.zadd(bucket.key("done:t"), {"odd": 10**14})
    assert await known(bucket) == ["a", "b"]
    await bucket.redis.delete(bucket.key("ended"), bucket.key("done:t"))


@pytest.mark.parametrize("options", ['{"retry":{"x":1}}', '{"retry":[1e400]}'])
async def test_a_schedule_that_only_the_scripts_can_read_counts_as_none(
    bucket: Bucket, options: str
) -> None:
    await bucket.push(job("odd"))
    await bucket.redis.hset(bucket.key("job"), "odd", record(options))
    assert (await bucket.pop_one()).retry_ms is None
    assert await bucket.finish("odd") == [Code.OK]


@pytest.mark.parametrize("state", ["delayed", "ready", "reserved"])
async def test_a_job_that_cannot_get_another_priority_stays_where_it_is(
    bucket: Bucket, state: str
) -> None:
    await bucket.put_in(state)
    await bucket.spoil("priorities")
    assert await bucket.bury("a", priority=1) == [Code.UNAVAILABLE]
    assert await bucket.state("a") == state
    await heal(bucket)
    assert await bucket.bury("a", priority=1) == [Code.OK]


async def test_jobs_come_and_go_though_nobody_knows_their_priorities(bucket: Bucket) -> None:
    await bucket.push(job("usual", delay_ms=SOON_MS), job("a", delay_ms=SOON_MS, priority=1))
    await bucket.push(job("ready", priority=2))
    await bucket.spoil("priorities")
    await a_moment()
    await bucket.tick()
    ids = await bucket.pop_ids()
    assert sorted(ids) == ["a", "ready", "usual"]
    assert await bucket.finish(*ids) == [Code.OK] * 3
    await heal(bucket)
