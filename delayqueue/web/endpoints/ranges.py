"""Jobs of a topic or a tag by their due times: listing, taking, counting."""

from functools import partial
from typing import Annotated, Final

from pydantic import Field

from delayqueue.answers.jobs import Page, TakenJob
from delayqueue.answers.topics import Forecast
from delayqueue.domain.job import MAX_DUE_S, MAX_FORECAST_STEPS
from delayqueue.engine.job_answers import job_details, taken_job
from delayqueue.errors import Invalid
from delayqueue.store.types import Listing, Range
from delayqueue.web.api import Api
from delayqueue.web.endpoint import CONSUMERS, VIEWERS, Large, Returnable, endpoint
from delayqueue.web.endpoints.jobs import FULL
from delayqueue.web.fields import (
    DueTime,
    JobCount,
    JobState,
    SomeSeconds,
    Tag,
    Topic,
    exclusive,
    ms,
    optional,
)
from delayqueue.web.requests import AnyTopicRequest, Request, TopicRequest

DEFAULT_PAGE: Final = 100
Start = Annotated[DueTime, Field(description="Unix seconds: due then or later.")]
End = Annotated[DueTime, Field(description="Unix seconds: due then or earlier.")]
After = Annotated[DueTime, Field(description="Unix seconds, instead of `start`: due later.")]
Before = Annotated[DueTime, Field(description="Unix seconds, instead of `end`: due earlier.")]


class RangeRequest(Request):
    """A range of due times in unix seconds: `start` and `end` are inclusive, `after` and `before` exclusive.

    Without a limit it is open on that side.
    """

    start: Start | None = None
    end: End | None = None
    after: After | None = None
    before: Before | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether any limit is given."""
        ends = (self.start, self.end, self.after, self.before)
        return any(end is not None for end in ends)

    def due(self) -> Range:
        """The range in ms."""
        if self.start is not None and self.after is not None:
            raise exclusive("start", "after")
        if self.end is not None and self.before is not None:
            raise exclusive("end", "before")
        first = ms(self.start or 0) if self.after is None else ms(self.after) + 1
        end = MAX_DUE_S if self.end is None else self.end
        last = ms(end) if self.before is None else ms(self.before) - 1
        if first > last:
            raise Invalid.of("范围的起点不能在终点之后", "the range must not end before it begins")
        return Range(first, last)


class ListRequest(AnyTopicRequest, RangeRequest):
    """A page of the jobs of a topic or a tag."""

    topic: Topic | None = optional("Only of this topic; this, `tag` or both.")
    tag: Tag | None = None
    state: JobState | None = None
    limit: JobCount | None = optional("The most jobs on the page; 100 by default.")
    cursor: str | None = optional(
        "The cursor that the previous page returned; the other fields must be the same."
    )

    def what(self) -> Listing:
        """What to list."""
        if self.topic is None and self.tag is None:
            raise Invalid.of("需要 topic 或 tag", "give topic, tag or both")
        return Listing(
            topic=self.topic or "", tag=self.tag or "", state=self.state or "", due=self.due()
        )


class TakeRequest(TopicRequest, RangeRequest):
    """A range of jobs to hand out and remove."""

    count: JobCount | None = optional("The most jobs; 100 by default.")


class ForecastRequest(AnyTopicRequest):
    """Counts per step of a range of due times."""

    start: DueTime = Field(description="Unix seconds: where the first step begins.")
    end: DueTime = Field(
        description="Unix seconds: the end of the last step, if a whole number of steps fits."
    )
    step: Annotated[
        SomeSeconds,
        Field(description="Length of a step in seconds; the last one may reach beyond `end`."),
    ]

    def steps(self) -> tuple[int, int, int]:
        """Start and step in ms, and the number of steps."""
        start_ms, end_ms, step_ms = ms(self.start), ms(self.end), ms(self.step)
        if start_ms >= end_ms:
            raise Invalid.of("start 必须小于 end", "start: must be before end")
        steps = -(-(end_ms - start_ms) // step_ms)
        if steps > MAX_FORECAST_STEPS:
            raise Invalid.of(
                f"step 太小：分成了{steps}步，最多{MAX_FORECAST_STEPS}步",
                f"step: {steps} steps, at most {MAX_FORECAST_STEPS}; take a larger step",
            )
        return start_ms, step_ms, steps


@endpoint(
    "/list",
    VIEWERS,
    asks={"topic": "order", "state": "delayed", "limit": 10},
    answers=Page([FULL], ""),
)
async def list_jobs(api: Api, asked: ListRequest) -> Large[Page]:
    """List a page of the jobs of a topic or a tag."""
    limit = asked.limit or DEFAULT_PAGE
    jobs, cursor = await api.jobs.listings.list_jobs(asked.what(), limit, asked.cursor or "")
    return Large(Page(list(map(job_details, jobs)), cursor))


@endpoint(
    "/take",
    CONSUMERS,
    asks={"topic": "order", "end": 1795217040, "count": 100},
    answers=[{"topic": "order", "id": "1001", "body": "unpaid?", "due": 1795217037.354, "ttr": 60}],
)
async def take(api: Api, asked: TakeRequest) -> Returnable[Large[list[TakenJob]]]:
    """Hand out the jobs of a range of due times.

    They are put back if the client is gone before it has the answer.
    """
    if not asked.is_bounded:
        raise Invalid.of(
            "需要 start、end、after 或 before", "give one of start, end, after, before"
        )
    jobs = await api.jobs.taking.take(asked.topic, asked.due(), asked.count or DEFAULT_PAGE)
    undelivered = partial(api.jobs.taking.restore, jobs) if jobs else None
    return Returnable(Large([taken_job(job.view) for job in jobs]), undelivered)


@endpoint(
    "/forecast",
    VIEWERS,
    asks={"topic": "order", "start": 1795214400, "end": 1795221600, "step": 3600},
    answers={"start": 1795214400.0, "step": 3600.0, "counts": [3, 0]},
)
async def forecast(api: Api, asked: ForecastRequest) -> Forecast:
    """Count how many jobs fall due in each step."""
    start_ms, step_ms, steps = asked.steps()
    topics = [] if asked.topic is None else [asked.topic]
    counts = await api.jobs.topics.forecast(topics, start_ms, step_ms, steps)
    return Forecast(start_ms / 1000, step_ms / 1000, counts)
