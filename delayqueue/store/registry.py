"""What all servers share: subscribers, schedules, notes, a counter, who is there. The first bucket holds it."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from delayqueue.answers.subscribers import CallCounts, FailedCall
from delayqueue.domain.job import Job
from delayqueue.domain.text import readable
from delayqueue.store.bucket import Bucket
from delayqueue.store.call import or_none
from delayqueue.store.keys import BucketKeys
from delayqueue.store.layout import as_startup_error
from delayqueue.store.record import text
from delayqueue.store.servers import Servers
from delayqueue.store.verbs import dump_options, dump_rows, dump_text
from delayqueue.tasks import batched

if TYPE_CHECKING:
    from delayqueue.store.store import Store

DUE_LIMIT: Final = 100  # schedules per call

Reported: TypeAlias = Literal[
    "servers", "workers"
]  # what server processes report on, for each other
Kind = Literal["subscribers", "schedules", "notes"]


class Entry(NamedTuple):
    """A subscriber, schedule or note as the store keeps it; `time_ms`: paused since, or next due."""

    name: str
    definition: str
    time_ms: int | None = None


class DueSchedules(NamedTuple):
    """The store's time, ms until the next occurrence of any schedule (None = there is none), and the due schedules."""

    now_ms: int
    wait_ms: int | None
    entries: list[Entry]


class DueJobs(NamedTuple):
    """The jobs for a schedule's occurrences: like `job`, whatever its id. `next_ms` None = never again."""

    entry: Entry
    next_ms: int | None
    job: Job
    jobs: list["OccurrenceJob"]


class OccurrenceJob(NamedTuple):
    """The job of an occurrence. It gets the id `spare_id` if the other one belongs to somebody else's job."""

    id: str
    spare_id: str
    due_ms: int


class Enqueued(NamedTuple):
    """Whether this call pushed a schedule's jobs, and which of their ids were somebody else's."""

    done: bool
    taken: list[str]


class Registered(NamedTuple):
    """What is registered of a kind, None if that is still of the given revision; and the store's time."""

    revision: str
    entries: list[Entry] | None
    now_ms: int


class RegistryState(NamedTuple):
    """The store's time, and how many subscribers and schedules there are."""

    now_ms: int
    subscribers: int
    schedules: int


class Registry:
    """One method per script. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def heartbeat(
        self, on: Reported, name: str, figures: str, silence_ms: int
    ) -> tuple[int, str]:
        """Record what the process `name` tells; what processes told that were silent for longer is dropped.

        Returns what was told under that name before: when, in ms, and the figures; 0 and "" = nothing.
        """
        [former] = await self._run("heartbeat", [on, name, figures, silence_ms])
        told_ms, _, before = text(former).partition(" ")
        return int(told_ms or 0), before

    async def reports(self, on: Reported, silence_ms: int) -> list[tuple[str, int, str]]:
        """Name, time last heard in ms and figures of all processes that were heard within `silence_ms`."""
        found = await self._run("servers", [on, silence_ms])
        return [(text(name), heard_ms, text(told)) for name, heard_ms, told in batched(found, 3)]

    async def register(self, kind: Kind, entry: Entry, if_exists: str) -> int:
        """Register an entry.

        Returns a code: JOB_EXISTS if the name is taken and `if_exists` or a config file forbids it.
        """
        [code] = await self._run("register", [kind, if_exists, *dump_rows([entry])])
        return int(code)

    async def change(self, kind: Kind, entry: Entry, former: Entry) -> int:
        """Replace the former entry by this one. Returns a code: WRONG_STATE if its name has another one by now."""
        is_former = dump_text(former.definition)
        [code] = await self._run("register", [kind, is_former, *dump_rows([entry])])
        return int(code)

    async def declare(self, kind: Kind, entries: Sequence[Entry]) -> list[int]:
        """Replace all that the config file declared before.

        Returns a code for each; if one is refused, nothing has changed.
        """
        return await self._run("register", [kind, "declare", *dump_rows(entries)])

    async def unregister(self, kind: Kind, name: str, definition: str | None = None) -> int:
        """Remove an entry; with a definition only if it is that one. Returns a code."""
        [code] = await self._run("unregister", dump_rows([(kind, name, definition)]))
        return int(code)

    async def pause_subscriber(self, name: str, *, is_paused: bool) -> int:
        """Pause or resume a subscriber. Returns a code."""
        [code] = await self._run("pause_subscriber", [name, int(is_paused)])
        return int(code)

    async def registered(
        self, kind: Kind, known: str | None = None, name: str | None = None
    ) -> Registered:
        """All entries of a kind, or the one with that name, unless `known` is still their revision."""
        reply = await self._bucket.run("registered", dump_rows([(kind, known, name)]))
        revision, *found = reply.results
        return Registered(text(revision), _entries(found[0]) if found else None, reply.now_ms)

    async def state(self) -> RegistryState:
        """The store's time, and how many of each kind are registered."""
        reply = await self._bucket.run("registry_state", [])
        return RegistryState(reply.now_ms, *reply.results)

    async def numbers(self, count: int) -> int:
        """The first of `count` consecutive numbers that nobody else gets.

        A store that loses its last writes may give some of them again.
        """
        [first] = await self._run("numbers", [count])
        return int(first)

    async def due_schedules(self, skipped: int = 0) -> DueSchedules:
        """The schedules that are due, without the first `skipped`; not all of them if they are many."""
        reply = await self._bucket.run("due_schedules", [DUE_LIMIT, skipped])
        return DueSchedules(reply.now_ms, reply.change.next_due_ms, _entries(reply.results))

    async def enqueue_due(self, due_jobs: DueJobs) -> Enqueued:
        """Push the jobs of a schedule and set its next occurrence.

        Does nothing if another process has done so, the schedule was changed, or its jobs belong to another bucket by
        now.
        """
        if not all(self.owns(one.id) and self.owns(one.spare_id) for one in due_jobs.jobs):
            return Enqueued(False, [])
        job = due_jobs.job
        common = (job.topic, job.ttr_ms, job.body, dump_options(job))
        rows = [due_jobs.entry, (due_jobs.next_ms,), common, *due_jobs.jobs]
        reply = await self._bucket.run("enqueue_due", dump_rows(rows))
        done, *taken = reply.results
        self._bucket.notify(reply.change)
        return Enqueued(done == 1, [text(job_id) for job_id in taken])

    @property
    def is_only_bucket(self) -> bool:
        """Whether there is no other bucket."""
        return self._bucket.buckets.count == 1

    def owns(self, job_id: str) -> bool:
        """Whether a job with this id would be in the same bucket as the schedules."""
        return self._bucket.buckets.of(job_id) == self._bucket.number

    async def _run(self, verb: str, args: Sequence[Any]) -> list[Any]:
        results: list[Any] = (await self._bucket.run(verb, args)).results
        return results


