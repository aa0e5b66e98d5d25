"""Jobs as clients see them: the fields in the original's order, then ours; times in seconds."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Final

from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.jobs import (
    FailedAttempt,
    FullJob,
    JobCall,
    ReservedJob,
    SubscriberResult,
    TakenJob,
)
from delayqueue.answers.schedules import ScheduleState
from delayqueue.answers.servers import (
    HostCalls,
    OutboxState,
    ServerState,
    TroubleState,
    WorkerJob,
    WorkerState,
)
from delayqueue.answers.subscribers import CallCounts, FailedCall, SubscriberState, Trial
from delayqueue.answers.topics import LimitState, TopicRates, TopicState
from delayqueue.domain import subscriber as domain
from delayqueue.domain.body import readable
from delayqueue.domain.call import Call
from delayqueue.domain.call_tally import together
from delayqueue.domain.job import CallResult, JobView, Reserved, State
from delayqueue.domain.limit import Limit
from delayqueue.domain.outboxes import Seen, latest
from delayqueue.domain.slots import Rates
from delayqueue.domain.troubles import Kind, Trouble
from delayqueue.domain.troubles import together as together_of
from delayqueue.engine.heartbeat import ServerView
from delayqueue.engine.schedules import Planned
from delayqueue.engine.subscribers import Subscribed
from delayqueue.engine.worker_view import WorkerView
from delayqueue.store.census import SOON_S, TopicView
from delayqueue.store.subscriber_calls import SubscriberCalls
from delayqueue.store.types import Taken

OF_WORKER: Final = [field.name for field in fields(WorkerState)]


def seconds(ms: int | None) -> float | None:
    """Unix milliseconds as unix seconds."""
    return None if ms is None else ms / 1000


def reserved(job: Reserved) -> ReservedJob:
    """A job in /pop's answer."""
    return ReservedJob(
        job.topic,
        job.id,
        readable(job.body),
        job.attempt,
        job.receipt,
        job.due_ms / 1000,
        job.traceparent or LEFT_OUT,
        job.tags or LEFT_OUT,
    )


def full(job: JobView, *, options: bool = False) -> FullJob:
    """A job in the answer of /get; `delay` is the due time in whole unix seconds, as in the original."""
    retry_ms = job.retry_ms
    retry = None if retry_ms is None else tuple(delay_ms / 1000 for delay_ms in retry_ms)
    is_put_off = job.state is State.DELAYED and job.ready_ms != job.due_ms
    return FullJob(
        topic=job.topic,
        id=job.id,
        delay=job.due_ms // 1000,
        ttr=job.ttr_ms // 1000,
        body=readable(job.body),
        state=job.state,
        attempt=job.attempt,
        tags=job.tags,
        priority=job.priority,
        message=job.message,
        created=job.created_ms / 1000,
        due=job.due_ms / 1000,
        started=seconds(job.started_ms),
        ended=seconds(job.ended_ms),
        attempts=tuple(
            FailedAttempt(
                each.attempt,
                each.started_ms / 1000,
                each.ended_ms / 1000,
                each.message,
                readable(each.worker) if each.worker else LEFT_OUT,
            )
            for each in job.attempts
        ),
        results=tuple(_result(result) for result in job.results),
        call=_call(job.call) if job.call else LEFT_OUT,
        worker=readable(job.worker) if job.worker else LEFT_OUT,
        put_off_until=job.ready_ms / 1000 if is_put_off else LEFT_OUT,
        retry=retry if options else LEFT_OUT,
        retain=seconds(job.retain_ms or None) if options else LEFT_OUT,
        expires=seconds(job.expire_ms or None) if options else LEFT_OUT,
    )


def _call(call: Call) -> JobCall:
    """A call in an answer."""
    return JobCall(
        url=call.url,
        method=call.method.value,
        headers=_names(call.headers),
        timeout=call.timeout_ms / 1000,
        expect=call.expect,
        give_up=call.give_up,
    )


def _names(headers: Iterable[str]) -> dict[str, str]:
    """The names of headers in an answer; the values stay here."""
    return dict.fromkeys(headers, "***")


def _result(result: CallResult) -> SubscriberResult:
    return SubscriberResult(
        subscriber=result.subscriber,
        status="succeeded" if result.succeeded else "failed",
        attempts=result.attempts,
        started=result.started_ms / 1000,
        ended=result.ended_ms / 1000,
        due=seconds(result.due_ms),
        message=result.message,
    )


def subscriber(found: Subscribed, of_one: SubscriberCalls | None) -> SubscriberState:
    """A subscriber in /subscribers' answer, with its calls if they were asked for; its secret stays here."""
    one = found.subscriber
    return SubscriberState(
        name=one.name,
        topic=one.topic,
        order=one.order,
        url=one.url,
        handler=one.handler,
        timeout=one.timeout_ms / 1000,
        retry=tuple(delay_ms / 1000 for delay_ms in one.retry_ms),
        concurrency=one.concurrency,
        signed=bool(one.secret),
        declared=one.declared,
        expect=one.expect,
        on_failure=one.on_failure.value,
        payload=one.payload.value,
        method=one.method.value,
        headers=_names(name for name, _ in one.headers),
        paused=seconds(found.paused_ms),
        calls=_calls(of_one) if of_one else LEFT_OUT,
    )


