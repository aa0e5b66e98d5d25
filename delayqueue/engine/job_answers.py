"""Jobs as clients see them: the fields in the original's order, then ours; times in seconds."""

from collections.abc import Iterable
from typing import Final

from delayqueue.answers.answer import LEFT_OUT, seconds
from delayqueue.answers.jobs import JobCall, JobDetails, ReservedJob, TakenJob
from delayqueue.domain.call import Call
from delayqueue.domain.job import USUAL_PRIORITY, Reserved, State
from delayqueue.domain.push_fields import KEPT, POPPED
from delayqueue.domain.receipt import receipt_for
from delayqueue.store.record import text
from delayqueue.store.types import JobView

# /take leaves out the texts that a job does not have
NO_TEXTS: Final = dict.fromkeys(KEPT, LEFT_OUT)


def job_details(job: JobView, *, options: bool = False) -> JobDetails:
    """All about a job; `options`: also its retry, retain and expires."""
    retry = None if job.retry_ms is None else _delays(job.retry_ms)
    is_put_off = job.state is State.DELAYED and job.ready_ms != job.due_ms
    return JobDetails(
        topic=job.topic,
        id=job.id,
        delay=job.due_ms // 1000,
        ttr=job.ttr_ms // 1000,
        body=text(job.body),
        state=job.state,
        attempt=job.attempt,
        tags=job.tags,
        priority=job.priority,
        message=job.message,
        created=job.created_ms / 1000,
        due=job.due_ms / 1000,
        started=seconds(job.started_ms),
        ended=seconds(job.ended_ms),
        attempts=job.attempts,
        results=job.results,
        group=job.texts.get("group", LEFT_OUT),
        held_by=job.held_by or LEFT_OUT,
        call=job_call(job.call) if job.call else LEFT_OUT,
        worker=job.worker or LEFT_OUT,
        put_off_until=job.ready_ms / 1000 if is_put_off else LEFT_OUT,
        progress=job.progress or LEFT_OUT,
        retry=retry if options else LEFT_OUT,
        retain=seconds(job.retain_ms or None) if options else LEFT_OUT,
        expires=seconds(job.expire_ms or None) if options else LEFT_OUT,
    )


def reserved_job(job: Reserved) -> ReservedJob:
    """A job that a poll reserved."""
    told = ReservedJob(
        job.topic,
        job.id,
        text(job.body),
        job.attempt,
        receipt_for(job.nonce, job.id),
        job.due_ms / 1000,
        tags=job.tags or LEFT_OUT,
    )
    for name in POPPED:  # as keywords they would take three times as long
        setattr(told, name, job.texts.get(name, LEFT_OUT))
    return told


def taken_job(job: JobView) -> TakenJob:
    """A job that /take handed out."""
    return TakenJob(
        topic=job.topic,
        id=job.id,
        body=text(job.body),
        due=job.due_ms / 1000,
        ttr=job.ttr_ms // 1000,
        tags=job.tags or LEFT_OUT,
        priority=LEFT_OUT if job.priority == USUAL_PRIORITY else job.priority,
        retry=LEFT_OUT if job.retry_ms is None else _delays(job.retry_ms),
        retain=job.retain_ms / 1000 if job.retain_ms else LEFT_OUT,
        expires=job.expire_ms / 1000 if job.expire_ms else LEFT_OUT,
        call=job_call(job.call) if job.call else LEFT_OUT,
        **NO_TEXTS | job.texts,
    )


def _delays(retry_ms: tuple[int, ...]) -> tuple[float, ...]:
    """A job's own schedule, in seconds."""
    return tuple(delay_ms / 1000 for delay_ms in retry_ms)


def job_call(call: Call) -> JobCall:
    """The call of a job, without the values of its headers."""
    return JobCall(
        url=call.url,
        method=call.method.value,
        headers=without_values(call.headers),
        timeout=call.timeout_ms / 1000,
        expect=call.expect,
        give_up=call.give_up,
    )


def without_values(headers: Iterable[str]) -> dict[str, str]:
    """The names of headers; the values stay in the server."""
    return dict.fromkeys(headers, "***")
