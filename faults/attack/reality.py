"""What the store really has: the state of each job, and what must not be there."""

from collections import defaultdict
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from redis.asyncio import Redis

from delayqueue.domain.job import USUAL_PRIORITY
from delayqueue.store.keys import BucketKeys
from faults.attack.life import NOBODY, Kept, Live, Spec, State
from faults.attack.random_client import STATES
from tests.store.contents import RUN, Contents, Record, contents_of, parse, parse_ended, snapshot
from tests.store.invariants import violations_of

STAYS: Final = {"layout", "servers", "fence", "sent", "taken", "revisions", "registered"}
PLACES: Final = ("delay", "reserved", "buried")
NAMES: Final = {"delay": "delayed"}  # of states whose index has another name


@dataclass(frozen=True)
class Plan:
    """How the data is laid out."""

    scheduler: str = "zset"
    buckets: int = 1
    wheel_slots: int = 3600

    def keys(self) -> list[BucketKeys]:
        """The names of all buckets' keys."""
        return [
            BucketKeys.of(number + 1, "dq_bucket_%d", "dq_queue_%s")
            for number in range(self.buckets)
        ]

    def settings(self) -> dict[str, object]:
        """The settings that make a server use this layout."""
        return {
            "scheduler": self.scheduler,
            "wheel_slots": self.wheel_slots,
            "bucket_size": self.buckets,
        }


@dataclass(frozen=True)
class Reality:
    """All buckets at one moment."""

    now_ms: int
    buckets: Sequence[Contents]
    violations: Sequence[str]

    def counts(self) -> dict[str, dict[str, int]]:
        """The jobs by state, of each topic that has some."""
        found: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(STATES, 0))
        for state in self.states(set()).values():
            if isinstance(state, Live):
                found[state.spec.topic][state.state] += 1
        return dict(found)

    def states(self, heard: set[tuple[str, str]]) -> dict[str, State]:
        """Each job's state; `heard` are the ids and receipts that clients have received."""
        found: dict[str, State] = {}
        for contents in self.buckets:
            for job_id, raw in contents.job.items():
                if record := parse(raw):
                    found[job_id.decode()] = _live(contents, job_id, record, heard)
            for job_id, raw in contents.ended.items():
                if ended := parse_ended(raw):
                    until_ms = int(contents.done[ended.record.topic].get(job_id, 0))
                    found[job_id.decode()] = Kept(
                        _spec(ended.record), ended.state, (until_ms, until_ms)
                    )
        return found

    def ids(self) -> set[str]:
        """Of the jobs that have not ended."""
        return {job_id.decode() for contents in self.buckets for job_id in contents.job}

    def limited(self) -> set[str]:
        """The topics that have a limit."""
        return {
            topic.decode()
            for contents in self.buckets
            for topic, settings in contents.topics.items()
            if b"limit" in settings
        }

    def late(self, most_ms: int) -> list[str]:
        """Times that are over for longer than this and that no timer has handled."""
        return [
            f"{job_id!r} stands in {family} of {topic!r} since {time_ms:.0f}, now is {self.now_ms}"
            for contents in self.buckets
            for family, topic, job_id, time_ms in contents.entries("delay", "reserved", "done")
            if time_ms < self.now_ms - most_ms
        ]

    def left(self) -> list[str]:
        """What is there, and must not be after all jobs have ended and no settings are left."""
        return [
            f"{name}: {sorted(value)[:3]}"
            for contents in self.buckets
            for name, value in (vars(contents) | contents.registered).items()
            if name not in STAYS and _holds_something(value)
        ]


def _holds_something(value: object) -> bool:
    """Whether it is a collection with an entry, or a collection of collections with an entry."""
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(each, Sized) for each in value.values())
    ):
        return any(len(each) for each in value.values())
    return isinstance(value, Sized) and len(value) > 0


async def look(redis: Redis, plan: Plan) -> Reality:
    """All buckets, read at one moment while servers work on them, and what is not whole in them."""
    taken = await snapshot(redis)
    keys = plan.keys()
    buckets = [contents_of(taken, each, keys) for each in keys]
    slots = plan.wheel_slots if plan.scheduler == "wheel" else 0
    violations = [
        f"bucket {number}: {sentence}"
        for number, contents in enumerate(buckets)
        for sentence in (*violations_of(contents, slots), *_strays(contents, number, len(buckets)))
    ]
    return Reality(taken.now_ms, buckets, violations)


def _strays(contents: Contents, bucket: int, buckets: int) -> list[str]:
    return [
        f"{job_id!r} belongs to another bucket"
        for job_id in [*contents.job, *contents.ended]
        if crc32(job_id) % buckets != bucket
    ]


def _live(contents: Contents, job_id: bytes, record: Record, heard: set[tuple[str, str]]) -> Live:
    place = next((name for name in PLACES if job_id in getattr(contents, name)[record.topic]), "")
    run = RUN.match(contents.run.get(job_id, b""))
    attempt, step, receipt = (int(run[1]), int(run[2]), run[3].decode()) if run else (0, 0, "-")
    deadline_ms = int(contents.reserved[record.topic].get(job_id, 0))
    holder = receipt if (job_id.decode(), receipt) in heard else NOBODY
    return Live(
        spec=_spec(record),
        state=NAMES.get(place, place) or "ready",
        due=(record.due_ms, record.due_ms),
        expire=(record.expire_ms, record.expire_ms) if record.expire_ms else None,
        attempt=attempt,
        step=step,
        deadline=(deadline_ms, deadline_ms) if place == "reserved" else None,
        holder=holder if place == "reserved" else "",
    )


def _spec(record: Record) -> Spec:
    return Spec(
        topic=record.topic.decode(),
        body=record.body.decode(),
        ttr_ms=record.ttr_ms,
        tags=tuple(sorted(name.decode() for name in record.tags)),
        retry_ms=record.retry_ms,
        retain_ms=record.retain_ms,
        priority=USUAL_PRIORITY if record.priority is None else record.priority,
        has_call=record.has_call,
    )
