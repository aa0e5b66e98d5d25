"""Proves, without the code under test, that a bucket is whole: every job in exactly one place, all counts exact."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from redis.asyncio import Redis

from delayqueue.domain.job import USUAL_PRIORITY
from delayqueue.store.keys import BucketKeys
from tests.store.contents import RANK, RUN, Contents, Record, Scores, parse, parse_ended, read

NOTE: Final = re.compile(rb"\d+ \d+ \d+ (\d+) ")

HOUR_MS: Final = 3_600_000


async def violations(
    redis: Redis, keys: BucketKeys, wheel_slots: int = 0, *, among: Sequence[BucketKeys] = ()
) -> list[str]:
    """A sentence for each rule that is broken. Without slots the scheduler is zset; `among` are other buckets there."""
    return violations_of(await read(redis, keys, among), wheel_slots)


def violations_of(contents: Contents, wheel_slots: int = 0) -> list[str]:
    """The same for contents that were read before."""
    live, found = _records(contents)
    if wheel_slots:
        found += _wheel(contents, HOUR_MS // wheel_slots)
    else:
        found += [f"{name!r} is for another scheduler" for name in contents.slot | contents.wheel]
    kept = _kept(contents, found)
    for check in (
        _places,
        _due_times,
        _ghosts,
        _priorities,
        _groups,
        _runs,
        _expiries,
        _known_topics,
    ):
        found += check(contents, live)
    found += _ends(contents, live, kept)
    found += _tags(contents, live | kept)
    found += _timers(contents)
    found += _schedules(contents)
    found += [f"a parcel for bucket {bucket!r} was left behind" for bucket in contents.parcel]
    found += [f"{key!r} is no key of ours" for key in contents.unknown]
    return found


def _records(contents: Contents) -> tuple[dict[bytes, Record], list[str]]:
    records = {job_id: parse(raw) for job_id, raw in contents.job.items()}
    live = {job_id: record for job_id, record in records.items() if record is not None}
    broken = records.keys() - live.keys() - contents.broken.keys()
    return live, [f"the record of {i!r} is broken" for i in broken]


def _kept(contents: Contents, found: list[str]) -> dict[bytes, Record]:
    """The records of jobs that ended."""
    kept = {}
    for job_id, raw in contents.ended.items():
        ended = parse_ended(raw)
        if ended is None:
            found.append(f"the kept record of {job_id!r} is broken")
        else:
            kept[job_id] = ended.record
    return kept


def _wheel(contents: Contents, slot_ms: int) -> list[str]:
    """Put the wheel's jobs into `delay`, as if in sorted sets, and check its index and its counts."""
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
    """A job with a record is in one place, and each entry of a place is a job of that topic."""
    places: defaultdict[bytes, list[str]] = defaultdict(list)
    for family, topic, job_id, _ in contents.entries("delay", "reserved", "buried"):
        if job_id not in live or live[job_id].topic != topic:
            yield f"{job_id!r} stands in {family} of {topic!r} without a job of that topic"
        places[job_id].append(family)
    ready = [_ready_ids(contents, live, topic) for topic in [*contents.queue]]
    ready += [{_id_of(rank)} for _, _, rank, _ in contents.entries("ranked", "called")]
    ready += [{split(rank)[2]} for _, _, rank, _ in contents.entries("grouped", "called_grouped")]
    for job_id in chain(*ready):
        places[job_id].append("ready")
    for job_id in live:
        if len(places[job_id]) != 1:
            yield f"{job_id!r} is in {places[job_id] or 'no place'}"


