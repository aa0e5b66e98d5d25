"""The proof after each store test must be able to fail: it finds each planted violation."""

import pytest

from delayqueue.domain.call import Call
from delayqueue.domain.job import USUAL_PRIORITY
from tests.store.bucket import HOUR_MS, WHEEL_SLOTS, Bucket, job, on_zset

# as _groups.lua writes it; `run` knows when the job was pushed
CREATED = "time of a push"
GROUPED = "001g\0" + f"{USUAL_PRIORITY:010}{1:014}{CREATED}0007grouped"
RECORD = "0" + "!!!!!#z" * 2 + "!!!#z" + '!"' + "tbody"

# Redis commands on a whole bucket, and words of the sentence that must result
PLANTED = [
    (["ZREM", "delay:t", "delayed"], "no place", "a job in no place"),
    (["ZADD", "buried:t", "1", "delayed"], "['delay', 'buried']", "a job in two places"),
    (["ZADD", "reserved:t", "1", "ready"], "reserved without a run", "taken by nobody"),
    (["LREM", "dq_queue_t", "0", "ready"], "no place", "a ready job off its list"),
    (["ZADD", "delay:t", "7", "delayed"], "not at 7", "another due time than the record's"),
    (["HDEL", "job", "delayed"], "without a job", "an index entry without a record"),
    (["ZADD", "delay:u", "1", "delayed"], "delay of b'u'", "a job in another topic's index"),
    (["RPUSH", "dq_queue_t", "ready"], "has 3 ghosts, counted are 2", "a ghost not counted"),
    (["HINCRBY", "ghosts", "t", "1"], "has 2 ghosts, counted are 3", "a ghost too many counted"),
    (["HSET", "ghosts", "u", "0"], "a ghost count of 0", "a count that should be gone"),
    (["HSET", "job", "x", "garbage"], "record of b'x' is broken", "no record at all"),
    (["HSET", "job", "x", RECORD], "b'x' is in no place", "a record that nothing leads to"),
    (["HSET", "run", "x", "1 0 - 0\n"], "a run and no record", "a run without a job"),
    (["HSET", "run", "ready", "0 0 - 0\n"], "never handed out", "a run for nothing"),
    (["HSET", "run", "ready", "1 0 r 0\n"], "the nonce b'r'", "a nonce of nobody"),
    (["HSET", "run", "ready", "1 0 - 0\nx"], "run of b'ready' is broken", "broken notes"),
    (["HSET", "run", "reserved", "1 0 - 0\n"], "the nonce b'-'", "a holder without nonce"),
    (["ZREM", "expire:t", "delayed"], "will not expire", "an expiry forgotten"),
    (["ZADD", "expire:t", "1", "ready"], "does not expire", "an expiry of another job"),
    (["HSET", "ended", "delayed", f"finished 1 0 0\n{RECORD}"], "ended and lives", "twice"),
    (["HSET", "ended", "x", "garbage"], "kept record of b'x' is broken", "no kept record"),
    (["ZREM", "done:t", "ended"], "never dropped", "a result kept for ever"),
    (["ZADD", "done:t", "1", "x"], "without a kept record", "a sweep of nothing"),
    (["SREM", "tag:y", "delayed"], "tag b'y' has set()", "a tag that misses a job"),
    (["SADD", "tag:z", "delayed"], "tag b'z' has", "a tag that the job does not have"),
    (["ZREM", "timers", "t"], "no timer", "a topic without a timer"),
    (["ZADD", "timers", "9999999999999", "u"], "b'u' has a timer", "a timer of no topic"),
    (["ZADD", "timers", "9999999999999", "t"], "rings at 9999999999999", "a timer too late"),
    (["HSET", "topics", "u", '{"paused_until":5}'], "b'u' has no timer", "a pause without end"),
    (["HDEL", "topics", "t"], "not in the list of topics", "a topic nobody sees"),
    (["ZREM", "grouped:t", GROUPED], "b'grouped' is in no place", "a job off its group"),
    (["ZADD", "grouped:u", "0", GROUPED], "grouped of b'u'", "a job in another topic's groups"),
    (["ZADD", "grouped:t", "0", GROUPED.replace("1time", "2time")], "not at its place", "twice"),
    (["ZREM", "turns:t", "g"], "stand in [[], [], []]", "a group that never has its turn"),
    (["ZADD", "held:t", "1", "g"], "stand in [[b'g'], [], [b'g']]", "a group held in line"),
    (["ZADD", "next:t", "1", "h"], "stand in [[b'g'], [b'h'], []]", "a group without jobs"),
    (["ZADD", "rested:u", "1", "h"], "rest, and none waits", "a group that rests for ever"),
    (["DEL", "hand:t"], "in hand are", "a job in hand that is not counted"),
    (["ZADD", "hand:t", "0", "001g\0ready"], "in hand are", "one counted that is not in hand"),
    (["SET", "else", "1"], "no key of ours", "a stray key"),
]


