"""Jobs, and what happened to them."""

from dataclasses import KW_ONLY

from delayqueue.answers.answer import LEFT_OUT, answer, omittable
from delayqueue.domain.job import USUAL_PRIORITY, State


@answer
class ReservedJob:
    """A job that /pop handed out; `due` is when it was to be delivered."""

    topic: str
    id: str
    body: str
    attempt: int
    receipt: str
    due: float
    traceparent: str = omittable(default="")  # if it was pushed with one
    tags: tuple[str, ...] = omittable(default=())  # if it has any
    group: str = omittable(default="")  # if it is in one


@answer
class JobCall:
    """The call that the server makes when the job is due. `headers` has names; the values stay in the server."""

    url: str
    method: str
    headers: dict[str, str]
    timeout: float
    expect: str
    give_up: bool


@answer
class TakenJob:
    """A job that /take handed out. It has left the queue, so there is nothing to finish.

    After `due` comes what else it was pushed with, in the form of /get, if it differs from the default.
    """

    topic: str
    id: str
    body: str
    due: float
    ttr: int | None = omittable(default=None)  # an older server does not send it
    tags: tuple[str, ...] = omittable(default=())
    priority: int = omittable(default=USUAL_PRIORITY)
    retry: tuple[float, ...] | None = omittable(default=None)
    retain: float | None = omittable(default=None)
    expires: float | None = omittable(default=None)
    call: JobCall | None = omittable(default=None)
    traceparent: str = omittable(default="")
    idempotency_key: str = omittable(default="")
    group: str = omittable(default="")


@answer
class Attempt:
    """One delivery that was released, buried or not finished in time."""

    attempt: int
    started: float
    ended: float
    message: str
    worker: str = omittable(default="")  # that had it, if that is known


@answer
class SubscriberResult:
    """A subscriber's result for a job: `succeeded` or `failed`. `due`: when it is called again, null = it is not."""

    subscriber: str
    status: str
    attempts: int
    started: float
    ended: float
    due: float | None
    message: str


@answer
class Progress:
    """How far an attempt is, as its worker told with /touch; `at`: when. `percent`: null = it told only the message."""

    percent: float | None
    message: str
    at: float


@answer
class HeldBy:
    """The job that holds up a ready one of its group, which may have no more in hand.

    `until`: of a `reserved` one, when its reservation ends; of a `delayed` one, when its retry is due; null = it is
    `ready`, and first in the order of the group.
    """

    id: str
    state: State
    until: float | None


@answer
class JobDetails:
    """All about a job; `delay` is its due time in whole unix seconds, as in the original.

    `call` and `group` are there only if the job has one, `worker` only while a worker has it that told its name,
    `held_by` only while it is ready and its group may have no more jobs in hand, `put_off_until` only while the call
    waits for a place at its host: when it is tried again. `progress` is there if the worker of the last attempt told
    any, until the next attempt begins or the job is finished.

    `retry`, `retain` and `expires` are there only if asked for: its own retry schedule, how long it is kept after its
    end, and when it expires; null = it has none.
    """

    _: KW_ONLY
    topic: str
    id: str
    delay: int = 0
    ttr: int
    body: str
    state: State
    attempt: int
    tags: tuple[str, ...]
    priority: int = USUAL_PRIORITY
    message: str
    created: float
    due: float
    started: float | None
    ended: float | None
    attempts: tuple[Attempt, ...]
    results: tuple[SubscriberResult, ...]
    group: str = omittable(default="")
    held_by: HeldBy | None = omittable(default=None)
    call: JobCall | None = omittable(default=None)
    worker: str | None = omittable(default=None)
    put_off_until: float | None = omittable(default=None)
    progress: Progress | None = omittable(default=None)
    retry: tuple[float, ...] | None = omittable(default=None, nullable=True)
    retain: float | None = omittable(default=None, nullable=True)
    expires: float | None = omittable(default=None, nullable=True)


@answer
class Page:
    """Some of the jobs; `cursor` leads to the next page, "" on the last one."""

    jobs: list[JobDetails]
    cursor: str


@answer
class FoundJob:
    """A job that was found; /get returns all about it."""

    id: str
    topic: str
    state: str
    due: float
    group: str = omittable(default="")  # if it is in one
    held_by: HeldBy | None = omittable(default=None)  # as in JobDetails


@answer
class Findings:
    """The jobs found among the `looked` that were searched. `cursor`: to search on, "" = all have been searched."""

    jobs: list[FoundJob]
    looked: int
    cursor: str


@answer
class NewId:
    """The id that the server generated."""

    id: str


@answer
class Outcome:
    """What happened to one job of an array."""

    id: object
    code: int
    message: str = ""


@answer
class Result:
    """What happened to one of many ids."""

    id: str
    code: int


@answer
class MovedJob(Result):
    """What happened to one of many ids, and when it is due; null if it was not moved."""

    due: float | None


@answer
class Due:
    """When the job is due again; null if it was buried or has expired."""

    due: float | None


@answer
class Deadline:
    """When the reservation ends."""

    deadline: float | None


@answer
class Count:
    """How many jobs were affected."""

    count: int


@answer
class Kicked(Count):
    """How many jobs are ready now; with `ids`, what happened to each."""

    results: list[Result] = omittable(default=LEFT_OUT)


@answer
class Rescheduled(Count):
    """How many jobs have the new due time or priority; with `ids`, what happened to each."""

    results: list[MovedJob] = omittable(default=LEFT_OUT)
