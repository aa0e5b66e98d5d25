"""Reads all keys of a bucket and proves that it is whole: every job in exactly one place, every count exact.

It knows the layout from keys.py and reads it by itself, not with the code under test.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from redis.asyncio import Redis

    from delayqueue.store.keys import BucketKeys

TIME: Final = rb"([!-z]{7})"
RECORD: Final = re.compile(  # (?(1)...): only after a 1
    rb"(?:0|(1))" + TIME + TIME + rb"([!-z]{5})([!-z]{2})(?(1)" + TIME + TIME + rb"([!-z]{5}))"
)
RUN: Final = re.compile(rb"(\d+) (\d+) (\S+) (\d+)(?: (\d+))?\n")
NOTE: Final = re.compile(rb"\d+ \d+ \d+ (\d+) ")
ENDED: Final = re.compile(rb"(finished|cancelled|expired) (\d+) (\d+) (\d+)\n")

FAMILIES: Final = (
    "delay",
    "slot",
    "wheel",
    "rounds",
    "reserved",
    "buried",
    "expire",
    "done",
    "tag",
    "queue",
    "parcel",
)
SINGLE: Final = (
    "job",
    "run",
    "ended",
    "timers",
    "topics",
    "ghosts",
    "broken",
    "layout",
    "servers",
    "rates",
    "fence",
    "sent",
    "taken",
)
REGISTERED: Final = ("subscribers", "schedules", "schedule_times", "revisions")

HOUR_MS: Final = 3_600_000

Scores = dict[bytes, float]


@dataclass(frozen=True)
class Record:
    """What a record says of its job."""

    due_ms: int
    expire_ms: int
    retain_ms: int
    topic: bytes
    tags: tuple[bytes, ...]


@dataclass
class Contents:
    """All that the bucket holds, by key; families of keys by topic or tag."""

    now_ms: int
    job: dict[bytes, bytes] = field(default_factory=dict)
    run: dict[bytes, bytes] = field(default_factory=dict)
    ended: dict[bytes, bytes] = field(default_factory=dict)
    timers: Scores = field(default_factory=dict)
    topics: dict[bytes, bytes] = field(default_factory=dict)
    ghosts: dict[bytes, bytes] = field(default_factory=dict)
    broken: Scores = field(default_factory=dict)
    layout: dict[bytes, bytes] = field(default_factory=dict)
    servers: dict[bytes, bytes] = field(default_factory=dict)
    rates: dict[bytes, bytes] = field(default_factory=dict)
    delay: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    slot: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    wheel: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    rounds: dict[bytes, dict[bytes, bytes]] = field(default_factory=dict)
    reserved: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    buried: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    expire: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    done: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    queue: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    tag: defaultdict[bytes, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    fence: Scores = field(default_factory=dict)
    sent: dict[bytes, bytes] = field(default_factory=dict)
    taken: dict[bytes, bytes] = field(default_factory=dict)
    parcel: dict[bytes, list[bytes]] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    unknown: list[bytes] = field(default_factory=list)

    def entries(self, *families: str) -> Iterator[tuple[str, bytes, bytes, float]]:
        """(family, topic, id, score) of the sorted sets."""
        for family in families:
            for topic, scores in getattr(self, family).items():
                for job_id, score in scores.items():
                    yield family, topic, job_id, score


async def violations(
    redis: Redis, keys: BucketKeys, wheel_slots: int = 0, *, among: Sequence[BucketKeys] = ()
) -> list[str]:
    """A sentence for each rule that is broken. Without slots the scheduler is zset; `among` are other buckets there."""
    contents = await read(redis, keys, among)
    live, found = _records(contents)
    if wheel_slots:
        found += _wheel(contents, HOUR_MS // wheel_slots)
    else:
        found += [f"{name!r} is for another scheduler" for name in contents.slot | contents.wheel]
    kept = _kept(contents, found)
    for check in (_places, _due_times, _ghosts, _runs, _expiries, _known_topics):
        found += check(contents, live)
    found += _ends(contents, live, kept)
    found += _tags(contents, live | kept)
    found += _timers(contents)
    found += _schedules(contents)
    found += [f"a parcel for bucket {bucket!r} was left behind" for bucket in contents.parcel]
    found += [f"{key!r} is no key of ours" for key in contents.unknown]
    return found


async def read(redis: Redis, keys: BucketKeys, among: Sequence[BucketKeys] = ()) -> Contents:
    """Everything that the bucket holds."""
    others = tuple(f"{each.tag}:".encode() for each in among if each != keys)
    client: Any = redis  # redis-py's own types say bytes or str for every answer
    seconds, microseconds = await client.time()
    contents = Contents(int(seconds) * 1000 + int(microseconds) // 1000)
    prefix = keys.queue_name.removeprefix(f"{keys.tag}:").removesuffix("%s").encode()
    for key in await client.keys():
        if key.startswith(others):
            continue
        name: bytes = key.removeprefix(keys.tag.encode() + b":")
        family, colon, member = name.partition(b":")
        if name.startswith(prefix):
            contents.queue[name.removeprefix(prefix)] = await _value(client, key)
        elif not colon and family.decode() in SINGLE:
            setattr(contents, family.decode(), await _value(client, key))
        elif name.decode() in REGISTERED:
            contents.registered[name.decode()] = await _value(client, key)
        elif colon and family.decode() in FAMILIES:
            getattr(contents, family.decode())[member] = await _value(client, key)
        elif family == b"aside":  # kept for a person
            continue
        else:
            contents.unknown.append(key)
    return contents


async def _value(client: Any, key: bytes) -> Any:
    match await client.type(key):
        case b"hash":
            return await client.hgetall(key)
        case b"zset":
            return dict(await client.zrange(key, 0, -1, withscores=True))
        case b"list":
            return await client.lrange(key, 0, -1)
        case b"set":
            return await client.smembers(key)
        case kind:
            raise AssertionError(f"{key!r} is a {kind!r}")


def parse(raw: bytes) -> Record | None:
    """A record; None where it is none."""
    head = RECORD.match(raw)
    if head is None:
        return None
    numbers = map(_digits, head.groups()[1:])
    due_ms, _, _, topic_length, expire_ms, retain_ms, options_length = numbers
    options_at = head.end() + topic_length
    body_at = options_at + options_length
    if body_at > len(raw):
        return None
    try:
        options = json.loads(raw[options_at:body_at] or b"{}")
        tags = tuple(name.encode() for name in options.get("tags", ()))
        tuple(map(float, options.get("retry", ())))
        str.encode(options.get("traceparent", ""))
    except (ValueError, AttributeError, TypeError):
        return None
    return Record(due_ms, expire_ms, retain_ms, raw[head.end() : options_at], tags)


def _digits(text: bytes | None) -> int:
    """A number of a record's header, base 90; 0 where the header is the short one."""
    powers = range(len(text or b"") - 1, -1, -1)
    return sum((digit - 33) * 90**power for digit, power in zip(text or b"", powers, strict=True))


