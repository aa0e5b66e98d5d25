"""The schedules that all servers share, and the loop that pushes their jobs."""

import asyncio
import logging
import secrets
from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

from delayqueue.domain.schedule import Schedule
from delayqueue.engine.subscribers import raise_unregistered, read_all, refuse_taken, taken
from delayqueue.errors import Code, JobExists, Unavailable
from delayqueue.store.bucket.registry import Registry
from delayqueue.store.types import DueJobs, Entry, Occurrence

log = logging.getLogger(__name__)

INTERVAL_S = 1.0  # how late a schedule of another server can be at its very first occurrence
RETRY_S = 0.2  # until the next try where nothing could be pushed


class Planned(NamedTuple):
    """A schedule and its next occurrence, None = there is none."""

    schedule: Schedule
    next_ms: int | None


class Schedules:
    """The verbs on schedules. All raise Unavailable if the store does not answer. `run` is a loop of the server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def schedule(self, schedule: Schedule, if_exists: str) -> int | None:
        """Register a schedule; the very same one again is no error. Returns when it occurs next.

        Raises JobExists if the name is taken by another one and `if_exists` is `fail`, or a config file declares it.
        """
        now_ms = (await self._registry.due_schedules()).now_ms
        code = await self._registry.register("schedules", _entry(schedule, now_ms), if_exists)
        if code != Code.OK:
            raise JobExists(taken("schedule", schedule.name))
        times = {planned.schedule.name: planned.next_ms for planned in await self.all()}
        return times.get(schedule.name)

    async def declare(self, schedules: Iterable[Schedule]) -> None:
        """Let these be all that the config file declares. Raises StartupError if a name was taken at run time."""
        now_ms = (await self._registry.due_schedules()).now_ms
        entries = [_entry(schedule, now_ms) for schedule in schedules]
        refuse_taken("schedule", entries, await self._registry.declare("schedules", entries))

    async def unschedule(self, name: str) -> None:
        """Drop a schedule. Raises NoSuchJob if it is unknown, WrongState if a config file declares it."""
        raise_unregistered("schedule", name, await self._registry.unregister("schedules", name))

    async def all(self) -> list[Planned]:
        """Every schedule, by name."""
        entries = (await self._registry.registered("schedules")).entries or []
        found = read_all(Schedule.read, sorted(entries))
        return [Planned(schedule, entry.time_ms) for entry, schedule in found]

    async def run(self) -> None:
        """Push the jobs of the schedules at their times, until cancelled."""
        while True:
            try:
                wait_s = await self._fire_all()
            except Unavailable:
                wait_s = RETRY_S
            await asyncio.sleep(wait_s)

    async def _fire_all(self) -> float:
        """Fire the schedules whose time has come; how long to wait then."""
        now_ms, wait_ms, entries = await self._registry.due_schedules()
        if entries:
            due = read_all(Schedule.read, entries)
            enqueued = [await self._fire(entry, schedule, now_ms) for entry, schedule in due]
            return 0 if any(enqueued) else RETRY_S
        return INTERVAL_S if wait_ms is None else min(INTERVAL_S, wait_ms / 1000)

    async def _fire(self, entry: Entry, schedule: Schedule, now_ms: int) -> bool:
        """Push what a schedule has to push by now; False where another process has."""
        times_ms, next_ms = schedule.plan(entry.time_ms or now_ms, now_ms)
        jobs = [self._occurrence(schedule, time_ms) for time_ms in times_ms]
        due_jobs = DueJobs(entry, next_ms, schedule.topic, schedule.ttr_ms, schedule.body, jobs)
        enqueued = await self._registry.enqueue_due(due_jobs)
        for job_id in enqueued.taken:
            log.warning(
                "schedule %r: the id %r belongs to a job that somebody pushed; its job has another one",
                schedule.name,
                job_id,
            )
        return enqueued.done

    def _occurrence(self, schedule: Schedule, time_ms: int) -> Occurrence:
        plain = schedule.job_id(time_ms)
        spare_id = self._owned(f"{plain}~{secrets.token_hex(8)}")  # nobody else can know it
        return Occurrence(self._owned(plain), spare_id, time_ms)

    def _owned(self, plain: str) -> str:
        """The id, with a number where it would else belong to another bucket."""
        if self._registry.owns(plain):
            return plain
        return next(job_id for n in count() if self._registry.owns(job_id := f"{plain}#{n}"))


def _entry(schedule: Schedule, now_ms: int) -> Entry:
    return Entry(schedule.name, schedule.definition, schedule.after(now_ms))
