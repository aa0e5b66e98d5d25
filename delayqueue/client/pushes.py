"""A job to push, and the verbs that push it: both are written out, because editors show them to users."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from delayqueue.answers.jobs import Outcome
from delayqueue.client.api_request import ApiRequest, verb
from delayqueue.client.fields import member
from delayqueue.client.job_verbs import outcome_of_each
from delayqueue.client.jobs import DEFAULT_TTR_S, CallTo, OnConflict, Retry, given, new_id
from delayqueue.client.payload import Payload
from delayqueue.client.several import Several, several
from delayqueue.client.times import Moment, Seconds
from delayqueue.domain.job import IfExists
from delayqueue.domain.push_rules import NEW_ID

MADE: Final = new_id()  # as the id of a job that is given none


@dataclass(slots=True, kw_only=True)
class Job:
    """A job to push; docs/api.md describes the fields. Without `delay` and `due` it is due at once."""

    topic: str
    body: Payload = ""
    id: str = MADE
    delay: Seconds | None = None
    due: Moment | None = None
    ttr: Seconds = DEFAULT_TTR_S
    tags: Several[str] = ()
    retry: Retry | None = None
    if_exists: OnConflict | None = None
    max_wait: Seconds | None = None
    retain: Seconds | None = None
    expire: Seconds | None = None
    priority: int | None = None
    group: str | None = None
    call: CallTo | None = None
    traceparent: str | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        """Make an id, unless one is given."""
        if self.id == MADE:
            self.id = new_id(self.group)

    def request(self) -> dict[str, Any]:
        """The job in the form that /push takes."""
        return push_request({name: getattr(self, name) for name in FIELDS})


FIELDS: Final = [each.name for each in fields(Job)]


def push_request(job: dict[str, Any]) -> dict[str, Any]:
    """The fields of a job in the form that /push takes. Raises ValueError if one cannot be sent."""
    delay, due = job["delay"], job["due"]
    if delay is None:
        delay = 0 if due is None else None
    elif due is not None:
        raise ValueError("delay and due: give one of them")
    return given(**job | {"tags": several("tags", job["tags"]) or None, "delay": delay})


def new_job(
    id: str | None,  # noqa: A002  # its name in the API
    if_exists: OnConflict | None,
    max_wait: Seconds | None,
    group: str | None,
) -> dict[str, Any]:
    """The fields `id` and `if_exists` of a job, whose id is made if none is given.

    Nobody else has an id that is made: what exists with it is this job, pushed by an earlier try, and a worker may have
    it already. So it is kept; max_wait is for pushes that replace.
    """
    if id is not None:
        return {"id": id, "if_exists": if_exists}
    if if_exists is max_wait is None:
        if_exists = IfExists.KEEP
    return {"id": new_id(group), "if_exists": if_exists}


class PushVerbs:
    """The endpoint /push."""

    @verb
    def push(  # noqa: PLR0913  # one argument per field of a job
        self,
        topic: str,
        body: Payload = "",
        *,
        id: str | None = None,  # noqa: A002  # its name in the API
        delay: Seconds | None = None,
        due: Moment | None = None,
        ttr: Seconds = DEFAULT_TTR_S,
        tags: Several[str] = (),
        retry: Retry | None = None,
        if_exists: OnConflict | None = None,
        max_wait: Seconds | None = None,
        retain: Seconds | None = None,
        expire: Seconds | None = None,
        priority: int | None = None,
        group: str | None = None,
        call: CallTo | None = None,
        traceparent: str | None = None,
        idempotency_key: str | None = None,
    ) -> ApiRequest[str]:
        """Add a job, due after `delay`, at `due`, or now. Returns its id; without `id`, one is generated.

        A `body` that is not a string is sent as JSON: a dict, a list, a dataclass, a pydantic model. With `call`, a URL
        or a dict of its fields, the server calls that when the job is due, and no worker gets the job.

        A push that repeats another one, with the same `id` and `idempotency_key`, changes nothing. With `max_wait`,
        pushes that replace each other put the job off no longer than that.

        Retried if the connection breaks. A retry adds nothing to a job that waits or that a worker has, if `id` is not
        given; with an `id` it replaces the job, unless `if_exists="keep"`. A job that has ended meanwhile is added once
        more, unless `retain` keeps its id known. With `if_exists="fail"`, raises JobExists if the id already exists,
        and is not retried; nor is one with the id "*", which the server makes.
        """
        request = push_request(locals() | new_job(id, if_exists, max_wait, group))
        again = _may_push_again(request)
        join = list if again else None

        def pushed_id(data: Any) -> str:
            made: str = request["id"] if data is None else member(data, "id", str)
            return made

        return ApiRequest("/push", request, pushed_id, repeatable=again, join=join)

    @verb
    def push_many(self, jobs: Several[Job]) -> ApiRequest[list[Outcome]]:
        """Add 1 to 1000 jobs. Returns an outcome per job; an invalid one does not affect the others.

        Retried if the connection breaks, unless one of them has `if_exists="fail"` or the id "*". A retry replaces jobs
        that workers already have, so that they run again, except those with `if_exists="keep"`.
        """
        requests = [job.request() for job in several("jobs", jobs)]
        outcomes = partial(outcome_of_each, requests)
        return ApiRequest(
            "/push", requests, outcomes, repeatable=all(map(_may_push_again, requests))
        )


def _may_push_again(request: dict[str, Any]) -> bool:
    """Whether a repetition does no harm.

    One with "fail" would take the job of the first try for another's, and one with "*" would push a second job.
    """
    return request["id"] != NEW_ID and request.get("if_exists") != IfExists.FAIL
