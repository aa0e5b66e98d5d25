"""The verbs on jobs, written once for both clients: what each sends, and how its answer is read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from delayqueue.answers.jobs import JobDetails, Outcome, ReservedJob
from delayqueue.client.api_request import ApiRequest, verb
from delayqueue.client.fields import count_of, each, listed, member, nothing, read_or_none
from delayqueue.client.jobs import AnyState, Retry, WorkerName, given
from delayqueue.client.payload import Payload
from delayqueue.client.several import Several, several
from delayqueue.client.times import Moment, Seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sized


T = TypeVar("T")


class JobVerbs:
    """The endpoints from /pop to /reschedule."""

    @verb
    def pop(
        self, *topics: str, wait: Seconds | None = None, worker: WorkerName | None = None
    ) -> ApiRequest[ReservedJob | None]:
        """Reserve a job; earlier topics come first.

        Waits at most `wait`; without it, as long as the server's setting says (178 s by default). Returns None if no
        job came. workers() shows a `worker` that tells its name, and the job names it.
        """
        return _pop(topics, wait, given(worker=worker), partial(read_or_none, ReservedJob))

    @verb
    def pop_many(
        self,
        *topics: str,
        count: int,
        wait: Seconds | None = None,
        worker: WorkerName | None = None,
    ) -> ApiRequest[list[ReservedJob]]:
        """Reserve up to `count` jobs, as soon as there is at least one. Returns [] if no job came."""
        return _pop(topics, wait, given(count=count, worker=worker), partial(each, ReservedJob))

    @verb
    def finish(self, job: ReservedJob | str, *, message: str | None = None) -> ApiRequest[None]:
        """End a job whose work is done.

        Raises StaleReceipt if its TTR has passed and another worker may have it.
        """
        return _end("/finish", job, message)

    @verb
    def delete(self, job: ReservedJob | str, *, message: str | None = None) -> ApiRequest[None]:
        """End a job that is no longer wanted, in any state."""
        return _end("/delete", job, message)

    @verb
    def finish_many(
        self, jobs: Several[ReservedJob | str], *, message: str | None = None
    ) -> ApiRequest[list[Outcome]]:
        """End up to 1000 jobs whose work is done. Returns an outcome per job."""
        return _end_many("/finish", jobs, message)

    @verb
    def delete_many(
        self, jobs: Several[ReservedJob | str], *, message: str | None = None
    ) -> ApiRequest[list[Outcome]]:
        """End up to 1000 jobs that are no longer wanted, in any state. Returns an outcome per job."""
        return _end_many("/delete", jobs, message)

    @verb
    def get(
        self, job_id: str, *, options: bool | None = None, wait: Seconds | None = None
    ) -> ApiRequest[JobDetails | None]:
        """Return all about a job, with `options` also its retry, retain and expires; None if it does not exist.

        With `wait`, returns when the job has ended or is buried, or after that time.
        """
        request = given(id=job_id, options=options, timeout=wait)
        read = partial(read_or_none, JobDetails)
        return ApiRequest("/get", request, read, repeatable=True, wait_s=request.get("timeout", 0))

    @verb
    def get_many(self, ids: Several[str]) -> ApiRequest[list[JobDetails | None]]:
        """Return all about up to 1000 jobs, None for each that does not exist.

        Sends further requests if one answer has no room for all.
        """
        return _get_many(several("ids", ids), {})

    @verb
    def release(
        self,
        job: ReservedJob | str,
        *,
        delay: Seconds | None = None,
        fallback: Seconds | None = None,
        retry: Retry | None = None,
        message: str | None = None,
    ) -> ApiRequest[float | None]:
        """Give a reserved job back: it becomes due again after `delay`, or else as its retry schedule says.

        A job without a schedule follows `retry`, which buries it after its last delay even if `delay` is given, or else
        becomes due after `fallback`. Returns the new due time; None if the job was buried.
        """
        request = _held(job) | given(delay=delay, fallback=fallback, retry=retry, message=message)
        return _give_back("/release", request, lambda data: member(data, "due", float | None))

    @verb
    def touch(
        self,
        job: ReservedJob | str,
        *,
        ttr: Seconds | None = None,
        progress: float | None = None,
        message: str | None = None,
    ) -> ApiRequest[float]:
        """Extend a reservation: its TTR, or `ttr`, starts over. Returns the new deadline.

        `progress`, 0 to 100 percent, and `message` say how far the job is, for get() and the page.
        """
        request = _held(job) | given(ttr=ttr, progress=progress, message=message)
        return ApiRequest(
            "/touch", request, lambda data: member(data, "deadline", float), repeatable=True
        )

    @verb
    def bury(self, job: ReservedJob | str, *, message: str | None = None) -> ApiRequest[None]:
        """Set a reserved job aside until somebody looks at it."""
        return _give_back("/bury", _held(job) | given(message=message), nothing)

    @verb
    def kick(self, job_id: str, *, body: Payload | None = None) -> ApiRequest[None]:
        """Make a buried or delayed job ready now; a `body` replaces its own, and is converted as by push()."""
        return ApiRequest("/kick", given(id=job_id, body=body), nothing)

    @verb
    def kick_many(self, ids: Several[str]) -> ApiRequest[list[Outcome]]:
        """Make up to 1000 buried or delayed jobs ready now. Returns an outcome per job."""
        return ApiRequest("/kick", {"ids": several("ids", ids)}, _results)

    @verb
    def kick_topic(
        self, topic: str, *, count: int = 1, state: AnyState | None = None
    ) -> ApiRequest[int]:
        """Make the first `count` buried jobs of a topic ready now, or with `state` its delayed ones.

        Returns how many.
        """
        return ApiRequest("/kick", given(**locals()), count_of)

    @verb
    def kick_tag(
        self, tag: str, *, topic: str | None = None, state: AnyState | None = None
    ) -> ApiRequest[int]:
        """Make a tag's buried jobs ready now, or with `state` its delayed ones; in one topic or in all.

        Returns how many.
        """
        return ApiRequest("/kick", given(**locals()), count_of)

    @verb
    def reschedule(
        self,
        job_id: str,
        *,
        delay: Seconds | None = None,
        due: Moment | None = None,
        by: Seconds | None = None,
        priority: int | None = None,
    ) -> ApiRequest[float]:
        """Give a job that is not reserved a new due time, a new priority, or both. Returns when it is due.

        `by` moves its own due time, to an earlier one if it is negative; `priority` alone leaves it as it is.
        """
        request = given(id=job_id, delay=delay, due=due, by=by, priority=priority)
        again = _may_reschedule_again(request)
        return ApiRequest(
            "/reschedule", request, lambda data: member(data, "due", float), repeatable=again
        )

    @verb
    def reschedule_many(
        self,
        ids: Several[str],
        *,
        delay: Seconds | None = None,
        due: Moment | None = None,
        by: Seconds | None = None,
        priority: int | None = None,
    ) -> ApiRequest[list[Outcome]]:
        """Give up to 1000 jobs that are not reserved a new due time, a new priority, or both.

        `by` moves each job's own due time, to an earlier one if it is negative. Returns an outcome per job.
        """
        request = given(ids=several("ids", ids), delay=delay, due=due, by=by, priority=priority)
        return ApiRequest(
            "/reschedule", request, _results, repeatable=_may_reschedule_again(request)
        )

    @verb
    def reschedule_tag(
        self,
        tag: str,
        *,
        topic: str | None = None,
        delay: Seconds | None = None,
        due: Moment | None = None,
        by: Seconds | None = None,
        priority: int | None = None,
    ) -> ApiRequest[int]:
        """Give a tag's jobs that are not reserved one new due time, a new priority, or both; in one topic or in all.

        `by` moves each job's own due time, to an earlier one if it is negative. Returns how many were changed.
        """
        return ApiRequest("/reschedule", given(**locals()), count_of)


def _get_many(
    ids: list[str], known: dict[str, JobDetails | None]
) -> ApiRequest[list[JobDetails | None]]:
    wanted = [job_id for job_id in dict.fromkeys(ids) if job_id not in known]

    def read_each(jobs: Any) -> list[JobDetails | None]:
        before = len(known)
        for job_id, job in zip(wanted, listed(jobs), strict=True):
            if not job or "code" not in job:  # a job with a code was left out of the answer
                known[job_id] = read_or_none(JobDetails, job)
        if len(known) == before:
            raise ValueError("no job had room in the answer")
        return [known.get(job_id) for job_id in ids]

    def rest() -> ApiRequest[list[JobDetails | None]] | None:
        return None if known.keys() >= set(ids) else _get_many(ids, known)

    return ApiRequest("/get", {"ids": wanted}, read_each, repeatable=True, rest=rest)


def _may_reschedule_again(request: dict[str, Any]) -> bool:
    """Whether doing it twice is doing it once."""
    return not request.keys() & {"delay", "by"}


def _held(job: ReservedJob | str) -> dict[str, Any]:
    return {"id": job} if isinstance(job, str) else {"id": job.id, "receipt": job.receipt}


def _pop(
    topics: tuple[str, ...], wait: Seconds | None, fields: dict[str, Any], result: Any
) -> ApiRequest[Any]:
    request = given(topic=",".join(topics), timeout=wait, **fields)
    return ApiRequest("/pop", request, result, wait_s=request.get("timeout"), polls=True)


def _give_back(path: str, request: dict[str, Any], read: Callable[[Any], T]) -> ApiRequest[T]:
    """A request that ends a reservation; without a receipt it is not repeated, as it could end the next reservation."""
    return ApiRequest(path, request, read, repeatable="receipt" in request, ends_receipt=True)


def _end(path: str, job: ReservedJob | str, message: str | None) -> ApiRequest[None]:
    request = _held(job) | given(message=message)
    return ApiRequest(path, request, nothing, repeatable=True, gone_is_done=True, join=_ends)


def _end_many(
    path: str, jobs: Several[ReservedJob | str], message: str | None
) -> ApiRequest[list[Outcome]]:
    held = [_held(job) for job in several("jobs", jobs)]
    request = _ends(held) | given(message=message)
    result = partial(outcome_of_each, held)
    return ApiRequest(path, request, result, repeatable=True, gone_is_done=True)


def _ends(requests: list[dict[str, Any]]) -> dict[str, Any]:
    """The request that ends the jobs of all these; they have one message."""
    message = requests[0].get("message") if requests else None
    request: dict[str, Any] = {"ids": [each["id"] for each in requests]} | given(message=message)
    if any("receipt" in each for each in requests):
        request["receipts"] = [each.get("receipt", "") for each in requests]
    return request


def outcome_of_each(jobs: Sized, data: Any) -> list[Outcome]:
    """The outcomes in an answer. Raises ValueError unless there is one for each job."""
    outcomes = each(Outcome, data)
    if len(outcomes) != len(jobs):
        raise ValueError(f"{len(outcomes)} outcomes of {len(jobs)} jobs")
    return outcomes


def _results(data: Any) -> list[Outcome]:
    return each(Outcome, data["results"])
