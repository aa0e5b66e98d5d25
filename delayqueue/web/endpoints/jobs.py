"""Jobs by their ids or tags, in any state."""

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field

from delayqueue.answers.answer import left_out, seconds
from delayqueue.answers.jobs import (
    Attempt,
    Count,
    Due,
    JobDetails,
    Kicked,
    MovedJob,
    Rescheduled,
    Result,
)
from delayqueue.domain.job import MAX_DUE_S, State
from delayqueue.engine.job_answers import job_details
from delayqueue.engine.jobs import raise_for
from delayqueue.errors import Code, Invalid, Text
from delayqueue.net.later import Later
from delayqueue.store.types import JobView, Plan
from delayqueue.web.api import Api
from delayqueue.web.endpoint import (
    ADMINS,
    HOLDERS,
    OF_JOB,
    PRODUCERS,
    Large,
    Returnable,
    Stability,
    endpoint,
)
from delayqueue.web.fields import (
    Body,
    Delay,
    Distance,
    DueTime,
    JobCount,
    JobId,
    JobIds,
    Priority,
    Tag,
    Timeout,
    Topic,
    check_body,
    exclusive,
    ms_or_none,
    one_of,
    optional,
    wait_s,
    when_ms,
)
from delayqueue.web.requests import AnyTopicRequest, IdRequest, TagRequest

FULL: Final = JobDetails(
    topic="order",
    id="1001",
    delay=1795217037,
    ttr=60,
    body="unpaid?",
    state=State.DELAYED,
    attempt=1,
    tags=("user:7",),
    priority=1024,
    message="no answer",
    created=1795215237.354,
    due=1795217037.354,
    started=1795216000.0,
    ended=None,
    attempts=(Attempt(1, 1795216000.0, 1795216012.5, "no answer"),),
    results=(),
    **left_out(JobDetails),
)
TOO_LATE: Final = Text(
    f"by：到期时间不能超过{MAX_DUE_S}（2286年）",
    f"by: the job would be due after {MAX_DUE_S}, the year 2286",
)
KickState = Annotated[
    State,
    one_of(State.BURIED, State.DELAYED),
    Field(
        description="With `topic` or `tag`: `buried`, the default, or `delayed` for jobs that are then delivered early."
    ),
]


class GetRequest(IdRequest):
    """Jobs to look at."""

    of_original = True

    options: bool | None = optional("Whether to include `retry`, `retain` and `expires`.")
    timeout: Timeout | None = optional(
        "With `id`: seconds to wait until the job has ended or is buried, at most `queue_block_timeout`; "
        "0 by default."
    )

    def end_wait_s(self, most_s: float) -> float:
        """How long to wait for the job's end, 0 = not at all. Raises Invalid for several jobs."""
        if not self.timeout:
            return 0
        if self.is_many:
            raise Invalid.of("timeout 只能和 id 一起用", "timeout: goes with id, not with ids")
        return wait_s(self.timeout, most_s)


class RescheduleRequest(TagRequest):
    """A new due time for jobs, a new priority, or both."""

    id: JobId | None = optional("The job; this, `ids` or `tag`.")
    ids: JobIds | None = optional("Many at once; reserved jobs do not change.")
    tag: Tag | None = optional("All jobs of the tag that are not reserved.")
    delay: Delay | None = optional(
        "Seconds from now until it is due, for all jobs of a tag alike; one of `delay`, `due`, `by`."
    )
    due: DueTime | None = optional("Unix seconds at which it is due.")
    by: Distance | None = None
    priority: Priority | None = optional(
        "Of ready jobs the smallest number goes first; it can be changed alone."
    )

    def by_tag(self) -> bool:
        """Whether a tag was given instead of ids."""
        if self.topic is not None and self.tag is None:
            raise Invalid.of("topic 只能和 tag 一起用", "topic: goes with tag, not with id")
        return super().by_tag()

    def plan(self) -> Plan:
        """The change. Raises Invalid if the request has two times, or nothing to change."""
        if self.by is not None and (self.delay is not None or self.due is not None):
            raise Invalid.of(
                "by 不能和 delay、due 一起用", "by: goes without delay and due, which replace it"
            )
        if (self.delay, self.due, self.by, self.priority) == (None,) * 4:
            raise Invalid.of(
                "需要 delay、due、by 或 priority", "give one of delay, due, by, or a priority"
            )
        if self.delay is None and self.due is None:
            return Plan(by_ms=ms_or_none(self.by), priority=self.priority)
        return Plan(*when_ms(self.delay, self.due), priority=self.priority)


