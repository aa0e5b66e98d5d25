"""Schedules: jobs that are pushed at the times of a calendar, or every so often."""

from typing import Annotated, Final

from pydantic import Field

from delayqueue.domain import schedule as rules
from delayqueue.domain.job import IfExists
from delayqueue.domain.retry import duration_ms
from delayqueue.domain.schedule import CatchUp, Schedule
from delayqueue.errors import Invalid, JobExists, Text, TooLarge
from delayqueue.web import serializers
from delayqueue.web.api import Api
from delayqueue.web.endpoint import ADMINS, BAD, OF_JOB, VIEWERS, Large, endpoint
from delayqueue.web.fields import (
    TEXT,
    Body,
    By,
    IfExistsWord,
    Number,
    PushedTopic,
    Ttr,
    check_body,
    ms,
)
from delayqueue.web.requests import AnyTopicRequest, NameRequest
from delayqueue.web.responses import Next, ScheduleState

DEFAULT_TTR_S: Final = 60
SCHEDULE: Final = ScheduleState(
    name="report",
    topic="report",
    cron="30 9 * * MON-FRI",
    every=None,
    tz="Asia/Shanghai",
    body="",
    ttr=60,
    catch_up="once",
    next=1795224600.0,
    declared=False,
)


def check_every(value: float | str) -> float | str:
    """A number of seconds, or a text such as "15m"."""
    rules.check_every(duration_ms(value))
    return value


Cron = Annotated[
    str,
    By(rules.check_cron),
    Field(description="Minute, hour, day, month, weekday; a field for seconds may come first."),
]
Every = Annotated[
    Number | str,
    By(check_every),
    Field(description='Seconds, or a text such as "15m"; counted from 1970.'),
]
TimeZone = Annotated[
    str, By(rules.check_tz), Field(description="The time zone of `cron`; UTC if it is not said.")
]
CatchUpWord = Annotated[
    CatchUp,
    By(rules.check_catch_up, TEXT, enum=list(CatchUp)),
    Field(description="What to do about missed occurrences; `once` if it is not said."),
]


class ScheduleRequest(NameRequest):
    """A schedule to register."""

    topic: PushedTopic
    cron: Cron | None = None
    every: Every | None = None
    tz: TimeZone | None = None
    body: Body | None = None
    ttr: Ttr | None = None
    catch_up: CatchUpWord | None = None
    if_exists: IfExistsWord | None = Field(
        None, description="What to do if the name is another's, `fail` if it is not said."
    )

    def schedule(self, max_body_bytes: int) -> Schedule:
        """The schedule. Raises Invalid if it has not either one of cron and every, TooLarge if its body is that."""
        if (self.cron is None) == (self.every is None):
            raise Invalid(Text("需要 cron 或 every 之一", "give one of cron, every"))
        check_body(self.body or "", max_body_bytes)
        return Schedule(
            name=self.name,
            topic=self.topic,
            body=self.body or "",
            ttr_ms=ms(self.ttr or DEFAULT_TTR_S),
            cron=self.cron or "",
            every_ms=0 if self.every is None else duration_ms(self.every),
            tz=self.tz or "UTC",
            catch_up=self.catch_up or CatchUp.ONCE,
        )


class SchedulesRequest(AnyTopicRequest):
    """The schedules of one topic, or all."""


@endpoint(
    "/schedule",
    ADMINS,
    errors=(*BAD, JobExists, TooLarge),
    asks={"name": "report", "topic": "report", "cron": "30 9 * * MON-FRI", "tz": "Asia/Shanghai"},
    answers={"next": 1795224600.0},
)
async def schedule(api: Api, asked: ScheduleRequest) -> Next:
    """Have jobs pushed at given times."""
    wanted, if_exists = asked.schedule(api.max_body_bytes), asked.if_exists or IfExists.FAIL
    return {"next": serializers.seconds(await api.queue.schedules.schedule(wanted, if_exists))}


@endpoint("/unschedule", ADMINS, errors=OF_JOB, asks={"name": "report"})
async def unschedule(api: Api, asked: NameRequest) -> None:
    """Have them pushed no more."""
    await api.queue.schedules.unschedule(asked.name)


@endpoint("/schedules", VIEWERS, asks={"topic": "report"}, answers=[SCHEDULE])
async def schedules(api: Api, asked: SchedulesRequest) -> Large[list[ScheduleState]]:
    """What is pushed, and when next."""
    found = await api.queue.schedules.all()
    return Large(
        [
            serializers.schedule(planned)
            for planned in found
            if asked.topic in {None, planned.schedule.topic}
        ]
    )