def _due_times(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    for _, topic, job_id, due_ms in contents.entries("delay"):
        if job_id in live and live[job_id].due_ms != due_ms:
            yield f"{job_id!r} of {topic!r} is due at {live[job_id].due_ms}, not at {due_ms}"


def _ready_ids(contents: Contents, live: Mapping[bytes, Record], topic: bytes) -> set[bytes]:
    """The ids in a ready list that are not ghosts. Jobs with a priority or a call are elsewhere."""
    listed = {
        i
        for i in contents.queue[topic]
        if i in live and live[i].topic == topic and not _is_for_set(live[i])
    }
    return listed - {i for _, _, i, _ in contents.entries("delay", "reserved", "buried")}


def _ghosts(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    for topic in contents.queue.keys() | contents.ghosts.keys():
        ghosts = len(contents.queue[topic]) - len(_ready_ids(contents, live, topic))
        counted = int(contents.ghosts.get(topic, 0))
        if counted != ghosts:
            yield f"{topic!r} has {ghosts} ghosts, counted are {counted}"
        if topic in contents.ghosts and counted <= 0:
            yield f"{topic!r} has a ghost count of {counted}"


def _is_for_set(record: Record) -> bool:
    """Whether the job goes into a sorted set when it is ready."""
    return record.has_call or record.priority is not None or record.group is not None


def _priority_of(record: Record) -> int:
    return USUAL_PRIORITY if record.priority is None else record.priority


def _id_of(rank: bytes) -> bytes:
    parts = RANK.fullmatch(rank)
    assert parts, rank
    return parts[3]


def _priorities(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    """A ready job with a priority is among those of its topic, ordered by it and its due time; all are known by id.

    So is a job with a call, and pop finds the topics that have some.
    """
    for family, topic, rank, priority in contents.entries("ranked", "called"):
        record = live.get(_id_of(rank))
        if record is None or record.topic != topic or _priority_of(record) != priority:
            yield f"{rank!r} of {topic!r} stands at the priority {priority}"
        elif record.has_call != (family == "called") or not _is_for_set(record) or record.group:
            yield f"{rank!r} of {topic!r} stands in {family}"
        elif rank != b"%014d%04d" % (record.due_ms, len(_id_of(rank))) + _id_of(rank):
            yield f"{rank!r} of {topic!r} is not at its place"
    for topic in contents.called.keys() - contents.called_topics.keys():
        yield f"the jobs of {topic!r} with a call are never called"
    wanted = {
        i: str(_priority_of(record)).encode() for i, record in live.items() if _is_for_set(record)
    }
    if contents.priorities != wanted:
        yield f"the priorities are {contents.priorities}, not {wanted}"


def split(member: bytes) -> tuple[bytes, bytes, bytes]:
    """The group of a member, the job's place in it, and its id."""
    end = 3 + int(member[:3])
    assert member[end : end + 1] == b"\0", member
    return member[3:end], member[end + 1 : end + 43], member[end + 43 :]


def _groups(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    """A ready job of a group is at its place, and its group has its turn, or is held; each job in hand is known."""
    for lane in ("", "called_"):
        ready: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for _, topic, rank, _ in contents.entries(f"{lane}grouped"):
            group, place, job_id = split(rank)
            ready[topic].add(group)
            record = live.get(job_id)
            if record is None or (record.topic, record.group) != (topic, group):
                yield f"{job_id!r} stands in {lane}grouped of {topic!r} as one of {group!r}"
            elif place != b"%010d%014d%014d%04d" % (
                _priority_of(record),
                record.due_ms,
                record.created_ms,
                len(job_id),
            ):
                yield f"{rank!r} of {topic!r} is not at its place"
            elif record.has_call != bool(lane):
                yield f"{rank!r} of {topic!r} is in the wrong lane"
        yield from _turns(contents, lane, ready)
    groups = {job_id: record.group for job_id, record in live.items() if record.group}
    in_hand = {
        b"%03d%b\0%b" % (len(groups[job_id]), groups[job_id], job_id)
        for _, _, job_id, _ in contents.entries("reserved")
        if job_id in groups
    }
    known = {member for _, _, member, _ in contents.entries("hand")}
    if in_hand != known:
        yield f"in hand are {in_hand}, known are {known}"


def _turns(contents: Contents, lane: str, ready: Mapping[bytes, set[bytes]]) -> Iterator[str]:
    lines = [getattr(contents, f"{lane}{kind}") for kind in ("turns", "next", "held")]
    for topic in set().union(ready, *lines):
        places = [[*line.get(topic, ())] for line in lines]
        if sorted(chain(*places)) != sorted(ready.get(topic, ())):
            yield f"the groups of {topic!r} with ready jobs, {ready.get(topic)}, stand in {places}"
        if lane and (places[0] or places[1]) and topic not in contents.called_topics:
            yield f"the jobs of {topic!r} with a call are never called"
    for topic in getattr(contents, f"{lane}rested").keys() - ready.keys():
        yield f"groups of {topic!r} rest, and none waits"


def _runs(contents: Contents, live: Mapping[bytes, Record]) -> Iterator[str]:
    """A run belongs to a live job that was handed out or buried; only a reserved job has a nonce."""
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
            yield f"{job_id!r} has the nonce {head[3]!r}"


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
    """A job with `expire` is in its topic's expire set; the entry may be gone once it was handled."""
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
    """A kept record belongs to a job that is gone, and is dropped at its time."""
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
    """The timer visits a topic at the earliest of its times, or before."""
    times: defaultdict[bytes, list[float]] = defaultdict(list)
    for _, topic, _, time_ms in contents.entries("delay", "reserved", "expire", "done"):
        times[topic].append(time_ms)
    for topic, raw in contents.topics.items():
        paused_until_ms = json.loads(raw or b"{}").get("paused_until", 0)
        if paused_until_ms > 0:
            times[topic].append(paused_until_ms)
    for topic in contents.timers.keys() - contents.topics.keys():
        yield f"{topic!r} has a timer and is not in the list of topics"
    for topic, times_ms in times.items():
        if topic not in contents.timers:
            yield f"{topic!r} has no timer"
        elif contents.timers[topic] > min(times_ms):
            yield f"the timer of {topic!r} rings at {contents.timers[topic]:.0f}, after {min(times_ms):.0f}"


def _schedules(contents: Contents) -> Iterator[str]:
    """Each entry with a time is a schedule."""
    times, schedules = (
        contents.registered.get(name, {}) for name in ("schedule_times", "schedules")
    )
    for name in times.keys() - schedules.keys():
        yield f"{name!r} has a time and is no schedule"
