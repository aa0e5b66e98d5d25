"""A schedule: jobs that are pushed at the times of a calendar, or at a fixed interval. Pure.

The checks take a value that a user wrote and return what it means; they raise BadValue.
"""

import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from delayqueue.domain.call import Call
from delayqueue.domain.cron import Cron, zone
from delayqueue.domain.job import IfExists, Job
from delayqueue.domain.written import defined
from delayqueue.errors import BadValue

MIN_EVERY_S = 1
MAX_EVERY_S = 366 * 86_400
# An occurrence that could not be pushed within this time was missed.
LATE_MS = 60_000
# files and folders beside those of the zones: what they hold depends on the host, or counts leap seconds
OF_THE_HOST = ("localtime", "posixrules", "posix", "right")
MAX_CRON_CHARS = 512  # takes half a millisecond to parse, at each occurrence
# Occurrences that are pushed in one go, and bytes of their bodies; more follow at once.
BATCH = 100
BATCH_BYTES = 4 * 1024 * 1024
NEWER_FIELDS = ("paused", "call", "group")


class CatchUp(StrEnum):
    """What to do about occurrences that were missed because no server was running."""

    SKIP = "skip"  # nothing
    ONCE = "once"  # push the last one of them, unless a later one was not missed
    ALL = "all"  # push every one


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Either a `cron` expression in the time zone `tz`, or `every_ms`, counted from 1970."""

    name: str
    topic: str
    body: str = ""
    ttr_ms: int = 60_000
    cron: str = ""
    every_ms: int = 0
    tz: str = "UTC"
    catch_up: CatchUp = CatchUp.ONCE
    declared: bool = False  # comes from a config file, not from a client
    paused: bool = False  # has no next occurrence
    call: Call | None = None  # of its jobs
    group: str = ""  # of its jobs

    @classmethod
    def read(cls, definition: str) -> Self:
        """Parse what `definition` returned, also of a newer version. Raises ValueError if it is not a schedule."""
        try:
            found = defined(cls, definition)
            call = Call.read(found["call"]) if "call" in found else None
            one = cls(**found | {"catch_up": CatchUp(found["catch_up"]), "call": call})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a definition of a schedule: {error}") from None
        check_form(cron=bool(one.cron), every=one.every_ms > 0, tz=None)
        return one

    @property
    def definition(self) -> str:
        """The schedule as the store keeps it.

        Newer fields are left out if they have their defaults, so that it equals what older versions wrote.
        """
        written = {each.name: getattr(self, each.name) for each in fields(self)}
        written["call"] = self.call and self.call.written
        return json.dumps(
            {key: value for key, value in written.items() if key not in NEWER_FIELDS or value},
            ensure_ascii=False,
        )

    def job(self, job_id: str) -> Job:
        """The job that is pushed at an occurrence."""
        return Job(
            topic=self.topic,
            id=job_id,
            body=self.body,
            ttr_ms=self.ttr_ms,
            call=self.call,
            texts={"group": self.group} if self.group else {},
            if_exists=IfExists.FAIL,
        )

    def after(self, time_ms: int) -> int | None:
        """The first occurrence after a unix time in ms; None = there is none in 50 years."""
        if self.every_ms:
            return (time_ms // self.every_ms + 1) * self.every_ms
        return _ms(Cron(self.cron, self.tz).after(time_ms // 1000))

    def occurs(self, time_ms: int) -> bool:
        """Whether that unix time is an occurrence."""
        return self.after(time_ms - 1) == time_ms

    def until(self, time_ms: int) -> int | None:
        """The last occurrence at or before that unix time."""
        if self.every_ms:
            return time_ms // self.every_ms * self.every_ms
        return _ms(Cron(self.cron, self.tz).until(time_ms // 1000))

    def check_times(self) -> None:
        """Raises ValueError if this host cannot compute the times: its zone or its `cron` is unknown here."""
        if self.cron:
            Cron(self.cron, self.tz)

    def plan(self, first_ms: int, now_ms: int) -> tuple[list[int], int | None]:
        """The occurrences to push, from `first_ms`, itself one, until now; and the next one to wait for."""
        time_ms: int | None = first_ms
        if self.catch_up is not CatchUp.ALL and first_ms < now_ms - LATE_MS:
            time_ms = self.after(now_ms - LATE_MS - 1)
        due: list[int] = []
        most = max(1, min(BATCH, BATCH_BYTES // (len(self.body) or 1)))
        while time_ms is not None and time_ms <= now_ms and len(due) < most:
            due.append(time_ms)
            time_ms = self.after(time_ms)
        if not due and self.catch_up is CatchUp.ONCE:
            due.append(self.until(now_ms) or first_ms)
        return due, time_ms

    def job_id(self, time_ms: int) -> str:
        """The id of the job that is pushed at an occurrence."""
        time = datetime.fromtimestamp(time_ms / 1000, UTC)
        spec = "milliseconds" if time_ms % 1000 else "seconds"
        return f"{self.name}@{time.isoformat(timespec=spec).removesuffix('+00:00')}Z"


def _ms(time_s: int | None) -> int | None:
    return None if time_s is None else time_s * 1000


def check_form(*, cron: bool, every: bool, tz: str | None) -> None:
    """Check that either `cron` or `every` is given, and a time zone other than UTC only with `cron`."""
    if cron == every:
        raise BadValue("需要 cron 或 every 之一", "give one of cron, every")
    if every and tz not in {None, "UTC"}:
        raise BadValue(
            "tz只用于cron；every从1970年起按UTC计算",
            "tz: is only for cron; every is counted from 1970 in UTC",
        )


def check_cron(text: str) -> str:
    """Check a cron expression: five fields, or six with seconds first, and a time in the future."""
    if len(text) > MAX_CRON_CHARS:
        raise BadValue(
            f"最长{MAX_CRON_CHARS}个字符", f"must be at most {MAX_CRON_CHARS} characters long"
        )
    try:
        expression = Schedule(name="", topic="", cron=text)
        never = expression.after(0) is None
    except ValueError as error:
        raise BadValue(
            "须形如 30 9 * * MON-FRI", f"{error}: must be like 30 9 * * MON-FRI"
        ) from None
    if never:
        raise BadValue("须为会到来的时间", "must be a time in the future")
    return text


def check_tz(text: str) -> str:
    """Check the name of a time zone, which must mean the same on each server."""
    if text.partition("/")[0] in OF_THE_HOST:
        raise BadValue(
            f"须为 Asia/Shanghai、UTC 这样的时区；{text} 因服务所在的机器而异",
            f"must be a time zone such as Asia/Shanghai or UTC; {text} differs from server to server",
        )
    try:
        zone(text)
    except ValueError:
        raise BadValue(
            "须为 Asia/Shanghai、UTC 这样的时区", "must be a time zone such as Asia/Shanghai or UTC"
        ) from None
    return text


def check_every(every_ms: int) -> int:
    """Check an interval."""
    if not MIN_EVERY_S * 1000 <= every_ms <= MAX_EVERY_S * 1000:
        raise BadValue(
            f"取值范围{MIN_EVERY_S} - {MAX_EVERY_S}秒",
            f"must be {MIN_EVERY_S} to {MAX_EVERY_S} seconds",
        )
    return every_ms
