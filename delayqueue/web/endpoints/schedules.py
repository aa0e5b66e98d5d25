"""Schedules: jobs that are pushed at the times of a calendar, or at a fixed interval."""

from datetime import datetime
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from pydantic import Field

from delayqueue.answers.answer import LEFT_OUT, seconds
from delayqueue.answers.jobs import NewId
from delayqueue.answers.schedules import Next, Occurrence, Schedule, SchedulePage
from delayqueue.domain import schedule as rules
from delayqueue.domain.job import CHANGE, IfExists
from delayqueue.domain.push_rules import given
from delayqueue.domain.retry import duration_ms
from delayqueue.domain.schedule import CatchUp
from delayqueue.errors import BadValue, Invalid, JobExists, NoSuchJob, TooLarge, TopicFull
from delayqueue.web.api import Api
from delayqueue.web.endpoint import ADMINS, BAD, OF_JOB, VIEWERS, Large, endpoint
from delayqueue.web.endpoints.push import refusal
from delayqueue.web.fields import (
    Body,
    Group,
    Number,
    PushedTopic,
    Ttr,
    Validate,
    check_body,
    ms_or_none,
    one_of,
    optional,
)
from delayqueue.web.requests import IfNamed, NameRequest, PagedRequest, Request
from delayqueue.web.targets import CallRequest, check_call

# by null in a change; what a schedule without them has
REMOVABLE: Final = {"call": None, "group": ""}
SCHEDULE: Final = Schedule(
    name="report",
    topic="report",
    cron="30 9 * * MON-FRI",
    every=None,
    tz="Asia/Shanghai",
    body="",
    ttr=60,
    catch_up="once",
    paused=False,
    next=1795224600.0,
    declared=False,
    call=LEFT_OUT,
    group=LEFT_OUT,
)


def check_every(value: float | str) -> float | str:
    """Check an interval: a number of seconds, or a text such as "15m"."""
    rules.check_every(duration_ms(value))
    return value


Cron = Annotated[
    str,
    Validate(rules.check_cron),
    Field(
        description=(
            "Minute, hour, day of the month, month, weekday; a field for seconds may come first. Or a name such as "
            "`@daily`. This or `every`."
        )
    ),
]
Every = Annotated[
    Number | str,
    Validate(check_every),
    Field(
        description='The interval, counted from 1970: seconds, or a text such as "15m"; 1 s to 366 days.'
    ),
]
TimeZone = Annotated[
    str, Validate(rules.check_tz), Field(description="The time zone of `cron`; `UTC` by default.")
]
CatchUpWord = Annotated[
    CatchUp,
    one_of(*CatchUp),
    Field(
        description="What to do about times that were missed because no server was running: "
        "`skip`, `once`, the default, or `all`."
    ),
]


class TimesRequest(Request):
    """When a schedule occurs."""

    cron: Cron | None = None
    every: Every | None = None
    tz: TimeZone | None = None

    def times(self) -> dict[str, Any]:
        """The fields that define its times. Raises Invalid if they are not given as they should be."""
        try:
            rules.check_form(cron=self.cron is not None, every=self.every is not None, tz=self.tz)
        except BadValue as error:
            raise Invalid(error.text) from None
        return {
            "cron": self.cron or "",
            "every_ms": 0 if self.every is None else duration_ms(self.every),
            "tz": self.tz or "UTC",
        }


class PreviewRequest(TimesRequest):
    """Times to preview."""

    without_topic = ()


