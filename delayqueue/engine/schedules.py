"""The schedules that all servers share, and the loop that pushes their jobs."""

import asyncio
import logging
import math
import secrets
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from delayqueue.answers import schedules as answers
from delayqueue.answers.answer import LEFT_OUT, seconds
from delayqueue.config.startup import StartupError
from delayqueue.domain.job import Job
from delayqueue.domain.schedule import Schedule, check_form
from delayqueue.engine.job_answers import job_call
from delayqueue.engine.registrations import Registrations, read_all
from delayqueue.errors import BadValue, Invalid, Unavailable
from delayqueue.store.registry import DueJobs, Entry, OccurrenceJob, Registry

log = logging.getLogger(__name__)

INTERVAL_S = 1.0  # how late another server's schedule can be at its first occurrence
PREVIEWED = 10  # times that are shown before a schedule is saved
RETRY_S = 0.2  # before the next try if nothing could be pushed
# A clock that is put back by less repeats no occurrences: they wait until it has caught up, as in Debian's cron
CORRECTION_MS = 3 * 3_600_000


class Schedules(Registrations[Schedule]):
    """The verbs on schedules. All raise Unavailable if the store does not answer. `run` is a loop of the server."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, "schedules", Schedule.read)
        self._latest_ms = math.inf  # by the store's clock, since it was put back by much
        self._has_times = True  # a schedule had a next time at the last look
        self._skipped = 0  # due ones for which nothing could be pushed: others stand behind them

    async def next_ms(self, name: str) -> int | None:
        """The next occurrence of a schedule, None = there is none."""
        entries = await self._stored(name)
        return entries[0].time_ms if entries else None

    async def all(self) -> list[answers.Schedule]:
        """Every schedule, by name."""
        found = read_all(Schedule.read, sorted(await self._stored()))
        return [_answer(schedule, entry.time_ms) async for entry, schedule in found]

    async def preview(self, schedule: Schedule) -> list[int]:
        """The next occurrences of a schedule, which need not exist, from now on."""
        now_ms = (await self._registry.state()).now_ms
        found: list[int] = []
        while len(found) < PREVIEWED:
            next_ms = schedule.after(found[-1] if found else now_ms)
            if next_ms is None:
                break
            found.append(next_ms)
        return found

    async def job_now(self, name: str) -> Job:
        """The job that a schedule would push now. Raises NoSuchJob if there is no such schedule."""
        now_ms = (await self._registry.state()).now_ms
        async for _, one in read_all(Schedule.read, await self._stored(name)):
            return one.job(one.job_id(now_ms))
        raise self._unknown(name)

    async def declare(self, wanted: Iterable[Schedule]) -> None:
        """Replace everything that the config file declared before, and log what that changes.

        Raises StartupError if a name was taken at run time, or one cannot have its group; then nothing has changed.
        """
        try:
            await super().declare(wanted)
        except Invalid as error:
            raise StartupError(str(error)) from None

    async def run(self) -> None:
        """Push the schedules' jobs on time, until cancelled."""
        while True:
            try:
                wait_s = await self._enqueue_due()
            except Unavailable:
                wait_s = RETRY_S
            await asyncio.sleep(wait_s)

    def _changed(self, one: Schedule, fields: Mapping[str, Any]) -> Schedule:
        """The schedule with these fields changed. Raises Invalid if they have a time zone and it has no `cron`."""
        changed = super()._changed(one, fields)
        try:
            check_form(cron=bool(changed.cron), every=bool(changed.every_ms), tz=fields.get("tz"))
        except BadValue as error:
            raise Invalid(error.text) from None
        return changed

    async def _entries(self, wanted: Iterable[Schedule]) -> list[Entry]:
        """The store's entries for these, with their next occurrences.

        Raises Invalid if the jobs of one have a group, and its bucket need not be that of the schedules, where they go.
        """
        wanted = list(wanted)
        if not self._registry.is_only_bucket and (grouped := [one for one in wanted if one.group]):
            name = grouped[0].name
            raise Invalid.of(
                f"定时计划 {name} 的 group：bucket_size 大于 1 时不支持，请让 worker 推送带 group 的job",
                f"schedule {name}: group: only with bucket_size = 1; let a worker push the job with the group",
            )
        now_ms = (await self._registry.state()).now_ms
        return [
            Entry(one.name, one.definition, None if one.paused else one.after(now_ms))
            for one in wanted
        ]

    async def _enqueue_due(self) -> float:
        """Push the jobs of the schedules that are due; returns how long to wait."""
        now_ms, wait_ms, entries = await self._registry.due_schedules(self._skipped)
        is_put_back = now_ms < self._latest_ms - CORRECTION_MS  # so is any time at the start
        if is_put_back or (self._has_times and wait_ms is None):
            await self._plan_anew(now_ms)
            self._latest_ms = now_ms
        self._latest_ms, self._has_times = max(self._latest_ms, now_ms), wait_ms is not None
        if entries:
            due = read_all(_read_plannable, entries)
            enqueued = [
                await self._enqueue(entry, schedule, now_ms) async for entry, schedule in due
            ]
            self._skipped = 0 if any(enqueued) else self._skipped + len(entries)
            return 0
        if self._skipped:
            self._skipped = 0
            return RETRY_S
        return INTERVAL_S if wait_ms is None else min(INTERVAL_S, wait_ms / 1000)

    async def _plan_anew(self, now_ms: int) -> None:
        """Correct next occurrences that a clock far in the future has led to, other rules of a zone, or a lost key."""
        coming = [
            one for one in await self._stored() if one.time_ms is None or one.time_ms > now_ms
        ]
        async for entry, schedule in read_all(_read_plannable, coming):
            planned_ms, next_ms = entry.time_ms, schedule.after(now_ms)
            if schedule.paused or next_ms is None or planned_ms == next_ms:
                continue
            if planned_ms is None:
                why = "the store has lost the former one"
            elif planned_ms > next_ms + CORRECTION_MS:
                why = "the clock was put back"
            elif not schedule.occurs(planned_ms):
                why = f"the rules of {schedule.tz} have changed"
            else:
                continue
            log.warning("schedule %r has a new next time: %s", entry.name, why)
            await self._registry.enqueue_due(_due_jobs(entry, schedule, next_ms, []))

    async def _enqueue(self, entry: Entry, schedule: Schedule, now_ms: int) -> bool:
        """Push the due jobs of a schedule; False if another process has."""
        times_ms, next_ms = schedule.plan(entry.time_ms or now_ms, now_ms)
        jobs = [self._occurrence(schedule, time_ms) for time_ms in times_ms]
        enqueued = await self._registry.enqueue_due(_due_jobs(entry, schedule, next_ms, jobs))
        for job_id in enqueued.taken:
            log.warning(
                "schedule %r: a job with the id %r already exists; its own job gets another id",
                schedule.name,
                job_id,
            )
        return enqueued.done

    def _occurrence(self, schedule: Schedule, time_ms: int) -> OccurrenceJob:
        plain = schedule.job_id(time_ms)
        spare_id = self._owned(f"{plain}~{secrets.token_hex(8)}")  # nobody can guess it
        return OccurrenceJob(self._owned(plain), spare_id, time_ms)

    def _owned(self, plain: str) -> str:
        """The id, with a number if it would otherwise belong to another bucket.

        What stands behind braces changes no bucket, so there the number comes before them.
        """
        if self._registry.owns(plain):
            return plain
        ids = (f"#{n}{plain}" if plain.startswith("{") else f"{plain}#{n}" for n in count())
        return next(filter(self._registry.owns, ids))


def _answer(one: Schedule, next_ms: int | None) -> answers.Schedule:
    return answers.Schedule(
        name=one.name,
        topic=one.topic,
        cron=one.cron,
        every=seconds(one.every_ms or None),
        tz=one.tz,
        body=one.body,
        ttr=one.ttr_ms // 1000,
        catch_up=one.catch_up.value,
        paused=one.paused,
        next=seconds(next_ms),
        declared=one.declared,
        call=job_call(one.call) if one.call else LEFT_OUT,
        group=one.group or LEFT_OUT,
    )


def _read_plannable(definition: str) -> Schedule:
    """Read a schedule. Raises ValueError if it is none, or if this host, unlike others, cannot compute its times."""
    schedule = Schedule.read(definition)
    schedule.check_times()
    return schedule


def _due_jobs(
    entry: Entry, schedule: Schedule, next_ms: int | None, jobs: list[OccurrenceJob]
) -> DueJobs:
    return DueJobs(entry, next_ms, schedule.job(""), jobs)
