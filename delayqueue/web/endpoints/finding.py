"""Searching jobs by a part of their id, body or message, and by tag, group, topic, state and due time."""

from typing import Final

from delayqueue.answers.answer import left_out
from delayqueue.answers.jobs import Findings, FoundJob
from delayqueue.errors import Invalid
from delayqueue.store.listings import ANY_TIME, Filters, Wanted
from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, Large, endpoint
from delayqueue.web.endpoints.ranges import RangeRequest
from delayqueue.web.fields import Group, JobCount, JobState, Part, Tag, optional
from delayqueue.web.requests import AnyTopicRequest

DEFAULT_COUNT: Final = 100


class FindRequest(AnyTopicRequest, RangeRequest):
    """What to search for; a job must match every field."""

    id: Part | None = optional("A part of the id.")
    text: Part | None = optional("A part of the body, as it was pushed.")
    message: Part | None = optional(
        "A part of the message of a failed attempt, or of the job's end."
    )
    tag: Tag | None = optional("Only jobs with this tag.")
    group: Group | None = optional("Only jobs of this group.")
    state: JobState | None = None
    limit: JobCount | None = optional(
        "The search stops once it has found this many jobs, or somewhat more; 100 by default."
    )
    cursor: str | None = optional("The cursor that the previous answer returned.")

    def wanted(self) -> Wanted:
        """The search in the form that the store takes."""
        names_nothing = all(
            each is None
            for each in (self.id, self.text, self.message, self.tag, self.group, self.state)
        )
        if names_nothing and not self.is_bounded:
            raise Invalid.of(
                "需要 id、text、message、tag、group、state 或到期时间",
                "give id, text, message, tag, group, state or a due time",
            )
        return Wanted(self.id or "", self.text or "", self.topic or "")

    def filters(self) -> Filters:
        """What else the jobs must have."""
        due = self.due() if self.is_bounded else ANY_TIME
        return Filters(self.message or "", self.tag or "", self.state or "", due, self.group or "")


@endpoint(
    "/find",
    VIEWERS,
    asks={"topic": "order", "text": "unpaid"},
    answers=Findings(
        jobs=[
            FoundJob(
                id="1001", topic="order", state="delayed", due=1795217037.354, **left_out(FoundJob)
            )
        ],
        looked=1,
        cursor="",
    ),
)
async def find(api: Api, asked: FindRequest) -> Large[Findings]:
    """Search jobs by a part of their id, body or message, and by tag, group, topic, state and due time."""
    limit = asked.limit or DEFAULT_COUNT
    cursor = asked.cursor or ""
    return Large(await api.jobs.listings.find(asked.wanted(), limit, cursor, asked.filters()))
