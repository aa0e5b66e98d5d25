"""The verbs, written once for both clients: what each sends, and how its answer is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from delayqueue.client.calls import Call, verb
from delayqueue.client.jobs import (
    DEFAULT_TTR_S,
    Attempt,
    Forecast,
    Job,
    JobDetails,
    Limits,
    Moment,
    Outcome,
    Page,
    ReservedJob,
    Result,
    Retry,
    Seconds,
    TakenJob,
    TopicCounts,
    new_id,
    seconds,
    unix,
)
from delayqueue.job import IfExists, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import EllipsisType

T = TypeVar("T")

DEFAULT_STEP_S = 3600


class Verbs:
    """The methods of Client and AsyncClient. They raise QueueError's subclasses, and TransportError.

    Where a method takes a job, an id will do; a ReservedJob brings its receipt, so that a late worker changes nothing.
    """

    @verb
    def push(  # noqa: PLR0913  # the fields of a job
        self,
        topic: str,
        body: str = "",
        *,
        id: str | None = None,  # noqa: A002  # its name in the API
        delay: Seconds = 0,
        due: Moment | None = None,
        ttr: Seconds = DEFAULT_TTR_S,
        tags: Sequence[str] = (),
        retry: Retry | None = None,
        if_exists: IfExists | None = None,
        retain: Seconds | None = None,
        expire: Seconds | None = None,
    ) -> Call[str]:
        """Add a job, due after `delay` or at `due`. Returns its id, which is made here where none is given.

        Sent again when a connection breaks, which is as good as once: the id is the same.
        JobExists with `if_exists="fail"`.
        """
        job = Job(
            topic=topic,
            body=body,
            id=id or new_id(),
            delay=delay,
            due=due,
            ttr=ttr,
            tags=tags,
            retry=retry,
            if_exists=if_exists,
            retain=retain,
            expire=expire,
        )
        # a second try would find the job of the first
        repeatable = if_exists != IfExists.FAIL
        return Call("/push", job.request(), lambda _: job.id, repeatable=repeatable)

    @verb
    def push_many(self, jobs: Iterable[Job]) -> Call[list[Outcome]]:
        """Add 1 to 1000 jobs; a bad one spoils only itself."""
        requests = [job.request() for job in jobs]
        return Call("/push", requests, _outcomes, repeatable=True)

    @verb
    def pop(self, *topics: str, wait: Seconds | None = None) -> Call[ReservedJob | None]:
        """Reserve a job of the topics, the first topic first. Waits `wait` at most for one, else as long as the
        server is set to (180 s); None where nothing came."""
        return _pop(topics, wait, {}, _reserved)

    @verb
    def pop_many(
        self, *topics: str, count: int, wait: Seconds | None = None
    ) -> Call[list[ReservedJob]]:
        """Reserve up to `count` jobs, as soon as there is one; [] where nothing came."""
        return _pop(
            topics, wait, {"count": count}, lambda data: [_read(ReservedJob, job) for job in data]
        )

    @verb
    def finish(self, job: ReservedJob | str, *, message: str | None = None) -> Call[None]:
        """End a job whose work is done. StaleReceipt where its time is over and another may work on it."""
        return _end("/finish", job, message)

    @verb
    def delete(self, job: ReservedJob | str, *, message: str | None = None) -> Call[None]:
        """End a job that is not wanted any more, whatever its state."""
        return _end("/delete", job, message)

    @verb
    def finish_many(self, ids: Iterable[str], *, message: str | None = None) -> Call[list[Outcome]]:
        """End up to 1000 jobs by id."""
        return Call("/finish", _given(ids=list(ids), message=message), _outcomes, repeatable=True)

    @verb
    def delete_many(self, ids: Iterable[str], *, message: str | None = None) -> Call[list[Outcome]]:
        """End up to 1000 jobs by id."""
        return Call("/delete", _given(ids=list(ids), message=message), _outcomes, repeatable=True)

    @verb
    def get(self, job_id: str) -> Call[JobDetails | None]:
        """All that is known of a job; None where the id is unknown."""
        return Call("/get", {"id": job_id}, lambda job: job and _details(job), repeatable=True)

    @verb
    def get_many(self, ids: Iterable[str]) -> Call[list[JobDetails | None]]:
        """All that is known of up to 1000 jobs."""
        return Call(
            "/get",
            {"ids": list(ids)},
            lambda jobs: [job and _details(job) for job in jobs],
            repeatable=True,
        )

    @verb
    def release(
        self,
        job: ReservedJob | str,
        *,
        delay: Seconds | None = None,
        fallback: Seconds | None = None,
        message: str | None = None,
    ) -> Call[float | None]:
        """Give a reserved job back: it comes again after `delay`, else as its schedule says, else after `fallback`.

        Returns its new due time; None where it was buried.
        """
        request = _held(job) | _given(
            delay=_length(delay), fallback=_length(fallback), message=message
        )
        return Call("/release", request, lambda data: data["due"])

    @verb
    def touch(self, job: ReservedJob | str, *, ttr: Seconds | None = None) -> Call[float]:
        """Work on a job for longer: its TTR, or `ttr`, begins anew. Returns the new deadline."""
        request = _held(job) | _given(ttr=_length(ttr))
        return Call("/touch", request, lambda data: data["deadline"], repeatable=True)

    @verb
    def bury(self, job: ReservedJob | str, *, message: str | None = None) -> Call[None]:
        """Give a job up, to be kept for a person."""
        return Call("/bury", _held(job) | _given(message=message), _nothing)

    @verb
    def kick(self, job_id: str) -> Call[None]:
        """Make a buried or delayed job ready now."""
        return Call("/kick", {"id": job_id}, _nothing)

    @verb
    def kick_topic(self, topic: str, *, count: int = 1) -> Call[int]:
        """Make a topic's first buried jobs ready, or the first delayed ones where none is buried; how many."""
        return Call("/kick", {"topic": topic, "count": count}, _count)

    @verb
    def reschedule(
        self, job_id: str, *, delay: Seconds | None = None, due: Moment | None = None
    ) -> Call[float]:
        """Give a job that is not reserved a new due time, which is returned."""
        request = {"id": job_id} | _given(delay=_length(delay), due=_time(due))
        return Call("/reschedule", request, lambda data: data["due"], repeatable=due is not None)

    @verb
    def cancel(self, tag: str, *, topic: str | None = None) -> Call[int]:
        """End all jobs of a tag, of one topic or of all; how many."""
        return Call("/cancel", _given(tag=tag, topic=topic), _count)

    @verb
    def list_jobs(  # noqa: PLR0913  # the fields of a listing
        self,
        topic: str | None = None,
        *,
        tag: str | None = None,
        state: State | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page]:
        """A page of the jobs of a topic, a tag or both, due from `start` to `end`; takes nothing."""
        request = _given(
            topic=topic,
            tag=tag,
            state=state and str(state),
            start=_time(start),
            end=_time(end),
            limit=limit,
            cursor=cursor,
        )
        return Call(
            "/list",
            request,
            lambda data: Page([_details(job) for job in data["jobs"]], data["cursor"]),
            repeatable=True,
        )

    @verb
    def take(
        self,
        topic: str,
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        count: int | None = None,
    ) -> Call[list[TakenJob]]:
        """Remove the jobs that are due from `start` to `end`; each is given to one caller only."""
        request = _given(topic=topic, start=_time(start), end=_time(end), count=count)
        return Call("/take", request, lambda data: [_read(TakenJob, job) for job in data])

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
        request = _given(topic=topic, start=unix(start), end=unix(end), step=seconds(step))
        return Call("/forecast", request, lambda data: _read(Forecast, data), repeatable=True)

    @verb
    def pause(self, topic: str, *, length: Seconds | None = None) -> Call[None]:
        """Hold a topic's deliveries for so long, or until they are resumed."""
        return Call(
            "/pause", _given(topic=topic, seconds=_length(length)), _nothing, repeatable=True
        )

    @verb
    def resume(self, topic: str) -> Call[None]:
        """Let a topic's deliveries go on."""
        return Call("/resume", {"topic": topic}, _nothing, repeatable=True)

    @verb
    def limit(
        self,
        topic: str,
        *,
        rate: float | EllipsisType | None = ...,
        burst: int | EllipsisType | None = ...,
        concurrency: int | EllipsisType | None = ...,
    ) -> Call[Limits]:
        """Limit a topic's deliveries: `rate` a second, `burst` of them at once; `concurrency` reserved at once.

        None lifts a limit; what is not named stays. Returns what is in force.
        """
        wishes = {"rate": rate, "burst": burst, "concurrency": concurrency}
        request = {"topic": topic} | {
            name: each for name, each in wishes.items() if each is not ...
        }
        return Call("/limit", request, lambda data: _read(Limits, data), repeatable=True)

    @verb
    def purge(self, topic: str, *, state: str | None = None) -> Call[int]:
        """Drop a topic's jobs without a trace, all or those of one state ("ended" for kept results); how many."""
        return Call("/purge", _given(topic=topic, state=state), _count)

    @verb
    def topics(self) -> Call[list[TopicCounts]]:
        """Every topic with its exact counts."""
        return Call(
            "/topics",
            {},
            lambda data: [_topic(topic) for topic in data],
            repeatable=True,
        )


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _length(length: Seconds | None) -> float | None:
    return None if length is None else seconds(length)


