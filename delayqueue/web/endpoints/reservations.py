"""Handing jobs out, and ending, giving back or extending a reservation."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Final

from delayqueue.answers.answer import left_out, seconds
from delayqueue.answers.jobs import Deadline, Due, ReservedJob, Result
from delayqueue.domain.job import MAX_MESSAGE_CHARS, Reserved
from delayqueue.domain.receipt import nonce_of
from delayqueue.engine.job_answers import reserved_job
from delayqueue.engine.jobs import Jobs, raise_for
from delayqueue.engine.wait_queue import Poll
from delayqueue.engine.workers import SeenWorker, Workers
from delayqueue.errors import Invalid, NoSuchJob, StaleReceipt
from delayqueue.net.later import Later
from delayqueue.store.verbs import Ending
from delayqueue.web.api import Api
from delayqueue.web.endpoint import (
    BAD,
    BOTH,
    CONSUMERS,
    OF_RESERVED,
    Large,
    Returnable,
    Stability,
    endpoint,
)
from delayqueue.web.endpoints.jobs import results
from delayqueue.web.fields import (
    FIRST,
    Delay,
    JobCount,
    Message,
    Percent,
    PopTopics,
    Receipt,
    Seconds,
    Timeout,
    Ttr,
    ms_or_none,
    optional,
    wait_s,
)
from delayqueue.web.http import HttpRequest
from delayqueue.web.requests import IdRequest, OneRequest, Request, RetryRequest, WorkerRequest

RECEIPT: Final = "3f9c1e7a2b60-1f-7d31c6aa"
BY_RECEIPT: Final = (*BAD, NoSuchJob, StaleReceipt)
RESERVED: Final = ReservedJob(
    topic="order",
    id="1001",
    body="unpaid?",
    attempt=1,
    receipt=RECEIPT,
    due=1795217037.354,
    **left_out(ReservedJob),
)

AT_ONCE_BYTES: Final = 256 * 1024  # of bodies that become JSON in one go: a millisecond


class PopRequest(Request):
    """A poll: its topics, and how long it waits."""

    topic: PopTopics
    timeout: Timeout | None = optional(
        "Seconds to wait for the first job, at most `queue_block_timeout`, which is the default; 0 = do not wait. "
        "A ready job is handed out even then."
    )
    count: JobCount | None = optional(
        "The most jobs; with it, the answer is an array, as soon as there is one job."
    )
    worker: WorkerRequest | None = optional(
        "Who polls: /workers shows it, and the jobs that it gets name it."
    )

    of_original = True

    def named_topics(self) -> Iterable[str]:
        """The topics of the poll."""
        return self.topic


class EndRequest(IdRequest):
    """Jobs to finish or delete."""

    receipt: Receipt | None = optional(
        "With `id`: the receipt of the reservation, from /pop; without it, the job ends in any state."
    )
    receipts: Annotated[list[str], FIRST] | None = optional(
        'With `ids`: a receipt for each of them, "" for none.'
    )
    message: Message | None = optional(
        f"Kept with the result, {MAX_MESSAGE_CHARS} characters at most."
    )

    of_original = True

    def endings(self) -> list[Ending]:
        """The jobs to end. Raises Invalid if the receipts do not go with the ids."""
        given = vars(self)  # an attribute of a model takes three times as long as a look-up
        ids, message, receipt = self.each(), given["message"] or "", given["receipt"]
        if given["ids"] is None:
            if given["receipts"]:
                raise Invalid.of("receipts 只能和 ids 一起用", "receipts: go with ids, not with id")
            return [Ending(ids[0], _nonce(receipt, ids[0]), message)]
        if receipt:
            raise Invalid.of("receipt 只能和 id 一起用", "receipt: goes with id, not with ids")
        receipts = [None] * len(ids) if given["receipts"] is None else given["receipts"]
        if len(receipts) != len(ids):
            raise Invalid.of(
                "receipts 和 ids 的个数必须相同",
                f"receipts: must be one for each of ids, {len(ids)}, not {len(receipts)}",
            )
        return [
            Ending(job_id, _nonce(receipt, job_id, place), message)
            for place, (job_id, receipt) in enumerate(zip(ids, receipts, strict=True))
        ]


class TouchRequest(OneRequest):
    """A reservation to extend."""

    receipt: Receipt | None = None
    ttr: Ttr | None = optional(
        "The new deadline is this many seconds from now; the job's own `ttr` by default."
    )
    progress: Percent | None = optional("How far the job is, in percent; /get and /list show it.")
    message: Message | None = optional(
        f"What the worker is doing, {MAX_MESSAGE_CHARS} characters at most; shown beside `progress`."
    )


class BuryRequest(OneRequest):
    """A job to bury."""

    receipt: Receipt | None = optional(
        "The receipt of the reservation, from /pop; without it, a delayed or ready job can be buried, too."
    )
    message: Message | None = None


class ReleaseRequest(BuryRequest):
    """A reserved job to give back."""

    receipt: Receipt | None = None
    delay: Delay | None = optional(
        "Seconds until it is due again, instead of the schedule's delay; it still counts as a failure."
    )
    fallback: Seconds | None = optional(
        "How many seconds a job without a retry schedule waits for its next attempt; 0 by default."
    )
    retry: RetryRequest | None = optional(
        "The schedule for a job without its own, instead of `fallback`; "
        "at its end the job is buried, even with a `delay`."
    )


PopAnswer = Returnable[ReservedJob | list[ReservedJob] | Large[list[ReservedJob]] | None]


@endpoint(
    "/pop",
    CONSUMERS,
    asks={"topic": "urgent,order", "timeout": 10},
    answers=RESERVED,
    stability=Stability.STABLE,
)
def pop(api: Api, asked: PopRequest, request: HttpRequest) -> Later[PopAnswer]:
    """Reserve ready jobs, waiting for the first.

    If the client is gone before it has the answer, they are put back at once.
    """
    given, jobs = vars(asked), api.jobs  # as in EndRequest.endings()
    many = given["count"] is not None
    longest_s = wait_s(given["timeout"], api.config.queue_block_timeout_s)
    poll = jobs.polls.begin(given["topic"], given["count"] or 1, longest_s)
    if given["worker"] is not None:
        workers, identity = api.queue.workers, given["worker"].identity
        if seen := workers.note_poll(identity, asked.topic, longest_s, request.peer or ""):
            return _pop_of(workers, seen, jobs, poll, many=many)
    return Later(
        poll.future, lambda _: _popped(jobs, poll.take(), many=many), lambda: jobs.polls.leave(poll)
    )


def _pop_of(
    workers: Workers, seen: SeenWorker, jobs: Jobs, poll: Poll, *, many: bool
) -> Later[PopAnswer]:
    """The poll of a worker that has told its name."""

    def read(_: object) -> PopAnswer:
        popped = poll.take()
        workers.note_taken(seen, popped)
        answer = _popped(jobs, popped, many=many)
        if answer.undelivered is not None:
            answer.undelivered = partial(lost, popped, answer.undelivered)
        return answer

    def lost(popped: list[Reserved], give_back: Callable[[], None]) -> None:
        workers.note_left(seen, popped)
        give_back()

    def leave() -> None:
        workers.note_left(seen)
        jobs.polls.leave(poll)

    return Later(poll.future, read, leave)


def _popped(jobs: Jobs, popped: list[Reserved], *, many: bool) -> PopAnswer:
    """The answer to a poll, and what puts its jobs back."""
    if not popped:
        return Returnable([] if many else None, None)
    requeue = partial(jobs.polls.requeue, popped)
    if not many:
        return Returnable(reserved_job(popped[0]), requeue)
    data = list(map(reserved_job, popped))
    is_large = sum(len(job.body) for job in popped) > AT_ONCE_BYTES
    return Returnable(Large(data) if is_large else data, requeue)


@endpoint(
    "/finish",
    CONSUMERS,
    errors=BY_RECEIPT,
    asks={"id": "1001", "receipt": RECEIPT},
    stability=Stability.STABLE,
)
def finish(api: Api, asked: EndRequest) -> Later[list[Result] | None]:
    """End jobs whose work is done."""
    return Later(api.jobs.finish(asked.endings()), partial(_each, asked))


@endpoint(
    "/delete",
    BOTH,
    errors=BY_RECEIPT,
    asks={"ids": ["1001", "1002"]},
    answers=[{"id": "1001", "code": 0}, {"id": "1002", "code": 0}],
    stability=Stability.STABLE,
)
def delete(api: Api, asked: EndRequest) -> Later[list[Result] | None]:
    """End jobs that are no longer wanted."""
    return Later(api.jobs.delete(asked.endings()), partial(_each, asked))


@endpoint(
    "/release",
    CONSUMERS,
    errors=OF_RESERVED,
    asks={"id": "1001", "receipt": RECEIPT, "delay": 60, "message": "no answer"},
    answers={"due": 1795217097.354},
    stability=Stability.STABLE,
)
def release(api: Api, asked: ReleaseRequest) -> Later[Due]:
    """Give a reserved job back after a failed attempt."""
    due_ms = api.jobs.release(
        asked.id,
        _nonce(asked.receipt, asked.id),
        ms_or_none(asked.delay),
        asked.message or "",
        ms_or_none(asked.fallback),
        retry_ms=asked.retry.delays_ms if asked.retry else None,
    )
    return Later(due_ms, _due)


@endpoint(
    "/touch",
    CONSUMERS,
    errors=OF_RESERVED,
    asks={"id": "1001", "receipt": RECEIPT, "ttr": 300, "progress": 40, "message": "page 4 of 10"},
    answers={"deadline": 1795217337.354},
    stability=Stability.STABLE,
)
def touch(api: Api, asked: TouchRequest) -> Later[Deadline]:
    """Extend a reservation, and say how far the job is."""
    deadline_ms = api.jobs.touch(
        asked.id,
        _nonce(asked.receipt, asked.id),
        ms_or_none(asked.ttr),
        asked.progress,
        asked.message,
    )
    return Later(deadline_ms, _deadline)


@endpoint(
    "/bury",
    CONSUMERS,
    errors=OF_RESERVED,
    asks={"id": "1001", "receipt": RECEIPT, "message": "no such account"},
    stability=Stability.STABLE,
)
def bury(api: Api, asked: BuryRequest) -> Later[None]:
    """Bury a job: set it aside until somebody looks at it."""
    buried = api.jobs.bury(asked.id, _nonce(asked.receipt, asked.id), asked.message or "")
    return Later(buried, _nothing)


def _each(asked: EndRequest, codes: Sequence[int]) -> list[Result] | None:
    """The outcome of each of `ids`; None for a single id. Raises the error for the code of a single id."""
    if asked.ids is not None:
        return results(asked.ids, codes)
    raise_for(codes[0])
    return None


def _nonce(receipt: str | None, job_id: str, place: int | None = None) -> str | None:
    """The nonce in a receipt, None = none was given. Raises Invalid if it is not one of this job."""
    return nonce_of(receipt, job_id, place) if receipt else None


def _due(due_ms: int | None) -> Due:
    return Due(seconds(due_ms))


def _deadline(deadline_ms: int | None) -> Deadline:
    return Deadline(seconds(deadline_ms))


def _nothing(_: None) -> None:
    """The data of a verb without data."""
