"""Topics: their jobs, and pausing, limiting and purging them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.jobs import Count
from delayqueue.answers.topics import Limits, TopicCounts
from delayqueue.domain import limit as rules
from delayqueue.domain.job import LIVE_STATES
from delayqueue.engine.topic_answers import topic_counts, topic_limits
from delayqueue.errors import WrongState
from delayqueue.store.census import TopicView
from delayqueue.tasks import by_turns
from delayqueue.web.api import Api
from delayqueue.web.endpoint import ADMINS, BAD, VIEWERS, Large, endpoint
from delayqueue.web.fields import (
    FIRST,
    Bounds,
    JobCount,
    Number,
    PushedTopic,
    SomeSeconds,
    Topic,
    Validate,
    ms,
    ms_or_none,
    one_of,
    optional,
)
from delayqueue.web.requests import PushedTopicRequest, Request, TopicRequest

TOPIC: Final = TopicCounts(
    topic="order",
    delayed=3,
    ready=1,
    reserved=0,
    buried=0,
    oldest_ready_age=0.25,
    paused=False,
    limit=None,
    due_soon=LEFT_OUT,
    rates=LEFT_OUT,
    groups=LEFT_OUT,
)


Rate = Annotated[
    Number,
    Validate(rules.check_rate, minimum=rules.MIN_RATE, maximum=rules.MAX_RATE),
    Field(description="Deliveries a second; null = no limit."),
]
Burst = Annotated[
    int,
    Validate(rules.check_burst, minimum=1, maximum=rules.MAX_BURST),
    Field(
        description=(
            "Deliveries at once after a pause; needs a `rate`, and is a tenth of it, at least 1, unless it is set. "
            "Counts as `bucket_size` if it is less."
        )
    ),
]
Concurrency = Annotated[
    int,
    Validate(rules.check_concurrency, minimum=1, maximum=rules.MAX_CONCURRENCY),
    Field(description="Jobs reserved at once, at least `bucket_size`; null = no limit."),
]
GroupConcurrency = Annotated[
    int,
    Validate(rules.check_concurrency, minimum=1, maximum=rules.MAX_CONCURRENCY),
    Field(description="Jobs of one `group` reserved at once; null = no limit."),
]
MaxJobs = Annotated[
    int,
    Validate(rules.check_max_jobs, minimum=1, maximum=rules.MAX_JOBS),
    Field(
        description="Jobs that the topic may have, delayed, ready, reserved and buried, at least `bucket_size`; "
        "null = any number."
    ),
]
PurgeState = Annotated[
    str,
    one_of(*LIVE_STATES, "ended"),
    Field(description="Only jobs in this state; `ended`: the kept results."),
]


NEARLY_FULL: Final = 0.8  # of the jobs that a topic may have in a bucket
LATE_MS: Final = 60_000  # a job that has been ready for this long is late
MAX_OFFSET: Final = 10**9


def _is_nearly_full(topic: TopicView) -> bool:
    """Whether pushes to the topic are refused soon, or already."""
    return topic.filled >= NEARLY_FULL and topic.limit is not None and not topic.limit.when_full


FILTERS: Final[Mapping[str, Callable[[TopicView], bool]]] = {
    "buried": lambda topic: topic.buried > 0,
    "late": lambda topic: (topic.oldest_age_ms or 0) >= LATE_MS,
    "paused": lambda topic: topic.paused_until_ms is not None,
    "limited": lambda topic: topic.limit is not None,
    "full": _is_nearly_full,
}
SORTS: Final[Mapping[str, Callable[[TopicView], str | int]]] = {
    "topic": lambda topic: topic.topic,
    "delayed": lambda topic: -topic.delayed,
    "ready": lambda topic: -topic.ready,
    "reserved": lambda topic: -topic.reserved,
    "buried": lambda topic: -topic.buried,
    "oldest": lambda topic: -(-1 if topic.oldest_age_ms is None else topic.oldest_age_ms),
}


def attention(topic: TopicView) -> list[str]:
    """Why somebody should look at the topic; [] if all is well.

    It has `buried` jobs, is `late`, is `paused` while jobs wait, or is nearly `full`.
    """
    is_paused = FILTERS["paused"](topic)
    waits = {"late": not is_paused and FILTERS["late"](topic), "paused": is_paused and topic.ready}
    found = {"buried": topic.buried, **waits, "full": _is_nearly_full(topic)}
    return [why for why, holds in found.items() if holds]


class LimitRequest(PushedTopicRequest):
    """A topic whose deliveries are limited; null removes a limit, an omitted one stays."""

    rate: Rate | None = None
    burst: Burst | None = None
    concurrency: Concurrency | None = None
    group_concurrency: GroupConcurrency | None = None
    group_order: bool | None = optional(
        "Whether the jobs of a `group` are handed out in strict order, one at a time: while one waits for its retry, "
        "the next is held."
    )
    buried_retain: SomeSeconds | None = optional(
        "How many seconds a buried job is kept before it ends as `expired`; "
        "null = as the setting `buried_retain` says, forever by default."
    )
    buried_to: PushedTopic | None = optional(
        "The topic that gets a job for each buried one; null = no topic."
    )
    max_jobs: MaxJobs | None = None
    when_full: Annotated[str, one_of(*rules.WhenFull)] | None = optional(
        "What a push to a full topic does: `drop_oldest` ends an older job as `dropped`; "
        "null = the push is refused with code 11."
    )

    def named_topics(self) -> Iterable[str]:
        """The topic, and the one that gets the reports."""
        return (self.topic,) if self.buried_to is None else (self.topic, self.buried_to)

    def changes(self) -> rules.Changes:
        """The wanted limits, by name; None = no limit."""
        limits = type(self).model_fields.keys() - {"topic"}
        wanted = self.model_dump(include=limits, exclude_unset=True)
        if "buried_retain" in wanted:
            wanted["buried_retain_ms"] = ms_or_none(wanted.pop("buried_retain"))
        return wanted


class PauseRequest(PushedTopicRequest):
    """A topic to pause, for `seconds` or until it is resumed."""

    seconds: SomeSeconds | None = optional("For how long; until /resume by default.")


class PurgeRequest(TopicRequest):
    """A topic whose jobs are dropped: all, or those in one state."""

    state: PurgeState | None = None


class TopicsRequest(Request):
    """Which topics: these, or those with `match` in their name; `limit` of them, starting at `offset`."""

    topics: Annotated[list[Topic], FIRST] | None = optional(
        "Only these topics; all counts are 0 for one that has no jobs."
    )
    match: str | None = optional("Only topics with this in their name.")
    only: Annotated[str, one_of(*FILTERS)] | None = optional(
        "Only topics with this trouble; `late`: a job has been ready for a minute; "
        "`full`: it, or one of its buckets, has 80 % of the jobs that `max_jobs` allows, or more; "
        "pushes to a full one are refused."
    )
    sort: Annotated[str, one_of(*SORTS)] | None = optional(
        "By the name, the default, or by this count, the largest first."
    )
    reverse: bool | None = optional("In reverse order.")
    offset: Annotated[int, Bounds(0, MAX_OFFSET)] | None = optional("How many to skip.")
    limit: JobCount | None = optional("The most to return.")
    due_soon: bool | None = optional(
        "Whether to count the jobs that fall due within 60, 300 and 3600 seconds."
    )
    rates: bool | None = optional(
        "Whether to include how many jobs a second were pushed, delivered, finished and failed in the last minute."
    )

    groups: bool | None = optional(
        "Whether to name the ten groups of each topic with the most ready jobs."
    )

    without_topic = ()  # only those that the client may reach are returned


@endpoint(
    "/limit",
    ADMINS,
    errors=(*BAD, WrongState),
    asks={"topic": "order", "rate": 50, "concurrency": 10},
    answers=Limits(
        rate=50,
        burst=5,
        concurrency=10,
        group_concurrency=LEFT_OUT,
        group_order=LEFT_OUT,
        buried_retain=None,
        buried_to=LEFT_OUT,
        declared=False,
    ),
)
async def limit(api: Api, asked: LimitRequest) -> Limits:
    """Limit a topic's deliveries."""
    return topic_limits(await api.jobs.topics.limit(asked.topic, asked.changes()))