def _time(moment: Moment | None) -> float | None:
    return None if moment is None else unix(moment)


def _held(job: ReservedJob | str) -> dict[str, Any]:
    return {"id": job} if isinstance(job, str) else {"id": job.id, "receipt": job.receipt}


def _pop(
    topics: tuple[str, ...], wait: Seconds | None, fields: dict[str, Any], read: Any
) -> Call[Any]:
    wait_s = _length(wait)
    request = {"topic": ",".join(topics)} | fields | _given(timeout=wait_s)
    return Call("/pop", request, read, wait_s=wait_s)


def _end(path: str, job: ReservedJob | str, message: str | None) -> Call[None]:
    request = _held(job) | _given(message=message)
    return Call(path, request, _nothing, repeatable=True, gone_is_done=True)


def _nothing(_: Any) -> None:
    return None


def _count(data: Any) -> int:
    count: int = data["count"]
    return count


def _outcomes(data: Any) -> list[Outcome]:
    return [_read(Outcome, item) for item in data]


def _reserved(data: Any) -> ReservedJob | None:
    return _read(ReservedJob, data) if data else None


def _topic(data: dict[str, Any]) -> TopicCounts:
    limit = data["limit"] and _read(Limits, data["limit"])
    return _read(TopicCounts, data | {"limit": limit})


def _details(data: dict[str, Any]) -> JobDetails:
    read = {
        "state": State(data["state"]),
        "tags": tuple(data["tags"]),
        "attempts": tuple(_read(Attempt, attempt) for attempt in data["attempts"]),
        "results": tuple(_read(Result, result) for result in data["results"]),
    }
    return _read(JobDetails, data | read)


def _read(kind: type[T], data: dict[str, Any]) -> T:
    """What the server said; members that only a newer server knows are passed over."""
    known: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]  # all are dataclasses with slots
    return kind(**{name: data[name] for name in known if name in data})