async def registered_in(servers: Servers, keys: BucketKeys, kind: Kind) -> dict[str, str]:
    """The definitions of a kind by name, read without a script, which might have to be loaded.

    Raises StoreUnwell if they cannot be read now, StartupError if the store refuses that.
    """
    key = keys.named(kind)
    with as_startup_error():
        found: Any = await servers.call(key, lambda redis: redis.hgetall(key))
    return {text(name): text(definition) for name, definition in found.items()}


def _entries(found: Sequence[Any]) -> list[Entry]:
    return [
        Entry(text(name), text(definition), or_none(time_ms))
        for name, definition, time_ms in batched(found, 3)
    ]


NAMES_PER_CALL: Final = 100  # about 3 ms of the store's time
HOUR_MS: Final = 3_600_000
HOURS: Final = 24  # this one and those before, as kept by record.lua
FAILURES: Final = 5  # in an answer, newest first


async def calls_of(store: "Store", names: Sequence[str]) -> dict[str, CallCounts]:
    """The calls of these subscribers within a day. Raises Unavailable if the store does not answer."""
    numbers = {name: Counter[str]() for name in names}
    failures: dict[str, list[FailedCall]] = {name: [] for name in names}
    for bucket in store.in_force:
        for piece in batched(names, NAMES_PER_CALL):
            reply = await bucket.run("calls", piece)
            parts, hour = reply.results, reply.now_ms // HOUR_MS
            for name, counts, failed in zip(piece, parts[::2], parts[1::2], strict=True):
                numbers[name].update(_of_a_day(counts, hour))
                failures[name] += map(_failure, failed)
    return {name: _counts(numbers[name], failures[name]) for name in names}


def _of_a_day(counts: Sequence[bytes], hour: int) -> Counter[str]:
    """The numbers of the last HOURS, given as "KIND HOUR", number, ..."""
    numbers = Counter[str]()
    for name, number in zip(counts[::2], counts[1::2], strict=True):
        kind, _, of_hour = name.decode().partition(" ")
        if int(of_hour) > hour - HOURS:
            numbers[kind] += int(number)
    return numbers


def _counts(numbers: Counter[str], failures: list[FailedCall]) -> CallCounts:
    ended = numbers["succeeded"] + numbers["failed"]
    latest = sorted(failures, key=lambda one: (one.at, one.id, one.message), reverse=True)
    return CallCounts(
        succeeded=numbers["succeeded"],
        failed=numbers["failed"],
        took=round(numbers["ms"] / ended / 1000, 3) if ended else None,
        failures=tuple(latest[:FAILURES]),
    )


def _failure(written: bytes) -> FailedCall:
    found: dict[str, Any] = json.loads(text(written))
    return FailedCall(int(found["at"]) / 1000, readable(found["id"]), readable(found["message"]))
