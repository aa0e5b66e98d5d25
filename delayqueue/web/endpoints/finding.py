"""Searching jobs by a part of their id or body."""

from typing import Annotated, Final

from delayqueue.answers.jobs import Findings, FoundJob
from delayqueue.domain.job import MAX_ID_BYTES
from delayqueue.errors import BadValue, Invalid
from delayqueue.store.search import Wanted
from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, Large, endpoint
from delayqueue.web.fields import JobCount, Validate, optional
from delayqueue.web.requests import AnyTopicRequest

DEFAULT_COUNT: Final = 100


def check_part(text: str) -> str:
    """Check a part of an id or a body."""
    if not 1 <= len(text.encode()) <= MAX_ID_BYTES:
        raise BadValue(f"须为1 - {MAX_ID_BYTES}字节", f"must have 1 to {MAX_ID_BYTES} bytes")
    return text


Part = Annotated[str, Validate(check_part)]


class FindRequest(AnyTopicRequest):
    """What to search for: a text in the id, in the body, or in both."""

    id: Part | None = optional("A part of the id; this, `text` or both.")
    text: Part | None = optional("A part of the body, as it was pushed.")
    limit: JobCount | None = optional(
        "It stops once this many are found, or somewhat more; 100 by default."
    )
    cursor: str | None = optional("The cursor that the previous answer returned.")

    def wanted(self) -> Wanted:
        """The search in the form that the store takes."""
        if self.id is None and self.text is None:
            raise Invalid.of("需要 id 或 text", "give id, text or both")
        return Wanted(self.id or "", self.text or "", self.topic or "")


@endpoint(
    "/find",
    VIEWERS,
    asks={"topic": "order", "text": "unpaid"},
    answers=Findings(
        jobs=[FoundJob(id="1001", topic="order", state="delayed", due=1795217037.354)],
        looked=1,
        cursor="",
    ),
)
async def find(api: Api, asked: FindRequest) -> Large[Findings]:
    """Search jobs for a part of their id or body."""
    limit = asked.limit or DEFAULT_COUNT
    found = await api.jobs.search.find(asked.wanted(), limit, asked.cursor or "")
    jobs = [
        FoundJob(id=job.id, topic=job.topic, state=job.state, due=job.due_ms / 1000)
        for job in found.jobs
    ]
    return Large(Findings(jobs, found.looked, found.cursor))
