"""The verbs on topics, tags and ranges of due times. A handler reads, calls one verb of the queue, answers."""

from functools import partial

from delayqueue.errors import Invalid, Text
from delayqueue.web import views
from delayqueue.web.api import Api
from delayqueue.web.fields import check_count, check_tag, check_topic
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.parse import parse
from delayqueue.web.topic_requests import (
    CancelRequest,
    ForecastRequest,
    LimitRequest,
    ListRequest,
    PauseRequest,
    PurgeRequest,
    TakeRequest,
    TopicRequest,
    TopicsRequest,
)

DEFAULT_PAGE = 100


async def cancel(api: Api, request: HttpRequest) -> HttpResponse:
    """End all jobs of a tag."""
    asked = await api.read(request, CancelRequest)
    topic = "" if asked.topic is None else check_topic(asked.topic)
    count = await api.queue.topics.cancel(check_tag(asked.tag or ""), topic)
    return api.ok(request, {"count": count})


async def list_jobs(api: Api, request: HttpRequest) -> HttpResponse:
    """A page of the jobs of a topic or a tag; takes nothing."""
    asked = await api.read(request, ListRequest)
    limit = check_count("limit", asked.limit, DEFAULT_PAGE)
    jobs, cursor = await api.queue.listings.list_jobs(asked.what(), limit, asked.cursor or "")
    return api.ok(request, {"jobs": [views.full(job) for job in jobs], "cursor": cursor})


async def take(api: Api, request: HttpRequest) -> HttpResponse:
    """Hand out the jobs of a range of due times and remove them; they go back if the client is gone before."""
    asked = await api.read(request, TakeRequest)
    if asked.start is None and asked.end is None:
        raise Invalid(Text("需要 start 或 end", "give start, end or both"))
    most = check_count("count", asked.count, DEFAULT_PAGE)
    jobs = await api.queue.taking.take(check_topic(asked.topic), asked.due(), most)
    response = api.ok(request, [views.taken(job) for job in jobs])
    if jobs:
        response.undelivered = partial(api.queue.taking.put_back, jobs)
    return response


async def forecast(api: Api, request: HttpRequest) -> HttpResponse:
    """How many delayed jobs fall due in each step of a range."""
    asked = await api.read(request, ForecastRequest)
    start_ms, step_ms, steps = asked.steps()
    topics = [] if asked.topic is None else [check_topic(asked.topic)]
    counts = await api.queue.topics.forecast(topics, start_ms, step_ms, steps)
    return api.ok(request, {"start": start_ms / 1000, "step": step_ms / 1000, "counts": counts})


async def pause(api: Api, request: HttpRequest) -> HttpResponse:
    """Hold a topic's deliveries."""
    asked = await api.read(request, PauseRequest)
    await api.queue.topics.pause(check_topic(asked.topic), asked.hold_ms())
    return api.ok(request)


async def resume(api: Api, request: HttpRequest) -> HttpResponse:
    """Let a topic's deliveries go on."""
    asked = await api.read(request, TopicRequest)
    await api.queue.topics.resume(check_topic(asked.topic))
    return api.ok(request)


async def limit(api: Api, request: HttpRequest) -> HttpResponse:
    """Limit how fast and how many at once a topic's jobs are handed out."""
    asked = await api.read(request, LimitRequest)
    in_force = await api.queue.topics.limit(check_topic(asked.topic), asked.wishes())
    return api.ok(request, views.limit(in_force))


async def purge(api: Api, request: HttpRequest) -> HttpResponse:
    """Drop a topic's jobs without a trace."""
    asked = await api.read(request, PurgeRequest)
    count = await api.queue.topics.purge(check_topic(asked.topic), asked.checked_state())
    return api.ok(request, {"count": count})


async def topics(api: Api, request: HttpRequest) -> HttpResponse:
    """Topics with their exact counts, by name; to a client that may reach some topics only, those."""
    raw = await api.read_raw(request)
    asked = TopicsRequest()
    if raw.strip():
        asked = api.heed(request, parse(TopicsRequest, raw))
    wanted = asked.wanted()
    limit = None if asked.limit is None else check_count("limit", asked.limit, DEFAULT_PAGE)
    found = await api.queue.topics.all(
        lambda topic: wanted(topic) and api.scope.allows(topic), limit
    )
    return api.ok(request, [views.topic(view) for view in found])