def _records(contents: Contents) -> tuple[dict[bytes, Record], list[str]]:
    records = {job_id: parse(raw) for job_id, raw in contents.job.items()}
    live = {job_id: record for job_id, record in records.items() if record is not None}
    broken = records.keys() - live.keys() - contents.broken.keys()
    return live, [f"the record of {i!r} is broken" for i in broken]


def _kept(contents: Contents, found: list[str]) -> dict[bytes, Record]:
    """The records of jobs that ended."""
    kept = {}
    for job_id, raw in contents.ended.items():
        head = ENDED.match(raw)
        record = parse(raw[head.end() + int(head[3]) + int(head[4]) :]) if head else None
        if record is None:
            found.append(f"the kept record of {job_id!r} is broken")
        else:
            kept[job_id] = record
    return kept


def _wheel(contents: Contents, slot_ms: int) -> list[str]:
    """Put the wheel's jobs into `delay`, as if it were sorted sets; its index and its counts are exact."""
    found = [f"{topic!r} is for another scheduler" for topic in contents.delay]
    wheel: defaultdict[bytes, Scores] = defaultdict(dict)
    rounds: defaultdict[bytes, Counter[bytes]] = defaultdict(Counter)
    for name, scores in contents.slot.items():
        slot, _, topic = name.partition(b":")
        for job_id, score in scores.items():
            hour, rest_ms = divmod(int(score), slot_ms)
            due_ms = hour * HOUR_MS + int(slot) * slot_ms + rest_ms
            if job_id in contents.delay[topic]:
                found.append(f"{job_id!r} of {topic!r} is in two slots")
            contents.delay[topic][job_id] = due_ms
            wheel[topic][slot] = min(wheel[topic].get(slot, due_ms), due_ms)
            rounds[topic] += Counter([b"all", b"%d" % hour])
    counted = {
        topic: {name: int(count) for name, count in counts.items()}
        for topic, counts in contents.rounds.items()
    }
    if contents.wheel != wheel:
        found.append(f"the wheels are {dict(contents.wheel)}, not {dict(wheel)}")
    if counted != rounds:
        found.append(f"the rounds are {counted}, not {dict(rounds)}")
    return found


