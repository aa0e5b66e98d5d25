"""The contents of a bucket, read at one moment, also while servers work on it.

It knows the layout from keys.py and reads it by itself, not with the code under test.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redis.asyncio import Redis

from delayqueue.store.keys import BucketKeys

TIME: Final = rb"([!-z]{7})"
RECORD: Final = re.compile(  # (?(1)...): only after a 1
    rb"(?:0|(1))" + TIME + TIME + rb"([!-z]{5})([!-z]{2})(?(1)" + TIME + TIME + rb"([!-z]{5}))"
)

RUN: Final = re.compile(rb"(\d+) (\d+) (\S+) (\d+)(?: (\d+))?\n")
RANK: Final = re.compile(rb"(\d{14})(\d{4})(.+)", re.DOTALL)
ENDED: Final = re.compile(rb"(finished|cancelled|expired|dropped) (\d+) (\d+) (\d+)\n")

FAMILIES: Final = (
    "delay",
    "slot",
    "wheel",
    "rounds",
    "reserved",
    "ranked",
    "called",
    "buried",
    "expire",
    "done",
    "tag",
    "queue",
    "parcel",
    "hand",
    "first",
    "grouped",
    "turns",
    "next",
    "held",
    "rested",
    "called_grouped",
    "called_turns",
    "called_next",
    "called_held",
    "called_rested",
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
    "removed",
    "fence",
    "sent",
    "taken",
    "priorities",
    "called_topics",
    "numbers",
    "awaited",
    "workers",
)
REGISTERED: Final = (
    "subscribers",
    "notes",
    "schedules",
    "schedule_times",
    "subscribers_paused",
    "revisions",
)

# a script: nothing changes between its first key and its last one
SNAPSHOT: Final = """
local READERS = {
  hash = function(key) return redis.call('HGETALL', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
}
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  found[#found + 1] = { key, kind, READERS[kind] and READERS[kind](key) or {} }
end
return { redis.call('TIME'), found }
"""

Scores = dict[bytes, float]


@dataclass(frozen=True)
class Record:
    """What a record says about its job."""

    due_ms: int
    created_ms: int
    ttr_ms: int
    expire_ms: int
    retain_ms: int
    topic: bytes
    tags: tuple[bytes, ...]
    retry_ms: tuple[int, ...] | None
    priority: int | None
    has_call: bool
    group: bytes | None
    body: bytes


@dataclass(frozen=True)
class Ended:
    """The kept record of a job that ended."""

    state: str
    record: Record


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
    workers: dict[bytes, bytes] = field(default_factory=dict)
    rates: dict[bytes, bytes] = field(default_factory=dict)
    removed: dict[bytes, bytes] = field(default_factory=dict)
    delay: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    slot: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    wheel: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    rounds: dict[bytes, dict[bytes, bytes]] = field(default_factory=dict)
    reserved: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    ranked: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    called: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    called_topics: Scores = field(default_factory=dict)
    priorities: dict[bytes, bytes] = field(default_factory=dict)
    numbers: str = ""
    awaited: Scores = field(default_factory=dict)
    buried: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    expire: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    done: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    queue: defaultdict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    tag: defaultdict[bytes, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    hand: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    grouped: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    turns: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    next: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    held: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    called_grouped: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    called_turns: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    called_next: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    called_held: defaultdict[bytes, Scores] = field(default_factory=lambda: defaultdict(dict))
    first: dict[bytes, dict[bytes, bytes]] = field(default_factory=dict)
    rested: dict[bytes, Scores] = field(default_factory=dict)
    called_rested: dict[bytes, Scores] = field(default_factory=dict)
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


@dataclass(frozen=True)
class Snapshot:
    """All keys of a database at one moment, with their values."""

    now_ms: int
    values: Mapping[bytes, Any]


async def snapshot(redis: Redis) -> Snapshot:
    """Read all keys at once. A value of a type that we do not use is a str that says so."""
    client: Any = redis  # redis-py's own types say bytes or str for every answer
    (seconds, microseconds), found = await client.eval(SNAPSHOT, 0)
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    return Snapshot(now_ms, {key: _value(kind, value) for key, kind, value in found})


def _value(kind: bytes, value: list[bytes]) -> Any:
    pairs = zip(value[::2], value[1::2], strict=False)
    match kind:
        case b"hash":
            return dict(pairs)
        case b"zset":
            return {member: float(score) for member, score in pairs}
        case b"list":
            return value
        case b"set":
            return set(value)
        case _:
            return f"a {kind!r}"


async def read(redis: Redis, keys: BucketKeys, among: Sequence[BucketKeys] = ()) -> Contents:
    """Everything that the bucket holds; `among` are other buckets there."""
    return contents_of(await snapshot(redis), keys, among)


def contents_of(taken: Snapshot, keys: BucketKeys, among: Sequence[BucketKeys] = ()) -> Contents:
    """What a snapshot shows of a bucket."""
    others = tuple(f"{each.tag}:".encode() for each in among if each != keys)
    contents = Contents(taken.now_ms)
    prefix = keys.queue_name.removeprefix(f"{keys.tag}:").removesuffix("%s").encode()
    for key, value in taken.values.items():
        if key.startswith(others):
            continue
        name: bytes = key.removeprefix(keys.tag.encode() + b":")
        family, colon, member = name.partition(b":")
        if name.startswith(prefix):
            contents.queue[name.removeprefix(prefix)] = value
        elif not colon and family.decode() in SINGLE:
            setattr(contents, family.decode(), value)
        elif name.decode() in REGISTERED:
            contents.registered[name.decode()] = value
        elif colon and family.decode() in FAMILIES:
            getattr(contents, family.decode())[member] = value
        elif family in {
            b"aside",
            b"history",
            b"holders",
            b"subscriber_calls",
            b"subscriber_failures",
        }:  # for people who look at it
            continue
        else:
            contents.unknown.append(key)
    return contents


def parse(raw: bytes) -> Record | None:
    """A record; None if it is not one."""
    head = RECORD.match(raw)
    if head is None:
        return None
    numbers = map(_digits, head.groups()[1:])
    due_ms, created_ms, ttr_ms, topic_length, expire_ms, retain_ms, options_length = numbers
    options_at = head.end() + topic_length
    body_at = options_at + options_length
    if body_at > len(raw):
        return None
    try:
        options = json.loads(raw[options_at:body_at] or b"{}")
        tags = tuple(name.encode() for name in options.get("tags", ()))
        retry_ms = tuple(map(int, options["retry"])) if "retry" in options else None
        str.encode(options.get("traceparent", ""))
        priority = int(options["priority"]) if "priority" in options else None
        group: str | None = options.get("group")
    except (ValueError, AttributeError, TypeError):
        return None
    topic = raw[head.end() : options_at]
    body = raw[body_at:]
    return Record(
        due_ms,
        created_ms,
        ttr_ms,
        expire_ms,
        retain_ms,
        topic,
        tags,
        retry_ms,
        priority,
        "call" in options,
        group.encode() if group else None,
        body,
    )


def parse_ended(raw: bytes) -> Ended | None:
    """The kept record of a job that ended; None if it cannot be read."""
    head = ENDED.match(raw)
    record = parse(raw[head.end() + int(head[3]) + int(head[4]) :]) if head else None
    return None if head is None or record is None else Ended(head[1].decode(), record)


def _digits(text: bytes | None) -> int:
    """A number of a record's header, base 90; 0 if the header is the short one."""
    powers = range(len(text or b"") - 1, -1, -1)
    return sum((digit - 33) * 90**power for digit, power in zip(text or b"", powers, strict=True))
