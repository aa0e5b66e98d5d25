"""inspect finds damage in a store that others work on, and leaves it alone or repairs it; and nothing else."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import pytest

from delayqueue.domain import damage
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.history_steps import Mark, Row, TopicSum
from delayqueue.domain.job import CALLS, Job
from delayqueue.domain.topic_counters import Counts
from delayqueue.engine.fsck import Pass, Report, examine
from delayqueue.engine.scrubber import Scrubber
from delayqueue.metrics import REPAIRED, REPAIRS
from delayqueue.store.keys import KEYS
from delayqueue.store.types import START, Finding
from tests.store.bucket import (
    HOSTILE,
    HOUR_MS,
    WHEEL_SLOTS,
    Bucket,
    TagPage,
    a_moment,
    job,
    on_one_store,
    on_zset,
)
from tests.store.contents import parse, snapshot
from tests.store.test_invariants import GROUPED, PLANTED, PLANTED_ON_A_WHEEL, RECORD, fill, run

Command = list[str]

URGENT: Final = "000000000000010006urgent"
CALLED: Final = "000000000000010006called"
UNREADABLE: Final = "1" + RECORD[1:22] + "!" * 14 + '!!!!"' + "t{body"
LIMITED: Final = '{"limit":{"group_concurrency":9,"changed":1,"share":{}}}'

# commands on a filled bucket, the kinds of damage that must be found, and the reason
DAMAGE: Final[list[tuple[list[Command], set[str], str]]] = [
    ([["ZREM", "delay:t", "delayed"]], {"unplaced"}, "a delayed job in no place"),
    ([["LREM", "dq_queue_t", "0", "ready"]], {"unplaced"}, "a ready job in no place"),
    (
        [["ZREM", "buried:t", "buried"]],
        {"ghost_count"},
        "a buried job, whose ghost is its place now",
    ),
    ([["ZREM", "reserved:t", "reserved"]], {"unplaced", "run"}, "a reserved job in no place"),
    ([["ZADD", "buried:t", "1", "delayed"]], {"double"}, "delayed and buried"),
    ([["ZADD", "buried:t", "1", "reserved"]], {"double"}, "held and buried"),
    ([["ZADD", "reserved:t", "9e12", "delayed"]], {"double", "run"}, "delayed, and held by nobody"),
    ([["ZADD", "delay:t", "7", "delayed"]], {"due", "timer"}, "another due time"),
    (
        [["HDEL", "job", "delayed"]],
        {"entry", "lost"},
        "entries of delay, expire and tag without a job",
    ),
    ([["HDEL", "job", "reserved"]], {"lost", "run"}, "a reservation without a job"),
    ([["HDEL", "job", "buried"]], {"lost"}, "a buried entry without a job"),
    ([["HDEL", "ended", "ended"]], {"entry"}, "an entry of done without a kept result"),
    ([["HDEL", "job", "ready"]], {"ghost_count"}, "an entry of the ready list without a job"),
    ([["DEL", "ranked:t"]], {"unplaced"}, "a ready job with a priority in no place"),
    (
        [["ZADD", "ranked:t", "2", URGENT]],
        {"entry"},
        "a ready job at another priority",
    ),
    (
        [["ZADD", "ranked:t", "1", URGENT.replace("urgent", "unsaid")]],
        {"lost"},
        "an entry without a job",
    ),
    ([["ZREM", "called_topics", "t"]], {"called"}, "calls that pop does not look at"),
    ([["DEL", "called:t"]], {"unplaced"}, "a ready job with a call in no place"),
    (
        [["ZREM", "called:t", CALLED], ["RPUSH", "dq_queue_t", "called"]],
        {"entry"},
        "a ready job with a call that workers would get",
    ),
    (
        [["ZREM", "called:t", CALLED], ["ZADD", "ranked:t", "1024", CALLED]],
        {"entry", "unplaced"},
        "one among those with a priority",
    ),
    ([["DEL", "grouped:t"]], {"unplaced", "entry"}, "a ready job of a group in no place"),
    (
        [["ZREM", "grouped:t", GROUPED], ["RPUSH", "dq_queue_t", "grouped"]],
        {"entry"},
        "a ready job of a group among those of none",
    ),
    (
        [["ZADD", "grouped:t", "0", GROUPED.replace("001g", "001h")]],
        {"entry"},
        "one in another group",
    ),
    ([["ZADD", "grouped:t", "0", GROUPED.replace("7grouped", "6nobody")]], {"lost"}, "of no job"),
    ([["ZREM", "turns:t", "g"]], {"group"}, "a group that never has its turn"),
    (
        [["HSET", "topics", "t", LIMITED], ["ZREM", "turns:t", "g"], ["ZADD", "held:t", "2", "g"]],
        {"group"},
        "one that is not held",
    ),
    ([["ZADD", "next:t", "1", "nobody"]], {"entry"}, "one without jobs"),
    ([["DEL", "hand:t"]], {"group"}, "a job in hand that is not counted"),
    ([["ZADD", "hand:t", "0", "001g\0ready"]], {"entry"}, "one counted that is not in hand"),
    ([["DEL", "turns:t"], ["SET", "turns:t", "x"]], {"type", "group"}, "a string for the turns"),
    ([["DEL", "priorities"]], {"priority"}, "a priority that is not known by its job's id"),
    ([["HSET", "priorities", "ready", "1"]], {"priority"}, "one of a job that has none"),
    ([["HSET", "priorities", "nobody", "1"]], {"priority"}, "one of no job"),
    ([["DEL", "ranked:t"], ["SET", "ranked:t", "x"]], {"type", "unplaced"}, "a string for them"),
    ([["HSET", "ghosts", "t", "x"]], {"ghost_count"}, "a count that is no number"),
    ([["RPUSH", "dq_queue_t", "ready", "ready"]], {"ghost_count"}, "a ready job twice in its list"),
    ([["HSET", "run", "ready", "what"]], {"run"}, "a run that cannot be read"),
    ([["ZREM", "expire:t", "delayed"]], {"expiry"}, "an expiry forgotten"),
    ([["SREM", "tag:y", "delayed"]], {"tag"}, "a tag forgotten"),
    ([["ZREM", "done:t", "ended"]], {"kept"}, "a result kept past its time"),
    ([["ZREM", "timers", "t"]], {"timer"}, "a topic without a timer"),
    ([["HDEL", "topics", "t"]], {"topic"}, "a topic that is not listed"),
    ([["HSET", "topics", "t", "{"]], {"settings"}, "settings that cannot be read"),
    ([["HSET", "topics", "t", "5"]], {"settings"}, "settings that are none"),
    ([["HSET", "job", "x", "garbage"]], {"record"}, "a record that cannot be read"),
    ([["HSET", "job", "x", UNREADABLE]], {"record"}, "a record with options that are no JSON"),
    (
        [["HSET", "job", "x", "0"], ["ZADD", "delay:t", "7", "x"], ["RPUSH", "dq_queue_t", "x"]],
        {"record", "entry", "timer"},
        "and entries that lead to it",
    ),
    ([["ZADD", "broken", "7", "ready"]], {"entry"}, "a sound record set aside"),
    (
        [["DEL", "delay:t"], ["SET", "delay:t", "x"]],
        {"type", "unplaced"},
        "a string for delayed jobs",
    ),
    (
        [["DEL", "dq_queue_t"], ["SADD", "dq_queue_t", "x"]],
        {"type", "unplaced"},
        "a set for ready ones",
    ),
    (
        [["DEL", "reserved:t"], ["LPUSH", "reserved:t", "x"]],
        {"type", "unplaced"},
        "a list of reserved jobs",
    ),
    ([["DEL", "tag:y"], ["HSET", "tag:y", "a", "b"]], {"type", "tag"}, "a hash for a tag"),
    ([["DEL", "timers"], ["SET", "timers", "x"]], {"type", "timer"}, "a string for the timers"),
    ([["DEL", "topics"], ["SET", "topics", "x"]], {"type", "topic"}, "a string for the topics"),
    ([["SET", "delay:u", "x"]], {"type"}, "a string for a topic that nobody knows"),
    ([["ZADD", "delay:u", "7", "x"]], {"lost", "topic"}, "a stray entry of an unknown topic"),
    (
        [["HSET", "job", "x", RECORD.replace("t", "u")]],
        {"unplaced", "topic"},
        "a job of a new topic",
    ),
]

by_reason = pytest.mark.parametrize(
    ("commands", "kinds"), [row[:2] for row in DAMAGE], ids=[row[2] for row in DAMAGE]
)
poisoned = pytest.mark.usefixtures("poison")


async def damaged(bucket: Bucket, commands: list[Command]) -> set[str]:
    """Fill the bucket and run the commands on it; returns the ids that must be delivered all the same."""
    await fill(bucket)
    for verb, name, *rest in commands:
        await run(bucket, verb, name, *rest)
    records: dict[Any, Any] = await bucket.redis.hgetall(bucket.key("job"))
    return {job_id.decode() for job_id, record in records.items() if parse(record)}


async def examined(bucket: Bucket, *, repair: bool) -> tuple[Report, list[Finding]]:
    findings: list[Finding] = []
    report = await examine(bucket.store, lambda _, finding: findings.append(finding), repair=repair)
    return report, findings


async def kinds_found(bucket: Bucket) -> set[str]:
    """The kinds of damage that a read-only inspection finds."""
    _, findings = await examined(bucket, repair=False)
    return {finding.kind for finding in findings}


async def all_delivered(bucket: Bucket) -> set[str]:
    """Every job that can be made ready and popped."""
    ids: list[Any] = await bucket.redis.hkeys(bucket.key("job"))
    for job_id in map(bytes.decode, ids):
        await bucket.release(job_id, delay_ms=0)
        await bucket.kick(job_id)
    await bucket.tick()
    return set(await bucket.pop_ids("t", "u", CALLS))


async def cared_for(bucket: Bucket, steps: int = 8) -> None:
    """Let only the light inspection look after the bucket for a while."""
    scrubber = Scrubber(bucket.store.bucket(0))
    for _ in range(steps):
        await scrubber.step()


async def mended(bucket: Bucket) -> None:
    report, _ = await examined(bucket, repair=True)
    assert not report.left


@on_zset
@by_reason
async def test_damage_is_found_and_left_as_it_is_until_it_is_repaired(
    bucket: Bucket, commands: list[Command], kinds: set[str]
) -> None:
    ids = await damaged(bucket, commands)
    before = await contents(bucket)
    report, findings = await examined(bucket, repair=False)
    # a key of the wrong type hides the damage behind it
    assert {finding.kind for finding in findings} >= ({"type"} if "type" in kinds else kinds)
    assert kinds >= {finding.kind for finding in findings}
    assert report.left == report.found
    assert not report.repaired
    assert await contents(bucket) == before
    await mended(bucket)
    await assert_whole(bucket, ids)


@on_zset
@by_reason
async def test_damage_heals_by_itself(
    bucket: Bucket, commands: list[Command], kinds: set[str]
) -> None:
    ids = await damaged(bucket, commands)
    await cared_for(bucket)
    await assert_whole(bucket, ids)


async def assert_whole(bucket: Bucket, ids: set[str]) -> None:
    """Nothing is wrong any more, and these jobs can be delivered."""
    assert await bucket.violations() == []
    assert await kinds_found(bucket) == set()
    assert await all_delivered(bucket) == ids


@pytest.mark.parametrize("redis", ["redis"], indirect=True)
@pytest.mark.parametrize("scheduler", ["wheel"])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=reason)
        for command, _, reason in [*PLANTED, *PLANTED_ON_A_WHEEL]
        if command[1] not in {"delay:t", "delay:u", "else"}
    ],
)
async def test_damage_of_a_wheel_is_mended(bucket: Bucket, command: Command) -> None:
    await fill(bucket)
    slot = (await bucket.view("delayed")).due_ms // 1000 % WHEEL_SLOTS
    verb, name, *rest = [word.replace("{slot}", str(slot)) for word in command]
    await run(bucket, verb, name, *rest)
    assert await kinds_found(bucket)
    await mended(bucket)
    assert await bucket.violations() == []


async def contents(bucket: Bucket) -> Mapping[bytes, Any]:
    """All keys and what they hold: a DUMP changes while a hash grows."""
    return (await snapshot(bucket.redis)).values


@on_zset
@poisoned
async def test_a_key_that_is_not_ours_is_reported_and_left_to_a_person(bucket: Bucket) -> None:
    await bucket.redis.set(bucket.key("else"), "1")
    report, [finding] = await examined(bucket, repair=True)
    assert (finding.kind, finding.name, finding.repaired) == ("key", "else", False)
    assert report.left == {"key": 1}
    assert await bucket.redis.get(bucket.key("else")) == b"1"


@pytest.mark.parametrize("redis", ["redis", "valkey"], indirect=True)  # a Cluster refuses them
async def test_keys_of_others_in_the_same_store_are_not_looked_at(bucket: Bucket) -> None:
    await fill(bucket)
    others = ("dq_bucket_1", "{dq_bucket_2}:job", "job", "{dq_bucket_1", "x{dq_bucket_1}:job")
    for key in others:
        await bucket.redis.set(key, "1")
    assert await kinds_found(bucket) == set()
    await bucket.redis.delete(*others)


async def test_every_key_of_the_layout_is_known(bucket: Bucket) -> None:
    of_wheel = {"slot", "wheel", "rounds"}
    wheel = bucket.wheel_slots > 0
    for name, kind in {**KEYS, "dq_queue_TOPIC": "list"}.items():
        family = name.partition(":")[0]
        if kind == "any" or ((family in of_wheel) != wheel and family in {*of_wheel, "delay"}):
            continue
        key = bucket.key(name.replace("N", "7"))
        match kind:
            case "hash":
                await bucket.redis.hset(key, "x", "1")
            case "zset":
                await bucket.redis.zadd(key, {"x": 1})
            case "set":
                await bucket.redis.sadd(key, "x")
            case "list":
                await bucket.redis.rpush(key, "x")
    assert not await kinds_found(bucket) & {"key", "type"}
    await bucket.redis.flushdb()


async def test_a_whole_bucket_is_found_whole(bucket: Bucket) -> None:
    await fill(bucket)
    await bucket.store.history.add([Row(TopicSum.ALL, Counts())], [Mark("started", 0, 0, "here")])
    for topic in HOSTILE:
        await bucket.push(*(job(f"{topic}-{i}", topic=topic, tags=(topic,)) for i in range(3)))
        await bucket.finish(f"{topic}-0")
        await bucket.pop(topic, wanted=1)
    await bucket.push(*(job(f"many-{i}", topic="many", delay_ms=HOUR_MS + i) for i in range(700)))
    await bucket.store.pause(0, "t", HOUR_MS)
    await bucket.store.pause(0, "many", 0)
    report, findings = await examined(bucket, repair=False)
    assert findings == []
    jobs = await bucket.redis.hlen(bucket.key("job"))
    assert report.looked > 2 * jobs


@on_one_store
@pytest.mark.parametrize("most", [2, None])
async def test_groups_that_a_new_limit_lets_go_are_whole_until_somebody_asks_for_them(
    bucket: Bucket, most: int | None
) -> None:
    await bucket.store.limit(0, "t", {"group_concurrency": 1})
    await bucket.push(*(job(each, texts={"group": "g"}) for each in "ab"))
    assert await bucket.pop_ids() == ["a"]
    assert await bucket.pop_ids() == []
    await bucket.store.limit(0, "t", {"group_concurrency": most})
    assert await kinds_found(bucket) == set()
    assert await bucket.pop_ids() == ["b"]


async def test_a_lost_job_is_found_beside_a_long_ready_list(bucket: Bucket) -> None:
    for start in range(0, 6000, 500):
        await bucket.push(*(job(f"job-{i}") for i in range(start, start + 500)))
    assert await kinds_found(bucket) == set()
    await bucket.redis.lrem(bucket.keys.queue_name.replace("%s", "t"), 0, "job-3000")
    report, findings = await examined(bucket, repair=True)
    assert [(finding.kind, finding.id) for finding in findings] == [("unplaced", "job-3000")]
    assert not report.left
    assert (await bucket.counts()).ready == 6000


async def test_a_job_that_was_found_again_waits_for_its_due_time(bucket: Bucket) -> None:
    await bucket.push(job("later", delay_ms=HOUR_MS), job("now"))
    due_ms = (await bucket.view("later")).due_ms
    await forget_places(bucket)
    await mended(bucket)
    assert await bucket.pop_ids() == ["now"]
    assert await bucket.state("later") == "delayed"
    assert (await bucket.view("later")).due_ms == due_ms


async def test_a_job_that_was_found_again_wakes_those_who_wait(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    await forget_places(bucket)
    ready: list[Any] = []
    due: list[Any] = []
    bucket.store.on_ready(lambda *told: ready.append(told))
    bucket.store.on_due(lambda *told: due.append(told))
    await Scrubber(bucket.store.bucket(0)).step()
    assert (ready, due) == ([(0, "t", 1)], [(0, 0)])
    await bucket.delete("a")


async def forget_places(bucket: Bucket) -> None:
    """Lose every delayed and every ready job."""
    for pattern in ("delay:*", "slot:*", "wheel:*", "rounds:*", "dq_queue_*"):
        for key in await bucket.redis.keys(re.sub(r"([{}])", r"\\\1", bucket.key("")) + pattern):
            await bucket.redis.delete(key)


async def test_a_holder_keeps_his_job_while_it_is_mended(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    held = await bucket.pop_one()
    await bucket.redis.zadd(bucket.key("buried:t"), {"a": 1})
    await mended(bucket)
    assert await bucket.state("a") == "reserved"
    assert await bucket.finish("a", nonce=held.nonce) == [0]


async def test_what_was_mended_is_counted_by_its_kind_and_logged_in_a_line(
    bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    await bucket.push(job("a"), job("b", delay_ms=HOUR_MS))
    await forget_places(bucket)
    await cared_for(bucket)
    rows = bucket.store.metrics.snapshot()[REPAIRS.name]
    assert {label: n for [label], n in rows if n} == {"unplaced": 2}
    assert [line for line in caplog.messages if line.startswith("repaired 2 of kind unplaced")]
    assert await bucket.delete("a", "b") == [0, 0]


def test_the_metric_knows_every_kind_of_damage_that_can_be_mended() -> None:
    planted = {kind for _, kinds, _ in DAMAGE for kind in kinds} | {"wheel"}
    assert planted == {*damage.MENDABLE, damage.LOST}
    assert planted - {damage.LOST} <= set(REPAIRED)  # a lost job is an event of its topic


@on_zset
async def test_whoever_repairs_can_stop_at_any_step(bucket: Bucket) -> None:
    several = ("unplaced", "double", "due", "run", "tag", "expiry", "timer", "ghost_count", "topic")
    commands = [row[0][0] for row in DAMAGE if row[1] & set(several) and row[0][0][0] != "DEL"]
    ids = await damaged(bucket, commands)
    for steps in range(1, 6):
        broken_off = Pass(bucket.store.bucket(0), 1, repair=True)
        for _ in range(steps):
            await broken_off.step()
        assert not broken_off.is_over
    await mended(bucket)
    assert await all_delivered(bucket) == ids


async def test_two_servers_repair_at_once(bucket: Bucket) -> None:
    await bucket.push(*(job(f"job-{i}", topic=f"t{i % 5}") for i in range(600)))
    await bucket.push(*(job(f"late-{i}", topic=f"t{i % 5}", delay_ms=HOUR_MS) for i in range(600)))
    await forget_places(bucket)
    await asyncio.gather(cared_for(bucket, 60), cared_for(bucket, 60), mended(bucket))
    assert await bucket.violations() == []
    delivered = [await bucket.pop_ids(f"t{i}") for i in range(5)]
    assert sorted(chain(*delivered)) == sorted(f"job-{i}" for i in range(600))


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_is_found_while_jobs_come_and_go(bucket: Bucket, seed: int) -> None:
    chance = random.Random(seed)
    await bucket.push(*(job(f"old-{i}", topic=f"t{i % 3}") for i in range(900)))
    await bucket.push(*(job(f"old-{i}", topic="t0") for i in range(900, 2100)))
    over = asyncio.Event()
    workers = [asyncio.create_task(live(bucket, chance, over)) for _ in range(3)]
    for limit, repair in ((40, False), (100, True), (300, False)):
        one_pass = Pass(bucket.store.bucket(0), limit, repair=repair)
        while not one_pass.is_over:
            assert (await one_pass.step()).findings == []
    over.set()
    await asyncio.gather(*workers)


async def live(bucket: Bucket, chance: random.Random, over: asyncio.Event) -> None:
    """Do at random what clients and timers do, until it is over."""
    verbs = Counter(push=8, pop=6, finish=4, release=3, bury=2, kick=2, delete=1, reschedule=2)
    verbs += Counter(requeue=2, tick=4, cancel=1)
    names, weights = list(verbs), list(verbs.values())
    while not over.is_set():
        [verb] = chance.choices(names, weights)
        await once(bucket, chance, verb)


async def once(bucket: Bucket, chance: random.Random, verb: str) -> None:
    topic = f"t{chance.randrange(3)}"
    ids = [f"job-{chance.randrange(300)}" for _ in range(chance.randrange(1, 20))]
    match verb:
        case "push":
            await bucket.push(*(any_job(chance, job_id, topic) for job_id in set(ids)))
        case "pop":
            await bucket.pop(topic, wanted=len(ids))
        case "requeue":
            await bucket.requeue(*await bucket.pop(topic, wanted=len(ids)))
        case "release" | "reschedule":
            await getattr(bucket, verb)(ids[0], delay_ms=chance.choice((0, 5, HOUR_MS)))
        case "tick":
            await a_moment()
            await bucket.store.tick(0)
            await bucket.store.sweep(0, 0, 20)
        case "cancel":
            await bucket.store.cancel(0, TagPage(f"tag-{topic}", None, 20, START, EVERYWHERE))
        case "bury":
            await bucket.bury(*ids, message=chance.choice(("", "no such account")))
        case _:
            await getattr(bucket, verb)(*ids)


def any_job(chance: random.Random, job_id: str, topic: str) -> Job:
    return job(
        job_id,
        topic=topic,
        delay_ms=chance.choice((0, 1, 20, HOUR_MS)),
        ttr_ms=chance.choice((1, 20, HOUR_MS)),
        retain_ms=chance.choice((0, 0, 5)),
        expire_ms=chance.choice((0, 0, 30, HOUR_MS)),
        tags=chance.choice(((), (f"tag-{topic}",))),
    )
