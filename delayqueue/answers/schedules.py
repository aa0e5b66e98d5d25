"""Schedules and their times."""

from dataclasses import field

from delayqueue.answers.answer import answer, omittable
from delayqueue.answers.jobs import JobCall


@answer
class Schedule:
    """A schedule and its next occurrence. Either `cron` is "" or `every` null; `declared`: from a config file.

    `call` and `group` are there only if its jobs have one.
    """

    name: str
    topic: str
    cron: str
    every: float | None
    tz: str
    body: str
    ttr: int
    catch_up: str
    paused: bool = field(default=False, kw_only=True)
    next: float | None
    declared: bool
    call: JobCall | None = omittable(default=None)
    group: str = omittable(default="")


@answer
class SchedulePage:
    """Some of the schedules; `cursor` leads to the next page, "" on the last one."""

    schedules: list[Schedule]
    cursor: str


@answer
class Occurrence:
    """One time of a schedule, also written in the schedule's time zone."""

    at: float
    local: str


@answer
class Next:
    """The next occurrence of a schedule; null = never again."""

    next: float | None
