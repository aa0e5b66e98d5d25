"""The verbs on jobs. A handler reads, calls one verb of the queue, answers."""

from functools import partial

from delayqueue.engine.queue import raise_for
from delayqueue.errors import ADDED, Code, QueueError
from delayqueue.job import Job
from delayqueue.web import views
from delayqueue.web.api import Api, results
from delayqueue.web.fields import check_count, check_id, check_tag, check_topic, is_traceparent
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.parse import is_array, parse, parse_array, parse_item
from delayqueue.web.requests import (
    GetRequest,
    KickRequest,
    PopRequest,
    PushRequest,
    RescheduleRequest,
    TagRequest,
)
from delayqueue.web.reservation_requests import (
    BuryRequest,
    EndRequest,
    ReleaseRequest,
    TouchRequest,
)


async def push(api: Api, request: HttpRequest) -> HttpResponse:
    """Add a job, or an array of jobs."""
    raw = await api.read_raw(request)
    if is_array(raw):
        return await _push_many(api, request, raw)
    asked = api.heed(request, parse(PushRequest, raw))
    api.check_reach(asked)
    job = asked.job(api.max_body_bytes, api.new_id, _trace(request))
    await api.queue.push(job)
    return api.ok(request, {"id": job.id} if asked.id_is_ours else None, ADDED)


async def _push_many(api: Api, request: HttpRequest, raw: bytes) -> HttpResponse:
    """A bad job spoils only itself."""
    items, trace = parse_array(raw), _trace(request)
    jobs = [_job_or_error(api, request, item, trace) for item in items]
    codes = iter(await api.queue.push_many([job for job in jobs if isinstance(job, Job)]))
    outcomes = [
        api.outcome(request, job.id, next(codes), ADDED)
        if isinstance(job, Job)
        else api.outcome(request, _id_of(item), job, ADDED)
        for item, job in zip(items, jobs, strict=True)
    ]
    return api.ok(request, outcomes, ADDED)


def _trace(request: HttpRequest) -> str:
    """The request's trace, for its jobs; "" where it has none, or not a right one, as W3C wants that ignored."""
    header: str | None = request.headers.get("traceparent")
    return header if header is not None and is_traceparent(header) else ""


def _job_or_error(api: Api, request: HttpRequest, item: object, trace: str) -> Job | QueueError:
    try:
        asked = api.heed(request, parse_item(PushRequest, item))
        api.check_reach(asked)
        return asked.job(api.max_body_bytes, api.new_id, trace)
    except QueueError as error:
        return error


def _id_of(item: object) -> object:
    """The id that a bad item came with, for the client to find it."""
    return item.get("id") if isinstance(item, dict) else None


async def pop(api: Api, request: HttpRequest) -> HttpResponse:
    """Reserve ready jobs; wait for the first. If the client is gone before it has the answer, they go back at once."""
    asked = await api.read(request, PopRequest)
    wanted, many = check_count("count", asked.count, 1), asked.count is not None
    reserving = api.queue.pop(asked.topics(), wanted, asked.wait_s(api.longest_wait_s))
    del asked  # thousands of polls wait here, so they hold nothing that is not needed any more
    jobs = await reserving
    data = [views.reserved(job) for job in jobs]
    response = api.ok(request, data if many else data[0] if data else None)
    if jobs:
        response.undelivered = partial(api.queue.put_back, jobs)
    return response


async def finish(api: Api, request: HttpRequest) -> HttpResponse:
    """End jobs whose work is done."""
    asked = await api.read(request, EndRequest)
    ids = asked.each()
    codes = await api.queue.finish(ids, asked.proofs(), asked.note())
    return api.ok_each(request, asked, ids, codes)


async def delete(api: Api, request: HttpRequest) -> HttpResponse:
    """End jobs that are not wanted any more."""
    asked = await api.read(request, EndRequest)
    ids = asked.each()
    codes = await api.queue.delete(ids, asked.proofs(), asked.note())
    return api.ok_each(request, asked, ids, codes)


async def get(api: Api, request: HttpRequest) -> HttpResponse:
    """All that is known of jobs."""
    asked = await api.read(request, GetRequest)
    ids = asked.each()
    found: list[object] = [views.full(job) for job in await api.queue.get(ids)]
    left_out = ids[len(found) :]
    found += results(left_out, [Code.TOO_LARGE] * len(left_out))
    return api.ok(request, found if asked.many else found[0])


async def release(api: Api, request: HttpRequest) -> HttpResponse:
    """Give a reserved job back after a failed attempt."""
    asked = await api.read(request, ReleaseRequest)
    due_ms = await api.queue.release(
        check_id(asked.id),
        asked.receipt or "",
        asked.delay_ms(),
        asked.note(),
        asked.fallback_ms(),
    )
    return api.ok(request, {"due": views.seconds(due_ms)})


async def touch(api: Api, request: HttpRequest) -> HttpResponse:
    """Extend a reservation."""
    asked = await api.read(request, TouchRequest)
    deadline_ms = await api.queue.touch(check_id(asked.id), asked.receipt or "", asked.ttr_ms())
    return api.ok(request, {"deadline": views.seconds(deadline_ms)})


async def bury(api: Api, request: HttpRequest) -> HttpResponse:
    """Give a job up, to be kept for a person."""
    asked = await api.read(request, BuryRequest)
    await api.queue.bury(check_id(asked.id), asked.receipt or "", asked.note())
    return api.ok(request)


async def reschedule(api: Api, request: HttpRequest) -> HttpResponse:
    """Give jobs that are not reserved a new due time."""
    asked = await api.read(request, RescheduleRequest)
    if asked.by_tag():
        tag, topic = check_tag(asked.tag or ""), _topic_or_all(asked)
        count = await api.queue.topics.reschedule_tag(tag, topic, *asked.when())
        return api.ok(request, {"count": count})
    ids = asked.each()
    moved = await api.queue.reschedule(ids, *asked.when())
    if not asked.many:
        raise_for(moved[0].code)
        return api.ok(request, {"due": views.seconds(moved[0].time_ms)})
    each = results(ids, [one.code for one in moved])
    dues = [{"due": views.seconds(one.time_ms)} for one in moved]
    done = [result | due for result, due in zip(each, dues, strict=True)]
    return api.ok(request, {"count": sum(one.code == Code.OK for one in moved), "results": done})


async def kick(api: Api, request: HttpRequest) -> HttpResponse:
    """Make buried or delayed jobs ready now."""
    asked = await api.read(request, KickRequest)
    if asked.by_tag():
        tag, topic = check_tag(asked.tag or ""), _topic_or_all(asked)
        count = await api.queue.topics.kick_tag(tag, topic, asked.checked_state())
        return api.ok(request, {"count": count})
    if asked.by_topic():
        topic, state = check_topic(asked.topic), asked.checked_state()
        most = check_count("count", asked.count, 1)
        return api.ok(request, {"count": await api.queue.topics.kick(topic, state, most)})
    ids = asked.each()
    codes = await api.queue.kick(ids)
    if not asked.many:
        raise_for(codes[0])
        return api.ok(request, {"count": 1})
    return api.ok(request, {"count": codes.count(Code.OK), "results": results(ids, codes)})


def _topic_or_all(asked: TagRequest) -> str:
    return "" if asked.topic is None else check_topic(asked.topic)
