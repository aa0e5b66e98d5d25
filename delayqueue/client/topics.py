"""Topics as a Python program sees them, and the verbs on topics, ranges and tags."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Final, Literal

from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import count_of, details, given, in_seconds, in_unix, nothing, read
from delayqueue.client.jobs import AnyState, Moment, Page, Seconds, TakenJob, seconds, unix

DEFAULT_STEP_S: Final = 3600
TopicFilter = Literal["buried", "late", "paused", "limited"]
TopicSort = Literal["topic", "delayed", "ready", "reserved", "buried", "oldest"]


@dataclass(frozen=True, slots=True)
class Forecast:
    """How many delayed jobs fall due in each step of so many seconds, from `start` on."""

    start: float
    step: float
    counts: list[int]


@dataclass(frozen=True, slots=True)
class Limits:
    """How fast (`rate` a second, `burst` at once after a rest) and how many at once a topic's jobs are handed out.

    `buried_retain`: for how many seconds its buried ones are kept. None = no limit, or as the server's settings say.
    `declared`: they stand in a config file.
    """

    rate: float | None
    burst: int | None
    concurrency: int | None
    declared: bool
    buried_retain: float | None = None


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """A topic. `oldest_ready_age` is None where nothing is ready; `paused` may be the time at which the pause ends."""

    topic: str
    delayed: int
    ready: int
    reserved: int
    buried: int
    oldest_ready_age: float | None
    paused: bool | float
    limit: Limits | None


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Dead letters of one reason: how many, buried from `first` to `last`, of which topics, some of their ids."""

    reason: str
    count: int
    first: float
    last: float
    topics: dict[str, int]
    ids: list[str]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A page of them, the largest group first; `cursor` leads to the next page, "" = this was the last."""

    groups: list[DeadLetterGroup]
    cursor: str


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job that was found; `get` tells more of it."""

    id: str
    topic: str
    state: str
    due: float


@dataclass(frozen=True, slots=True)
class Findings:
    """Jobs that were found among `looked` ones; `cursor` leads on, "" = these were all that there are."""

    jobs: list[FoundJob]
    looked: int
    cursor: str


class TopicVerbs:
    """From /cancel to /topics."""

    @verb
    def cancel(self, tag: str, *, topic: str | None = None) -> Call[int]:
        """End all jobs of a tag, of one topic or of all; how many."""
        return Call("/cancel", given(tag=tag, topic=topic), count_of)

    @verb
    def list_jobs(  # noqa: PLR0913  # the fields of a listing
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
        """A page of the jobs of a topic, a tag or both; takes nothing.

        Due from `start` to `end`, both in, or `after` to `before`, both out.
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
            lambda data: Page([details(job) for job in data["jobs"]], data["cursor"]),
            repeatable=True,
        )

    @verb
    def take(  # the fields of a range
        self,
        topic: str,
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        after: Moment | None = None,
        before: Moment | None = None,
        count: int | None = None,
    ) -> Call[list[TakenJob]]:
        """Remove the first jobs that are due from `start` to `end`, or after `after` and before `before`.

        Each is given to one caller only.
        """
        request = given(
            topic=topic,
            start=in_unix(start),
            end=in_unix(end),
            after=in_unix(after),
            before=in_unix(before),
            count=count,
        )
        return Call("/take", request, lambda data: [read(TakenJob, job) for job in data])

    @verb
    def forecast(
        self,
        topic: str | None = None,
        *,
        start: Moment,
        end: Moment,
        step: Seconds = DEFAULT_STEP_S,
    ) -> Call[Forecast]:
        """How many delayed jobs fall due in each step from `start` to `end`."""
        request = given(topic=topic, start=unix(start), end=unix(end), step=seconds(step))
        return Call("/forecast", request, lambda data: read(Forecast, data), repeatable=True)

    @verb
    def buried(
        self,
        topic: str | None = None,
        *,
        reason: str | None = None,
        ids: int | None = None,
        cursor: str | None = None,
    ) -> Call[DeadLetters]:
        """Dead letters by the reason of their last failure, of a topic or of all; `ids` of each group."""
        request = given(topic=topic, reason=reason, ids=ids, cursor=cursor)
        return Call(
            "/buried",
            request,
            lambda data: DeadLetters(
                [read(DeadLetterGroup, group) for group in data["groups"]], data["cursor"]
            ),
            repeatable=True,
        )

    @verb
    def find(
        self,
        *,
        id: str | None = None,  # noqa: A002  # as the field is called
        text: str | None = None,
        topic: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Findings]:
        """Look through jobs for a part of their id or their body; at most 10,000 in a call."""
        request = given(id=id, text=text, topic=topic, limit=limit, cursor=cursor)
        return Call(
            "/find",
            request,
            lambda data: read(
                Findings, data | {"jobs": [read(FoundJob, job) for job in data["jobs"]]}
            ),
            repeatable=True,
        )

    @verb
    def pause(self, topic: str, *, length: Seconds | None = None) -> Call[None]:
        """Hold a topic's deliveries for so long, or until they are resumed."""
        return Call(
            "/pause", given(topic=topic, seconds=in_seconds(length)), nothing, repeatable=True
        )

    @verb
    def resume(self, topic: str) -> Call[None]:
        """Let a topic's deliveries go on."""
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
        """Limit a topic's deliveries: `rate` a second, `burst` of them at once; `concurrency` reserved at once.

        Buried jobs end after `buried_retain` seconds. None lifts a limit; what is not named stays. Returns what is
        in force.
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
        return Call("/limit", request, lambda data: read(Limits, data), repeatable=True)

    @verb
    def purge(self, topic: str, *, state: AnyState | Literal["ended"] | None = None) -> Call[int]:
        """Drop a topic's jobs without a trace, all or those of one state ("ended" for kept results); how many."""
        return Call("/purge", given(topic=topic, state=state), count_of)

    @verb
    def topics(  # the fields of a listing
        self,
        *names: str,
        match: str | None = None,
        only: TopicFilter | None = None,
        sort: TopicSort | None = None,
        reverse: bool | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> Call[list[TopicCounts]]:
        """Every topic with its exact counts; or those of these names, with `match` in their name, `limit` at most.

        `sort` by the name, or the largest of it first; `reverse` is the other way round.
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
            lambda data: [topic_counts(topic) for topic in data],
            repeatable=True,
        )


def topic_counts(data: dict[str, Any]) -> TopicCounts:
    """A topic as the server says it."""
    limit = data["limit"] and read(Limits, data["limit"])
    return read(TopicCounts, data | {"limit": limit})