class KickRequest(TagRequest):
    """Jobs to make ready now: by id, or in one state, those of a tag or the first `count` of a topic."""

    id: JobId | None = optional("The job; this, `ids`, `topic` or `tag`.")
    ids: JobIds | None = optional(
        "Many at once; jobs that are neither buried nor delayed do not change."
    )
    tag: Tag | None = optional("All buried jobs of the tag; with `topic` those of that topic.")
    topic: Topic | None = optional(
        "The first `count` buried jobs of the topic, and no delayed ones."
    )
    state: KickState | None = None
    count: JobCount | None = optional("With `topic`: how many; 1 by default.")
    body: Body | None = optional(
        "With `id`: the job goes on with this body. Its attempts and messages, tags, priority, TTR, "
        "`retry`, `retain` and `expire` stay."
    )

    def with_body(self, max_body_bytes: int) -> str | None:
        """The new body. Raises Invalid unless it is for one job, TooLarge if it is too large."""
        if self.body is not None:
            if self.id is None:
                raise Invalid.of("body 只能和 id 一起用", "body: goes with id")
            check_body(self.body, max_body_bytes)
        return self.body

    def by_tag(self) -> bool:
        """Whether a tag was given instead of ids."""
        if self.count is not None and (self.topic is None or self.tag is not None):
            raise Invalid.of(
                "count 只能和 topic 一起用，不能带 tag", "count: goes with topic, without tag"
            )
        return super().by_tag()

    def by_topic(self) -> bool:
        """Whether a topic was given instead of ids."""
        if self.topic is None:
            if self.state is not None and self.tag is None:
                raise Invalid.of(
                    "state 只能和 topic 或 tag 一起用", "state: goes with topic or tag"
                )
            return False
        if self._has_id:
            raise exclusive("topic", "id")
        return True


class CancelRequest(AnyTopicRequest):
    """A tag whose jobs end, in one topic or in all."""

    absent = MappingProxyType(
        {
            "tag": Text(
                "tag 不能为空；按 id 取消请用 /delete", "tag: must be given; /delete cancels by id"
            )
        }
    )

    tag: Tag


Found = JobDetails | Large[list[JobDetails | Result | None]] | None


@endpoint("/get", HOLDERS, asks={"id": "1001"}, answers=FULL, stability=Stability.STABLE)
def get(api: Api, asked: GetRequest) -> Later[Found | Returnable[JobDetails | None]]:
    """Return everything about jobs, or about one job once it has ended."""
    ids, jobs = asked.each(), api.jobs
    longest_s = asked.end_wait_s(api.config.queue_block_timeout_s)
    if not longest_s:
        return Later(jobs.get(ids), partial(_found, asked, ids))
    wait = jobs.wait_for_end(ids[0], longest_s)
    # check again: the token may have lost its rights meanwhile
    return Later(
        wait.future,
        lambda found: Returnable(_details(asked, found)[0], None),
        lambda: jobs.polls.ends.leave(wait),
    )


def _details(asked: GetRequest, jobs: Sequence[JobView | None]) -> list[JobDetails | None]:
    return [
        None if job is None else job_details(job, options=asked.options or False) for job in jobs
    ]


def _found(asked: GetRequest, ids: Sequence[str], jobs: Sequence[JobView | None]) -> Found:
    """The job of one id; for `ids`, the first jobs, and an error for each that was left out."""
    found = _details(asked, jobs)
    if not asked.is_many:
        return found[0]
    left_out = ids[len(found) :]
    return Large([*found, *results(left_out, [Code.TOO_LARGE] * len(left_out))])


@endpoint(
    "/kick",
    ADMINS,
    errors=OF_JOB,
    asks={"topic": "order", "count": 100},
    answers={"count": 2},
    stability=Stability.STABLE,
)
async def kick(api: Api, asked: KickRequest) -> Kicked:
    """Make buried or delayed jobs ready now."""
    topics, state = api.jobs.topics, asked.state or State.BURIED
    body = asked.with_body(api.config.max_body_bytes)
    if asked.by_tag():
        return Kicked(await topics.kick_tag(asked.tag or "", asked.topic, state))
    if asked.by_topic():
        return Kicked(await topics.kick(asked.topic or "", state, asked.count or 1))
    ids = asked.each()
    codes = await api.jobs.kick(ids, body=body)
    if not asked.is_many:
        raise_for(codes[0])
        return Kicked(1)
    return Kicked(codes.count(Code.OK), results(ids, codes))


@endpoint(
    "/reschedule",
    PRODUCERS,
    errors=OF_JOB,
    asks={"id": "1001", "delay": 60},
    answers={"due": 1795217097.354},
)
async def reschedule(api: Api, asked: RescheduleRequest) -> Due | Rescheduled:
    """Give jobs a new due time, a new priority, or both."""
    if asked.by_tag():
        tag, topic = asked.tag or "", asked.topic
        return Rescheduled(await api.jobs.topics.reschedule_tag(tag, topic, asked.plan()))
    ids = list(dict.fromkeys(asked.each()))  # a distance moves each job once
    moved = dict(zip(ids, await api.jobs.reschedule(ids, asked.plan()), strict=True))
    if not asked.is_many:
        [one] = moved.values()
        if one.code == Code.INVALID:
            raise Invalid(TOO_LATE)
        raise_for(one.code)
        return Due(seconds(one.time_ms))
    rows = [
        MovedJob(job_id, moved[job_id].code, seconds(moved[job_id].time_ms))
        for job_id in asked.each()
    ]
    return Rescheduled(sum(row.code == Code.OK for row in rows), rows)


@endpoint(
    "/cancel", PRODUCERS, asks={"tag": "user:7"}, answers={"count": 2}, stability=Stability.STABLE
)
async def cancel(api: Api, asked: CancelRequest) -> Count:
    """End all jobs of a tag."""
    return Count(await api.jobs.topics.cancel(asked.tag, asked.topic))


def results(ids: Sequence[str], codes: Sequence[int]) -> list[Result]:
    """The id and code of each."""
    return list(map(Result, ids, codes))
