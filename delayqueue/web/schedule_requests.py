"""What the endpoints on schedules take."""

from collections.abc import Iterable

from delayqueue import schedule as rules
from delayqueue.errors import Invalid, Text
from delayqueue.job import IfExists
from delayqueue.retry import duration_ms
from delayqueue.schedule import CatchUp, Schedule
from delayqueue.web.fields import (
    check_body,
    check_if_exists,
    check_pushed_topic,
    check_topic,
    check_ttr,
)
from delayqueue.web.requests import Number, Request
from delayqueue.web.subscriber_requests import NameRequest, by_rule

DEFAULT_TTR_S = 60


class ScheduleRequest(NameRequest):
    """A schedule to register."""

    topic: str | None = None
    cron: str | None = None
    every: Number | str | None = None
    tz: str | None = None
    body: str | None = None
    ttr: int | None = None
    catch_up: str | None = None
    if_exists: str | None = None

    def schedule(self, max_body_bytes: int) -> Schedule:
        """The schedule. Invalid or TooLarge names the field and what it may be."""
        if (self.cron is None) == (self.every is None):
            raise Invalid(Text("需要 cron 或 every 之一", "give one of cron, every"))
        check_body(self.body or "", max_body_bytes)
        return Schedule(
            name=self.checked_name(),
            topic=check_pushed_topic(self.topic),
            body=self.body or "",
            ttr_ms=check_ttr(DEFAULT_TTR_S if self.ttr is None else self.ttr),
            cron="" if self.cron is None else by_rule("cron", self.cron, rules.check_cron),
            every_ms=0 if self.every is None else self._every_ms(self.every),
            tz=by_rule("tz", "UTC" if self.tz is None else self.tz, rules.check_tz),
            catch_up=CatchUp.ONCE
            if self.catch_up is None
            else by_rule("catch_up", self.catch_up, rules.check_catch_up),
        )

    def checked_if_exists(self) -> IfExists:
        """What to do with another schedule of the name."""
        return IfExists.FAIL if self.if_exists is None else check_if_exists(self.if_exists)

    @staticmethod
    def _every_ms(every: float | str) -> int:
        return by_rule("every", by_rule("every", every, duration_ms), rules.check_every)


class SchedulesRequest(Request):
    """The schedules of one topic, or all."""

    topic: str | None = None

    def reach(self) -> Iterable[str] | None:
        """Its topic, where it has one."""
        return None if self.topic is None else (check_topic(self.topic),)

    def checked_topic(self) -> str:
        """The topic, "" = all."""
        return "" if self.topic is None else check_topic(self.topic)
