"""The verbs on topics, ranges and tags."""

from __future__ import annotations

from functools import partial
from types import EllipsisType
from typing import Final, Literal

from delayqueue.answers.jobs import Findings, Page, TakenJob
from delayqueue.answers.topics import DeadLetters, Forecast, Limits, TopicCounts
from delayqueue.client.api_request import ApiRequest, verb
from delayqueue.client.fields import count_of, each, nothing, read
from delayqueue.client.jobs import AnyState, given
from delayqueue.client.times import Moment, Seconds

DEFAULT_STEP_S: Final = 3600
TopicFilter = Literal["buried", "late", "paused", "limited", "full"]
TopicSort = Literal["topic", "delayed", "ready", "reserved", "buried", "oldest"]


class TopicVerbs:
    """The endpoints from /cancel to /topics."""

    @verb
    def cancel(self, tag: str, *, topic: str | None = None) -> ApiRequest[int]:
        """End all jobs of a tag, in one topic or in all. Returns how many."""
        return ApiRequest("/cancel", given(**locals()), count_of)

    @verb
    def list_jobs(  # noqa: PLR0913  # one argument per field of a listing
        self,
        topic: str | None = None,
        *,
        tag: str | None = None,
        state: AnyState | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ApiRequest[Page]:
        """List jobs of a topic, a tag or both, page by page, and leave them in place.

        Limits the due time: `start` and `end` are inclusive, `after` and `before` exclusive.
        """
        return ApiRequest("/list", given(**locals()), partial(read, Page), repeatable=True)

    @verb
    def take(  # one argument per field of a range
        self,
        topic: str,
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        count: int | None = None,
    ) -> ApiRequest[list[TakenJob]]:
        """Take jobs out of the queue: the first ones due from `start` to `end`, or after `after` and before `before`.

        Each job goes to one caller only.
        """
        return ApiRequest("/take", given(**locals()), partial(each, TakenJob))

    @verb
    def forecast(
        self,
        topic: str | None = None,
        *,
        start: Moment,
        end: Moment,
        step: Seconds = DEFAULT_STEP_S,
    ) -> ApiRequest[Forecast]:
        """Return how many delayed jobs fall due in each step from `start` to `end`."""
        return ApiRequest("/forecast", given(**locals()), partial(read, Forecast), repeatable=True)

    @verb
    def buried(  # noqa: PLR0913  # one argument per field
        self,
        topic: str | None = None,
        *,
        reason: str | None = None,
        ids: int | None = None,
        start: Moment | None = None,
        step: Seconds | None = None,
        steps: int | None = None,
        cursor: str | None = None,
    ) -> ApiRequest[DeadLetters]:
        """Return dead letters, grouped by the reason of their last failure, with up to `ids` ids a group.

        With `start`, `step` and `steps` also how many of a group were buried in each step.
        """
        return ApiRequest("/buried", given(**locals()), partial(read, DeadLetters), repeatable=True)

    @verb
    def note(self, reason: str, text: str | None = None) -> ApiRequest[None]:
        """Write a note on the dead letters of a reason, for everyone who looks at them; None removes it."""
        return ApiRequest("/note", given(**locals()), nothing, repeatable=True)

    @verb
    def find(  # noqa: PLR0913  # one argument per field
        self,
        *,
        id: str | None = None,  # noqa: A002  # the field's name
        text: str | None = None,
        message: str | None = None,
        topic: str | None = None,
        tag: str | None = None,
        group: str | None = None,
        state: AnyState | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ApiRequest[Findings]:
        """Search jobs for a part of their id, body or message, some thousand of them in a call.

        `start` to `before` limit the due time, as in `list_jobs`.
        """
        return ApiRequest("/find", given(**locals()), partial(read, Findings), repeatable=True)

    @verb
    def pause(self, topic: str, *, length: Seconds | None = None) -> ApiRequest[None]:
        """Pause a topic's deliveries for `length`, or until they are resumed."""
        return ApiRequest("/pause", given(topic=topic, seconds=length), nothing, repeatable=True)

    @verb
    def resume(self, topic: str) -> ApiRequest[None]:
        """Resume a topic's deliveries."""
        return ApiRequest("/resume", given(**locals()), nothing, repeatable=True)

    @verb
    def limit(  # noqa: PLR0913  # one argument per limit
        self,
        topic: str,
        *,
        rate: float | EllipsisType | None = ...,
        burst: int | EllipsisType | None = ...,
        concurrency: int | EllipsisType | None = ...,
        group_concurrency: int | EllipsisType | None = ...,
        group_order: bool | EllipsisType | None = ...,
        buried_retain: float | EllipsisType | None = ...,
        buried_to: str | EllipsisType | None = ...,
        max_jobs: int | EllipsisType | None = ...,
        when_full: Literal["drop_oldest"] | EllipsisType | None = ...,
    ) -> ApiRequest[Limits]:
        """Limit a topic's deliveries: `rate` a second, `burst` of them at once, `concurrency` reserved at once.

        Of each group at most `group_concurrency` are, or with `group_order` one, in strict order. Buried jobs end after
        `buried_retain` seconds, and each is reported by a job in the topic `buried_to`. A push to a topic with
        `max_jobs` raises TopicFull, or with `when_full` ends an older job. None lifts a limit; an
        omitted one stays. Returns the limits in force.
        """
        # not by given(): None lifts a limit
        request = {
            name: value for name, value in locals().items() if name != "self" and value is not ...
        }
        return ApiRequest("/limit", request, partial(read, Limits), repeatable=True)

    @verb
    def purge(
        self, topic: str, *, state: AnyState | Literal["ended"] | None = None
    ) -> ApiRequest[int]:
        """Delete a topic's jobs and keep no record of them: all, or those in one state ("ended" = kept results).

        Returns how many.
        """
        return ApiRequest("/purge", given(**locals()), count_of)

    @verb
    def topics(  # noqa: PLR0913  # one argument per field of a listing
        self,
        *names: str,
        match: str | None = None,
        only: TopicFilter | None = None,
        sort: TopicSort | None = None,
        reverse: bool | None = None,
        offset: int | None = None,
        limit: int | None = None,
        due_soon: bool | None = None,
        rates: bool | None = None,
        groups: bool | None = None,
    ) -> ApiRequest[list[TopicCounts]]:
        """Return topics with exact counts: all, those with these names, or those with `match` in their name.

        `sort` by name, or by a count with the largest first; `reverse` turns the order round. At most `limit` are
        returned. With `due_soon` also how many jobs fall due within 60, 300 and 3600 seconds; with `rates` also
        how many a second were pushed, delivered, finished and failed in the last minute; with `groups` also the ten
        groups of each with the most ready jobs.
        """
        request = given(**locals() | {"names": None, "topics": names or None})
        return ApiRequest("/topics", request, partial(each, TopicCounts), repeatable=True)
