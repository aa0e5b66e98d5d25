"""The verbs on topics, ranges and tags."""

from __future__ import annotations

from functools import partial
from types import EllipsisType
from typing import Final, Literal

from delayqueue.client.answers import (
    DeadLetters,
    Findings,
    Forecast,
    Limits,
    Page,
    TakenJob,
    TopicCounts,
)
from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import (
    count_of,
    each,
    given,
    in_seconds,
    in_unix,
    nothing,
    read,
)
from delayqueue.client.jobs import AnyState, Moment, Seconds, seconds, unix

DEFAULT_STEP_S: Final = 3600
TopicFilter = Literal["buried", "late", "paused", "limited"]
TopicSort = Literal["topic", "delayed", "ready", "reserved", "buried", "oldest"]


class TopicVerbs:
    """The endpoints from /cancel to /topics."""

    @verb
    def cancel(self, tag: str, *, topic: str | None = None) -> Call[int]:
        """End all jobs of a tag, in one topic or in all. Returns how many."""
        return Call("/cancel", given(tag=tag, topic=topic), count_of)

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
    ) -> Call[Page]:
        """List jobs of a topic, a tag or both, page by page, and leave them in place.

        Limits the due time: `start` and `end` are inclusive, `after` and `before` exclusive.
        """
        request = given(
            topic=topic,
            tag=tag,
            state=state and str(state),
            start=in_unix(start),
            end=in_unix(end),
            after=in_unix(after),
            before=in_unix(before),
            limit=limit,
            cursor=cursor,
        )
        return Call(
            "/list",
            request,
            partial(read, Page),
            repeatable=True,
        )

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
    ) -> Call[list[TakenJob]]:
        """Take jobs out of the queue: the first ones due from `start` to `end`, or after `after` and before `before`.

        Each job goes to one caller only.
        """
        request = given(
            topic=topic,
            start=in_unix(start),
            end=in_unix(end),
            after=in_unix(after),
            before=in_unix(before),
            count=count,
        )
        return Call("/take", request, partial(each, TakenJob))

    @verb
    def forecast(
        self,
        topic: str | None = None,
        *,
        start: Moment,
        end: Moment,
        step: Seconds = DEFAULT_STEP_S,
    ) -> Call[Forecast]:
        """Return how many delayed jobs fall due in each step from `start` to `end`."""
        request = given(topic=topic, start=unix(start), end=unix(end), step=seconds(step))
        return Call("/forecast", request, partial(read, Forecast), repeatable=True)

    @verb
    def buried(
        self,
        topic: str | None = None,
        *,
        reason: str | None = None,
        ids: int | None = None,
        cursor: str | None = None,
    ) -> Call[DeadLetters]:
        """Return dead letters, grouped by the reason of their last failure, with up to `ids` ids a group."""
        request = given(topic=topic, reason=reason, ids=ids, cursor=cursor)
        return Call(
            "/buried",
            request,
            partial(read, DeadLetters),
            repeatable=True,
        )

    @verb
    def find(
        self,
        *,
        id: str | None = None,  # noqa: A002  # the field's name
        text: str | None = None,
        topic: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Findings]:
        """Search jobs for a part of their id or their body, at most 10,000 of them in a call."""
        request = given(id=id, text=text, topic=topic, limit=limit, cursor=cursor)
        return Call(
            "/find",
            request,
            partial(read, Findings),
            repeatable=True,
        )

    @verb
    def pause(self, topic: str, *, length: Seconds | None = None) -> Call[None]:
        """Pause a topic's deliveries for `length`, or until they are resumed."""
        return Call(
            "/pause", given(topic=topic, seconds=in_seconds(length)), nothing, repeatable=True
        )

    @verb
    def resume(self, topic: str) -> Call[None]:
        """Resume a topic's deliveries."""
        return Call("/resume", {"topic": topic}, nothing, repeatable=True)

    @verb
    def limit(
        self,
        topic: str,
        *,
        rate: float | EllipsisType | None = ...,
        burst: int | EllipsisType | None = ...,
        concurrency: int | EllipsisType | None = ...,
        buried_retain: float | EllipsisType | None = ...,
    ) -> Call[Limits]:
        """Limit a topic's deliveries: `rate` a second, `burst` of them at once, `concurrency` reserved at once.

        Buried jobs end after `buried_retain` seconds. None lifts a limit; an omitted one stays. Returns the limits in
        force.
        """
        changes = {
            "rate": rate,
            "burst": burst,
            "concurrency": concurrency,
            "buried_retain": buried_retain,
        }
        request = {"topic": topic} | {
            name: each for name, each in changes.items() if each is not ...
        }
        return Call("/limit", request, partial(read, Limits), repeatable=True)

    @verb
    def purge(self, topic: str, *, state: AnyState | Literal["ended"] | None = None) -> Call[int]:
        """Delete a topic's jobs without a trace: all, or those in one state ("ended" = kept results).

        Returns how many.
        """
        return Call("/purge", given(topic=topic, state=state), count_of)

    @verb
    def topics(  # one argument per field of a listing
        self,
        *names: str,
        match: str | None = None,
        only: TopicFilter | None = None,
        sort: TopicSort | None = None,
        reverse: bool | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> Call[list[TopicCounts]]:
        """Return topics with exact counts: all, those with these names, or those with `match` in their name.

        `sort` by name, or by a count with the largest first; `reverse` turns the order round. At most `limit` are
        returned.
        """
        request = given(
            topics=list(names) or None,
            match=match,
            only=only,
            sort=sort,
            reverse=reverse,
            offset=offset,
            limit=limit,
        )
        return Call(
            "/topics",
            request,
            partial(each, TopicCounts),
            repeatable=True,
        )
