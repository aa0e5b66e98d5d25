"""Schedules as a Python program sees them, and the verbs on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import given, in_seconds, nothing, read
from delayqueue.client.jobs import OnConflict, Seconds
from delayqueue.client.payload import Payload, body_of


@dataclass(frozen=True, slots=True)
class Schedule:
    """Jobs that are pushed at the times of `cron` in the zone `tz`, or `every` so many seconds.

    `cron` is "" or `every` None. `next`: when it occurs next, None = never; `declared`: it stands in a config file.
    """

    name: str
    topic: str
    cron: str
    every: float | None
    tz: str
    body: str
    ttr: float
    catch_up: str
    next: float | None
    declared: bool


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A time of a schedule, also as it is written in the schedule's zone."""

    at: float
    local: str


class ScheduleVerbs:
    """From /schedule to /run-schedule."""

    @verb
    def schedule(  # noqa: PLR0913  # the fields of a schedule
        self,
        name: str,
        topic: str,
        body: Payload = "",
        *,
        cron: str | None = None,
        every: Seconds | None = None,
        tz: str | None = None,
        ttr: Seconds | None = None,
        catch_up: Literal["skip", "once", "all"] | None = None,
        if_exists: OnConflict | None = None,
    ) -> Call[float | None]:
        """Have jobs pushed at the times of `cron`, or `every` so often.

        Returns when it occurs next, None = never. Raises JobExists if another schedule has the name, unless `if_exists`
        is "replace" or "keep".
        """
        request = given(
            name=name,
            topic=topic,
            body=body_of(body),
            cron=cron,
            every=in_seconds(every),
            tz=tz,
            ttr=in_seconds(ttr),
            catch_up=catch_up,
            if_exists=if_exists,
        )
        return Call("/schedule", request, lambda data: data["next"], repeatable=True)

    @verb
    def unschedule(self, name: str) -> Call[None]:
        """Have a schedule push no more jobs. Raises NoSuchJob if none has the name."""
        return Call("/unschedule", {"name": name}, nothing, repeatable=True, gone_is_done=True)

    @verb
    def schedules(self, topic: str | None = None) -> Call[list[Schedule]]:
        """The schedules of a topic, or of all, by name."""
        return Call("/schedules", given(topic=topic), _schedules, repeatable=True)

    @verb
    def preview_schedule(
        self,
        *,
        cron: str | None = None,
        every: Seconds | None = None,
        tz: str | None = None,
    ) -> Call[list[Occurrence]]:
        """The next ten times of a schedule that need not be there."""
        request = given(cron=cron, every=in_seconds(every), tz=tz)
        return Call(
            "/preview-schedule",
            request,
            lambda data: [read(Occurrence, one) for one in data],
            repeatable=True,
        )

    @verb
    def run_schedule(self, name: str) -> Call[str]:
        """Push a job of a schedule now; its id. Raises NoSuchJob if none has the name."""
        return Call("/run-schedule", {"name": name}, lambda data: data["id"])


def _schedules(data: Any) -> list[Schedule]:
    return [read(Schedule, one) for one in data]
