"""The verbs on schedules."""

from __future__ import annotations

from functools import partial
from typing import Literal

from delayqueue.answers.schedules import Occurrence, Schedule, SchedulePage
from delayqueue.client.api_request import ApiRequest, verb
from delayqueue.client.fields import each, member, nothing, read_page
from delayqueue.client.jobs import CallTo, OnConflict, given
from delayqueue.client.payload import Payload
from delayqueue.client.times import Seconds


class ScheduleVerbs:
    """The endpoints from /schedule to /run-schedule."""

    @verb
    def schedule(  # noqa: PLR0913  # one argument per field of a schedule
        self,
        name: str,
        topic: str | None = None,
        body: Payload | None = None,
        *,
        cron: str | None = None,
        every: Seconds | None = None,
        tz: str | None = None,
        ttr: Seconds | None = None,
        catch_up: Literal["skip", "once", "all"] | None = None,
        paused: bool | None = None,
        call: CallTo | None = None,
        group: str | None = None,
        if_exists: OnConflict | Literal["change"] | None = None,
    ) -> ApiRequest[float | None]:
        """Push jobs at the times of `cron`, or once every `every`; while it is `paused`, none. The server makes `call`.

        Returns the next occurrence, None = never. Raises JobExists if the name is taken, unless `if_exists` is
        "replace", "keep" or "change": that changes only what is given, and raises NoSuchJob if there is none.
        """
        request = given(**locals())
        return ApiRequest(
            "/schedule", request, lambda data: member(data, "next", float | None), repeatable=True
        )

    @verb
    def unschedule(self, name: str) -> ApiRequest[None]:
        """Remove a schedule. Raises NoSuchJob if no schedule has the name."""
        return ApiRequest(
            "/unschedule", given(**locals()), nothing, repeatable=True, gone_is_done=True
        )

    @verb
    def schedules(self, topic: str | None = None) -> ApiRequest[list[Schedule]]:
        """List the schedules of a topic, or of all topics, by name."""
        return ApiRequest("/schedules", given(**locals()), partial(each, Schedule), repeatable=True)

    @verb
    def schedules_page(
        self, topic: str | None = None, *, limit: int = 1000, cursor: str | None = None
    ) -> ApiRequest[SchedulePage]:
        """Return at most `limit` schedules of a topic, or of all topics, by name; `cursor` is that of the last page."""
        return ApiRequest(
            "/schedules",
            given(**locals()),
            partial(read_page, SchedulePage, "schedules"),
            repeatable=True,
        )

    @verb
    def preview_schedule(
        self, *, cron: str | None = None, every: Seconds | None = None, tz: str | None = None
    ) -> ApiRequest[list[Occurrence]]:
        """Return the next ten times of a schedule, which need not exist."""
        request = given(**locals())
        return ApiRequest("/preview-schedule", request, partial(each, Occurrence), repeatable=True)

    @verb
    def run_schedule(self, name: str) -> ApiRequest[str]:
        """Push a schedule's job now. Returns its id. Raises NoSuchJob if no schedule has the name."""
        return ApiRequest("/run-schedule", given(**locals()), lambda data: member(data, "id", str))