# the same on a wheel, where {slot} is the slot of the delayed job
PLANTED_ON_A_WHEEL = [
    (["ZREM", "slot:{slot}:t", "delayed"], "no place", "a job in no slot"),
    (["ZADD", "slot:{slot}:t", "7", "delayed"], "is due at", "another round than the record's"),
    (["ZADD", "slot:7:t", "7", "delayed"], "in two slots", "a job in two slots"),
    (["ZADD", "delay:t", "7", "delayed"], "for another scheduler", "a sorted set beside it"),
    (["ZADD", "wheel:t", "7", "{slot}"], "the wheels are", "a slot that rings too early"),
    (["ZREM", "wheel:t", "{slot}"], "the wheels are", "a slot that never rings"),
    (["ZADD", "wheel:t", "7", "7"], "the wheels are", "a slot without jobs"),
    (["HINCRBY", "rounds:t", "all", "1"], "the rounds are", "a job too many counted"),
    (["HSET", "rounds:u", "1", "1"], "the rounds are", "jobs counted where there are none"),
]


async def fill(bucket: Bucket) -> None:
    """One job in each place, and two ghosts."""
    await bucket.push(job("reserved"), job("in hand", texts={"group": "g"}))
    await bucket.pop()
    await bucket.put_in("buried", "buried")
    await bucket.push(job("ended", retain_ms=HOUR_MS))
    await bucket.finish("ended")
    await bucket.put_in("ready", "ready")
    await bucket.put_in("ready", "urgent", priority=1, due_ms=1)
    await bucket.put_in("delayed", "delayed", tags=("y",), expire_ms=HOUR_MS)
    await bucket.put_in("ready", "called", call=Call(url="http://example.com/"), due_ms=1)
    await bucket.put_in("ready", "grouped", texts={"group": "g"}, due_ms=1)


async def run(bucket: Bucket, verb: str, name: str, *rest: str) -> None:
    """Run a command on a filled bucket."""
    created = f"{(await bucket.view('grouped')).created_ms:014}"
    words = [each.replace(CREATED, created) for each in rest]
    await bucket.redis.execute_command(verb, bucket.key(name), *words)  # type: ignore[no-untyped-call]


async def test_a_bucket_with_a_job_in_each_place_is_whole(bucket: Bucket) -> None:
    await fill(bucket)
    assert await bucket.violations() == []


@on_zset
@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("redis", ["redis"], indirect=True)
@pytest.mark.parametrize(
    ("command", "sentence"), [row[:2] for row in PLANTED], ids=[row[2] for row in PLANTED]
)
async def test_a_planted_violation_is_found(
    bucket: Bucket, command: list[str], sentence: str
) -> None:
    await fill(bucket)
    verb, name, *rest = command
    await run(bucket, verb, name, *rest)
    assert sentence in " / ".join(await bucket.violations())


@pytest.mark.usefixtures("poison")
@pytest.mark.parametrize("redis", ["redis"], indirect=True)
@pytest.mark.parametrize("scheduler", ["wheel"])
@pytest.mark.parametrize(
    ("command", "sentence"),
    [row[:2] for row in PLANTED_ON_A_WHEEL],
    ids=[row[2] for row in PLANTED_ON_A_WHEEL],
)
async def test_a_planted_violation_of_a_wheel_is_found(
    bucket: Bucket, command: list[str], sentence: str
) -> None:
    await fill(bucket)
    due_ms = (await bucket.view("delayed")).due_ms
    verb, name, *rest = [word.format(slot=due_ms // 1000 % WHEEL_SLOTS) for word in command]
    await run(bucket, verb, name, *rest)
    assert sentence in " / ".join(await bucket.violations())
