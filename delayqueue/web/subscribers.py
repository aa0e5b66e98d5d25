"""The verbs on subscribers. A handler reads, calls one verb of the queue, answers."""

from delayqueue.web import views
from delayqueue.web.api import Api
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.subscriber_requests import (
    NameRequest,
    SubscribeRequest,
    SubscribersRequest,
    by_rule,
)


async def subscribe(api: Api, request: HttpRequest) -> HttpResponse:
    """Have a url called with the due jobs of a topic."""
    asked = await api.read(request, SubscribeRequest)
    subscriber = asked.subscriber()
    by_rule("url", subscriber.url, api.check_url)
    await api.queue.subscribers.subscribe(subscriber, asked.checked_if_exists())
    return api.ok(request)


async def unsubscribe(api: Api, request: HttpRequest) -> HttpResponse:
    """Have a subscriber called no more."""
    asked = await api.read(request, NameRequest)
    await api.queue.subscribers.unsubscribe(asked.checked_name())
    return api.ok(request)


async def subscribers(api: Api, request: HttpRequest) -> HttpResponse:
    """Who is called with the jobs of a topic, or of all, in their order."""
    asked = await api.read(request, SubscribersRequest)
    topic = asked.checked_topic()
    found = await api.queue.subscribers.all()
    return api.ok(request, [views.subscriber(one) for one in found if topic in {"", one.topic}])