@endpoint("/pause", ADMINS, asks={"topic": "order", "seconds": 600})
async def pause(api: Api, asked: PauseRequest) -> None:
    """Pause a topic's deliveries."""
    await api.jobs.topics.pause(asked.topic, ms(asked.seconds or 0))


@endpoint("/resume", ADMINS, asks={"topic": "order"})
async def resume(api: Api, asked: TopicRequest) -> None:
    """Resume a topic's deliveries."""
    await api.jobs.topics.pause(asked.topic, None)


@endpoint("/purge", ADMINS, asks={"topic": "order", "state": "buried"}, answers={"count": 7})
async def purge(api: Api, asked: PurgeRequest) -> Count:
    """Delete a topic's jobs and keep no record of them."""
    return Count(await api.jobs.topics.purge(asked.topic, asked.state))


@endpoint("/topics", VIEWERS, methods=("POST", "GET"), asks={"match": "order"}, answers=[TOPIC])
async def topics(api: Api, asked: TopicsRequest) -> Large[Iterable[TopicCounts]]:
    """Return topics with their exact counts."""
    page = await _page(api, asked)
    due_soon = await api.jobs.census.due_soon(page) if asked.due_soon else {}
    names = [view.topic for view in page]
    rates = await api.queue.store.history.rates(names) if asked.rates else {}
    most_groups = {
        view.topic: await api.jobs.census.most_groups(view.topic)
        for view in (page if asked.groups else ())
        if view.groups_ready is not None
    }
    return Large(
        topic_counts(
            view, due_soon.get(view.topic), rates.get(view.topic), most_groups.get(view.topic)
        )
        for view in page
    )


async def _page(api: Api, asked: TopicsRequest) -> Sequence[TopicView]:
    """The topics that match the request, in its order, from its offset to its limit."""
    part, start = asked.match or "", asked.offset or 0
    end = None if asked.limit is None else start + asked.limit
    by_name = not (asked.only or asked.reverse) and asked.sort in {None, "topic"}

    def is_wanted(topic: str) -> bool:
        return part in topic and api.scope.allows(topic)

    found: Sequence[TopicView]
    if asked.topics is not None:
        found = await api.jobs.census.of(sorted(set(filter(is_wanted, asked.topics))))
    else:  # unless they come by name, the counts of all decide
        found = await api.jobs.census.all(is_wanted, end if by_name else None)
    if asked.only:
        found = [view async for view in by_turns(found) if FILTERS[asked.only](view)]
    if asked.sort or asked.reverse:  # else they come by name
        found = sorted(found, key=SORTS[asked.sort or "topic"], reverse=asked.reverse or False)
    return found[start:end]