class ScheduleRequest(NameRequest, TimesRequest):
    """A schedule to register."""

    topic: PushedTopic | None = optional(
        "The topic that jobs are pushed to; required unless it is changed."
    )
    body: Body | None = None
    ttr: Ttr | None = optional("Time to run of the jobs in seconds; 60 by default.")
    catch_up: CatchUpWord | None = None
    paused: bool | None = optional(
        "Whether to push nothing until this is changed to false; the times meanwhile are not caught up."
    )
    call: CallRequest | None = optional(
        "The call that the server makes with its jobs; no worker gets them. `change` replaces all of it; "
        "null in a `change` removes it."
    )
    group: Group | None = optional(
        "The group of its jobs; only in a store with one bucket. null in a `change` removes it."
    )
    if_exists: IfNamed | None = None

    def schedule(self, max_body_bytes: int) -> rules.Schedule:
        """The schedule; rules.Schedule has the defaults.

        Raises Invalid if its times are not given as they should be, TooLarge if its body is too large.
        """
        if self.topic is None:
            raise Invalid.of("topic不能为空", "topic: must not be empty")
        times = self.times()
        return rules.Schedule(name=self.name, **given(self._members(max_body_bytes)) | times)

    def changes(self, max_body_bytes: int) -> dict[str, Any]:
        """The fields of a schedule that are given or removed. Errors as in schedule()."""
        members = self._members(max_body_bytes)
        if self.cron is not None or self.every is not None:
            members |= self.times() | {"tz": self.tz if self.every is None else "UTC"}
        removed = {name: none for name, none in REMOVABLE.items() if name in self.model_fields_set}
        return removed | given(members)

    def _members(self, max_body_bytes: int) -> dict[str, Any]:
        """The fields of a schedule without its times, None for those that are not given."""
        check_body(self.body or "", max_body_bytes)
        return {
            "topic": self.topic,
            "body": self.body,
            "ttr_ms": ms_or_none(self.ttr),
            "catch_up": self.catch_up,
            "paused": self.paused,
            "call": self.call.call() if self.call else None,
            "group": self.group,
            "tz": self.tz,
        }


class SchedulesRequest(PagedRequest):
    """The schedules of one topic, or all."""


@endpoint(
    "/schedule",
    ADMINS,
    errors=(*BAD, NoSuchJob, JobExists, TooLarge),
    asks={"name": "report", "topic": "report", "cron": "30 9 * * MON-FRI", "tz": "Asia/Shanghai"},
    answers={"next": 1795224600.0},
)
async def schedule(api: Api, asked: ScheduleRequest) -> Next:
    """Push jobs at given times."""
    schedules, most_bytes = api.queue.schedules, api.config.max_body_bytes
    if asked.call:
        check_call(api, asked.call.call())
    if asked.if_exists == CHANGE:
        await schedules.change(asked.name, asked.changes(most_bytes))
    else:
        await schedules.register(asked.schedule(most_bytes), asked.if_exists or IfExists.FAIL)
    return Next(seconds(await schedules.next_ms(asked.name)))


@endpoint(
    "/preview-schedule",
    VIEWERS,
    asks={"cron": "30 9 * * MON-FRI", "tz": "Asia/Shanghai"},
    answers=[{"at": 1795397400.0, "local": "2026-11-23 09:30:00+08:00"}],
)
async def preview_schedule(api: Api, asked: PreviewRequest) -> list[Occurrence]:
    """Return the next ten times of a schedule, which need not exist."""
    planned = rules.Schedule(name="", topic="", **asked.times())
    zone = ZoneInfo(planned.tz)
    return [
        Occurrence(at_ms / 1000, str(datetime.fromtimestamp(at_ms / 1000, zone)))
        for at_ms in await api.queue.schedules.preview(planned)
    ]


@endpoint(
    "/run-schedule",
    ADMINS,
    errors=(*BAD, NoSuchJob, JobExists, TopicFull),
    asks={"name": "report"},
    answers={"id": "report@2026-11-23T07:12:30.250Z"},
)
async def run_schedule(api: Api, asked: NameRequest) -> NewId:
    """Push a schedule's job now."""
    job = await api.queue.schedules.job_now(asked.name)
    pushed = await api.jobs.push(job)
    if pushed.code:
        raise refusal(pushed)
    return NewId(job.id)


@endpoint("/unschedule", ADMINS, errors=OF_JOB, asks={"name": "report"})
async def unschedule(api: Api, asked: NameRequest) -> None:
    """Remove a schedule."""
    await api.queue.schedules.remove(asked.name)


@endpoint("/schedules", VIEWERS, asks={"topic": "report"}, answers=[SCHEDULE])
async def schedules(
    api: Api, asked: SchedulesRequest
) -> Large[list[Schedule]] | Large[SchedulePage]:
    """List schedules and their next occurrences."""
    every = await api.queue.schedules.all()
    found, cursor = asked.page("schedules", every, lambda one: (one.name,))
    return Large(found) if cursor is None else Large(SchedulePage(found, cursor))