def _calls(of_one: SubscriberCalls) -> CallCounts:
    count = of_one.succeeded + of_one.failed
    return CallCounts(
        succeeded=of_one.succeeded,
        failed=of_one.failed,
        took=round(of_one.took_ms / count / 1000, 3) if count else None,
        failures=tuple(
            FailedCall(one.at_ms / 1000, readable(one.job_id), readable(one.message))
            for one in of_one.failures
        ),
    )


def trial(one: domain.TrialOutcome) -> Trial:
    """The outcome of a trial."""
    return Trial(one.succeeded, one.status, one.took_ms / 1000, readable(one.message))


def schedule(planned: Planned) -> ScheduleState:
    """A schedule in /schedules' answer; `cron` is "" or `every` is null."""
    one = planned.schedule
    return ScheduleState(
        name=one.name,
        topic=one.topic,
        cron=one.cron,
        every=one.every_ms / 1000 if one.every_ms else None,
        tz=one.tz,
        body=one.body,
        ttr=one.ttr_ms // 1000,
        catch_up=one.catch_up.value,
        paused=one.paused,
        next=seconds(planned.next_ms),
        declared=one.declared,
        call=_call(one.call) if one.call else LEFT_OUT,
    )


def server(view: ServerView) -> ServerState:
    """A server process in /stats' answer."""
    told = asdict(view)
    for apart in ("calls", "outboxes", "troubles", "halts"):
        del told[apart]
    return ServerState(**told)


def calls(servers: Sequence[ServerView]) -> list[HostCalls]:
    """The hosts to which the servers make calls, in /stats' answer."""
    limit = sum(server.call_limit for server in servers)
    return [
        HostCalls(
            host=one.host,
            calling=one.calling,
            limit=limit,
            waiting=one.waiting,
            waiting_since=one.waiting_since or None,
            next_try=one.next_try or None,
            succeeded=one.succeeded,
            failed=one.failed,
            put_off=one.put_off,
            took=round(one.took_s / ended, 3) if (ended := one.succeeded + one.failed) else None,
            failed_at=one.failed_at or None,
            error=readable(one.error),
        )
        for one in together(each for server in servers for each in server.calls)
    ]


def outboxes(servers: Sequence[ServerView]) -> list[OutboxState]:
    """The outboxes of which the servers have heard, in /stats' answer."""
    told = (
        Seen(round(server.seen - each.ago_s, 3), each)
        for server in servers
        for each in server.outboxes
    )
    return [
        OutboxState(one.name, one.failed, readable(one.reason), one.oldest_s, at)
        for at, one in latest(told)
    ]


def troubles(servers: Sequence[ServerView]) -> list[TroubleState]:
    """What goes wrong again and again, in /stats' answer, the latest first."""
    noted = [
        (round(server.seen - each.ago_s, 3), each) for server in servers for each in server.troubles
    ]
    for host in together(each for server in servers for each in server.calls):
        if host.fails:
            failing = Trouble(Kind.HOST, host.host, count=host.failing, message=host.error)
            noted.append((host.failed_at, failing))
    return [
        TroubleState(one.kind, readable(one.name), one.topic, one.count, at, readable(one.message))
        for at, one in together_of(noted)
    ]


def worker(view: WorkerView) -> WorkerState:
    """A worker in /workers' answer."""
    members = {name: getattr(view, name) for name in OF_WORKER}  # asdict() copies each job, too
    return WorkerState(**members | {"jobs": [WorkerJob(*job) for job in view.jobs]})


def taken(job: Taken) -> TakenJob:
    """A job in /take's answer: it has left the queue, so there is nothing to finish."""
    return TakenJob(job.topic, job.id, readable(job.body), job.due_ms / 1000)


def limit(one: Limit) -> LimitState:
    """A topic's limits in /limit's answer."""
    return LimitState(
        rate=one.rate,
        burst=one.burst,
        concurrency=one.concurrency,
        buried_retain=seconds(one.buried_retain_ms),
        buried_to=one.buried_to or LEFT_OUT,
        declared=one.declared,
    )


def topic(
    view: TopicView, due_soon: Sequence[int] | None = None, rates: Rates | None = None
) -> TopicState:
    """A topic in /topics' answer. `due_soon`: its jobs that fall due within each of SOON_S, None = not counted."""
    return TopicState(
        topic=view.topic,
        delayed=view.delayed,
        ready=view.ready,
        reserved=view.reserved,
        buried=view.buried,
        oldest_ready_age=seconds(view.oldest_age_ms),
        paused=_paused(view.paused_until_ms),
        limit=limit(view.limit) if view.limit else None,
        due_soon=dict(zip(map(str, SOON_S), due_soon, strict=True)) if due_soon else LEFT_OUT,
        rates=TopicRates(*rates) if rates else LEFT_OUT,
    )


def _paused(until_ms: int | None) -> bool | float:
    return until_ms / 1000 if until_ms else until_ms is not None
