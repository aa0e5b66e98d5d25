"""Tasks with times of their own: the schedules on the server that push them are those that the code declares."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import available_timezones

from delayqueue.client.api_request import TransportError
from delayqueue.client.times import seconds
from delayqueue.domain.push_rules import stripped
from delayqueue.domain.schedule import Schedule as Rules
from delayqueue.domain.schedule import check_cron, check_every, check_form, check_tz
from delayqueue.errors import BadValue, Invalid, NoSuchJob, QueueError, TooMany, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from delayqueue.answers.schedules import Schedule
    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.times import Seconds

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # while the server is away
PREFIX: Final = "task:"  # of the names of such schedules; the topic follows


class Times(NamedTuple):
    """When the server pushes a task's job: at the times of `cron` in `tz`, or once every `every`."""

    topic: str
    ttr: Seconds
    cron: str | None
    every: Seconds | None
    tz: str | None
    group: str | None = None

    @property
    def name(self) -> str:
        """The name of the schedule on the server."""
        return PREFIX + self.topic

    def check(self) -> None:
        """Raises ValueError if no server could make a schedule of these times; `cron` is checked with CronSim only."""
        check_form(cron=self.cron is not None, every=self.every is not None, tz=self.tz)
        if self.every is not None:
            check_every(round(seconds(self.every) * 1000))
        if self.tz is not None:
            try:
                check_tz(self.tz)
            except BadValue:
                # without any, as on Windows, the server looks at `tz`
                if available_timezones():
                    raise
        if self.cron is not None:
            with suppress(ImportError):
                check_cron(self.cron)

    @property
    def schedule(self) -> Rules:
        """The schedule that a server makes of these times."""
        return Rules(
            name=self.name,
            topic=self.topic,
            body="{}",
            ttr_ms=round(seconds(self.ttr) * 1000),
            cron=self.cron or "",
            every_ms=0 if self.every is None else round(seconds(self.every) * 1000),
            tz=self.tz or "UTC",
            group=stripped(self.group or ""),
        )

    def matches(self, schedule: Schedule) -> bool:
        """Whether the schedule pushes the task's jobs at these times."""
        wanted = self.schedule
        return wanted == replace(
            wanted,
            topic=schedule.topic,
            ttr_ms=schedule.ttr * 1000,
            cron=schedule.cron,
            every_ms=round((schedule.every or 0) * 1000),
            tz=schedule.tz,
            group=schedule.group,
        )


async def declare(client: AsyncClient, declared: Sequence[Times], *, prune: bool) -> None:
    """Make the server's schedules those that are declared, as soon as it answers; with `prune` remove other tasks'.

    Without either, nothing is asked: such a worker needs no leave to see schedules.

    One that is as declared goes on as it is, so that restarts of workers do not put off what is due every so often; one
    that an operator has paused stays paused. If the server refuses one, that is logged, and the others are declared.
    """
    while declared or prune:
        try:
            await _declare(client, declared, prune=prune)
        except (TransportError, Unavailable, TooMany) as error:
            log.warning("cannot declare the schedules of tasks so far: %s", error)
            await asyncio.sleep(RETRY_S)
            continue
        except QueueError as error:
            log.error("the schedules of tasks are not as declared: %s", error)  # noqa: TRY400  # the server's words
        return


async def _declare(client: AsyncClient, declared: Sequence[Times], *, prune: bool) -> None:
    known = {one.name: one for one in await client.schedules() if one.name.startswith(PREFIX)}
    for times in declared:
        there = known.pop(times.name, None)
        if there is not None and times.matches(there):
            continue
        try:
            await client.schedule(
                times.name,
                times.topic,
                {},
                cron=times.cron,
                every=times.every,
                tz=times.tz,
                ttr=times.ttr,
                group=times.group,
                paused=there.paused if there else None,
                if_exists="replace",
            )
        except Invalid as error:
            log.error("task %s has no schedule: %s", times.topic, error)  # noqa: TRY400  # the server's words
            continue
        log.info("task %s has a new schedule", times.topic)
    if prune:
        for name in known:
            with suppress(NoSuchJob):  # another process of the worker was first
                await client.unschedule(name)
                log.info("removed the schedule %s: no task declares it", name)
