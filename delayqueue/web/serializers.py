"""Jobs as clients see them: the fields in the original's order, then ours; times in seconds."""

from delayqueue.domain import subscriber as domain
from delayqueue.domain.body import readable
from delayqueue.domain.job import JobView, Reserved, Result
from delayqueue.domain.limit import Limit
from delayqueue.engine.heartbeat import ServerView
from delayqueue.engine.schedules import Planned
from delayqueue.engine.subscribers import Subscribed
from delayqueue.store.subscriber_calls import SubscriberCalls
from delayqueue.store.topics import TopicView
from delayqueue.store.types import Taken
from delayqueue.web.responses import (
    CallCounts,
    FullJob,
    LimitState,
    ReservedJob,
    ScheduleState,
    ServerState,
    SubscriberResult,
    SubscriberState,
    TakenJob,
    TopicState,
    Trial,
)


def seconds(ms: int | None) -> float | None:
    """Unix milliseconds as unix seconds."""
    return None if ms is None else ms / 1000


def reserved(job: Reserved) -> ReservedJob:
    """A job in /pop's answer."""
    answer: ReservedJob = {
        "topic": job.topic,
        "id": job.id,
        "body": readable(job.body),
        "attempt": job.attempt,
        "receipt": job.receipt,
        "due": job.due_ms / 1000,
    }
    if job.traceparent:
        answer["traceparent"] = job.traceparent
    return answer


def full(job: JobView, *, options: bool = False) -> FullJob:
    """A job in the answer of /get; `delay` is the due time in whole unix seconds, as in the original."""
    answer: FullJob = {
        "topic": job.topic,
        "id": job.id,
        "delay": job.due_ms // 1000,
        "ttr": job.ttr_ms // 1000,
        "body": readable(job.body),
        "state": job.state.value,
        "attempt": job.attempt,
        "tags": job.tags,
        "priority": job.priority,
        "message": job.message,
        "created": seconds(job.created_ms),
        "due": seconds(job.due_ms),
        "started": seconds(job.started_ms),
        "ended": seconds(job.ended_ms),
        "attempts": [
            {
                "attempt": attempt.attempt,
                "started": seconds(attempt.started_ms),
                "ended": seconds(attempt.ended_ms),
                "message": attempt.message,
            }
            for attempt in job.attempts
        ],
        "results": [_result(result) for result in job.results],
    }
    if options:
        retry_ms = job.retry_ms
        answer["retry"] = None if retry_ms is None else [delay_ms / 1000 for delay_ms in retry_ms]
        answer["retain"] = seconds(job.retain_ms or None)
        answer["expires"] = seconds(job.expire_ms or None)
    return answer


def _result(result: Result) -> SubscriberResult:
    return {
        "subscriber": result.subscriber,
        "status": "succeeded" if result.succeeded else "failed",
        "attempts": result.attempts,
        "started": seconds(result.started_ms),
        "ended": seconds(result.ended_ms),
        "due": seconds(result.due_ms),
        "message": result.message,
    }


def subscriber(found: Subscribed) -> SubscriberState:
    """A subscriber in /subscribers' answer; its secret stays here."""
    one = found.subscriber
    return {
        "name": one.name,
        "topic": one.topic,
        "order": one.order,
        "url": one.url,
        "handler": one.handler,
        "timeout": one.timeout_ms / 1000,
        "retry": [delay_ms / 1000 for delay_ms in one.retry_ms],
        "concurrency": one.concurrency,
        "signed": bool(one.secret),
        "declared": one.declared,
        "expect": one.expect,
        "on_failure": one.on_failure.value,
        "payload": one.payload.value,
        "paused": seconds(found.paused_ms),
    }


def calls(of_one: SubscriberCalls) -> CallCounts:
    """A subscriber's calls."""
    count = of_one.succeeded + of_one.failed
    return {
        "succeeded": of_one.succeeded,
        "failed": of_one.failed,
        "took": round(of_one.took_ms / count / 1000, 3) if count else None,
        "failures": [
            {"at": one.at_ms / 1000, "id": readable(one.job_id), "message": readable(one.message)}
            for one in of_one.failures
        ],
    }


def trial(one: domain.Trial) -> Trial:
    """The outcome of a trial."""
    return {
        "succeeded": one.succeeded,
        "status": one.status,
        "took": one.took_ms / 1000,
        "message": readable(one.message),
    }


def schedule(planned: Planned) -> ScheduleState:
    """A schedule in /schedules' answer; `cron` is "" or `every` is null."""
    one = planned.schedule
    return {
        "name": one.name,
        "topic": one.topic,
        "cron": one.cron,
        "every": one.every_ms / 1000 if one.every_ms else None,
        "tz": one.tz,
        "body": one.body,
        "ttr": one.ttr_ms // 1000,
        "catch_up": one.catch_up.value,
        "paused": one.paused,
        "next": seconds(planned.next_ms),
        "declared": one.declared,
    }


def server(view: ServerView) -> ServerState:
    """A server process in /stats' answer."""
    return {
        "name": view.name,
        "version": view.version,
        "started": view.started,
        "seen": view.seen,
        "pushed": view.pushed,
        "delivered": view.delivered,
        "finished": view.finished,
        "waiting": view.waiting,
        "lateness_p50": view.lateness_p50,
        "lateness_p99": view.lateness_p99,
    }


def taken(job: Taken) -> TakenJob:
    """A job in /take's answer: it has left the queue, so there is nothing to finish."""
    return {"topic": job.topic, "id": job.id, "body": readable(job.body), "due": job.due_ms / 1000}


def limit(one: Limit) -> LimitState:
    """A topic's limits in /limit's answer."""
    return {
        "rate": one.rate,
        "burst": one.burst,
        "concurrency": one.concurrency,
        "buried_retain": seconds(one.buried_retain_ms),
        "declared": one.declared,
    }


def topic(view: TopicView) -> TopicState:
    """A topic in /topics' answer. `paused` is false, true, or the unix time at which the pause ends."""
    return {
        "topic": view.topic,
        "delayed": view.delayed,
        "ready": view.ready,
        "reserved": view.reserved,
        "buried": view.buried,
        "oldest_ready_age": seconds(view.oldest_age_ms),
        "paused": _paused(view.paused_until_ms),
        "limit": limit(view.limit) if view.limit else None,
    }


def _paused(until_ms: int | None) -> bool | float:
    return until_ms / 1000 if until_ms else until_ms is not None