def _places(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    """A job with a record stands in one place, and what stands in a place is a job of that topic."""
    places: defaultdict[bytes, list[str]] = defaultdict(list)
    for family, topic, job_id, _ in contents.entries("delay", "reserved", "buried"):
        if job_id not in live or live[job_id].topic != topic:
            yield f"{job_id!r} stands in {family} of {topic!r} without a job of that topic"
        places[job_id].append(family)
    for topic in [*contents.queue]:
        for job_id in _ready_ids(contents, live, topic):
            places[job_id].append("ready")
    for job_id in live:
        if len(places[job_id]) != 1:
            yield f"{job_id!r} is in {places[job_id] or 'no place'}"


def _due_times(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    for _, topic, job_id, due_ms in contents.entries("delay"):
        if job_id in live and live[job_id].due_ms != due_ms:
            yield f"{job_id!r} of {topic!r} is due at {live[job_id].due_ms}, not at {due_ms}"


def _ready_ids(contents: Contents, live: Mapping[bytes, Record], topic: bytes) -> set[bytes]:
    """The ids in a ready list that are no ghosts."""
    listed = {i for i in contents.queue[topic] if i in live and live[i].topic == topic}
    return listed - {i for _, _, i, _ in contents.entries("delay", "reserved", "buried")}


def _ghosts(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    for topic in contents.queue.keys() | contents.ghosts.keys():
        ghosts = len(contents.queue[topic]) - len(_ready_ids(contents, live, topic))
        counted = int(contents.ghosts.get(topic, 0))
        if counted != ghosts:
            yield f"{topic!r} has {ghosts} ghosts, counted are {counted}"
        if topic in contents.ghosts and counted <= 0:
            yield f"{topic!r} has a ghost count of {counted}"


def _runs(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    """A run belongs to a live job that was handed out or buried; who holds a job has a receipt, nobody else."""
    held = {job_id for _, _, job_id, _ in contents.entries("reserved")}
    for job_id in held - contents.run.keys():
        yield f"{job_id!r} is reserved without a run"
    for job_id, raw in contents.run.items():
        head = RUN.match(raw)
        if head is None or not _are_results_and_notes(raw[head.end() :], int(head[5] or 0)):
            yield f"the run of {job_id!r} is broken"
            continue
        if job_id not in live:
            yield f"{job_id!r} has a run and no record"
        if int(head[1]) == 0 and head.end() == len(raw):
            yield f"{job_id!r} has a run and was never handed out"
        if (head[3] != b"-") != (job_id in held):
            yield f"{job_id!r} has the receipt {head[3]!r}"


def _are_results_and_notes(raw: bytes, notes_at: int) -> bool:
    if notes_at:
        names = [result["name"] for result in json.loads(raw[:notes_at])]
        if len(names) != len(set(names)):
            return False
    return _are_notes(raw[notes_at:])


def _are_notes(raw: bytes) -> bool:
    at = 0
    while at < len(raw):
        note = NOTE.match(raw, at)
        if note is None:
            return False
        at = note.end() + int(note[1])
    return at == len(raw)


def _expiries(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    """A job with `expire` is in its topic's expire set; the entry may be gone once it was looked at."""
    for _, topic, job_id, expire_ms in contents.entries("expire"):
        record = live.get(job_id)
        if record is None or record.topic != topic or record.expire_ms != expire_ms:
            yield f"{job_id!r} of {topic!r} does not expire at {expire_ms}"
    for job_id, record in live.items():
        if record.expire_ms > contents.now_ms and job_id not in contents.expire[record.topic]:
            yield f"{job_id!r} will not expire"


def _known_topics(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    for topic in {record.topic for record in live.values()} - contents.topics.keys():
        yield f"{topic!r} is not in the list of topics"


def _ends(
    contents: Contents, live: Mapping[bytes, Record], kept: Mapping[bytes, Record]
) -> Iterator[str]:
    """A kept record is of a job that is gone, and is dropped at its time."""
    for job_id in kept.keys() & live.keys():
        yield f"{job_id!r} has ended and lives"
    for job_id, record in kept.items():
        if job_id not in contents.done[record.topic]:
            yield f"the kept record of {job_id!r} is never dropped"
    for _, topic, job_id, _ in contents.entries("done"):
        if job_id not in kept or kept[job_id].topic != topic:
            yield f"{job_id!r} stands in done of {topic!r} without a kept record"


def _tags(contents: Contents, records: Mapping[bytes, Record]) -> Iterator[str]:
    wanted: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for job_id, record in records.items():
        for name in record.tags:
            wanted[name].add(job_id)
    for name in wanted.keys() | contents.tag.keys():
        if wanted[name] != contents.tag[name]:
            yield f"tag {name!r} has {contents.tag[name]}, should have {wanted[name]}"


def _timers(contents: Contents) -> Iterator[str]:
    """The timer looks at a topic at the earliest of its times, or before."""
    times: defaultdict[bytes, list[float]] = defaultdict(list)
    for _, topic, _, time_ms in contents.entries("delay", "reserved", "expire", "done"):
        times[topic].append(time_ms)
    for topic, raw in contents.topics.items():
        paused_until_ms = json.loads(raw or b"{}").get("paused_until", 0)
        if paused_until_ms > 0:
            times[topic].append(paused_until_ms)
    for topic, times_ms in times.items():
        if topic not in contents.timers:
            yield f"{topic!r} has no timer"
        elif contents.timers[topic] > min(times_ms):
            yield f"the timer of {topic!r} rings at {contents.timers[topic]:.0f}, after {min(times_ms):.0f}"


def _schedules(contents: Contents) -> Iterator[str]:
    """What has a time is a schedule."""
    times, schedules = (
        contents.registered.get(name, {}) for name in ("schedule_times", "schedules")
    )
    for name in times.keys() - schedules.keys():
        yield f"{name!r} has a time and is no schedule"
