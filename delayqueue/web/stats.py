"""GET and POST /stats: the sums over all topics, the servers, their store, the settings."""

from collections.abc import Iterable
from dataclasses import asdict
from heapq import nlargest

from delayqueue.engine.topics import TopicView
from delayqueue.web import views
from delayqueue.web.api import Api
from delayqueue.web.http import HttpRequest, HttpResponse

BUSIEST = 8
STATES = ("delayed", "ready", "reserved", "buried")


async def stats(api: Api, request: HttpRequest) -> HttpResponse:
    """All in short, for a person or a page."""
    api.scope.check(None)
    topics = await api.queue.topics.all()
    health = await api.queue.health()
    return api.ok(
        request,
        {
            "topics": len(topics),
            **{state: sum(getattr(topic, state) for topic in topics) for state in STATES},
            "oldest_ready_age": views.seconds(_oldest_ms(topics)),
            "busiest": [views.topic(topic) for topic in nlargest(BUSIEST, topics, key=_urgency)],
            "servers": [asdict(server) for server in await api.queue.servers()],
            "store": {
                "version": health.version,
                "memory": health.memory_bytes,
                "memory_limit": health.memory_limit_bytes,
                "durable": health.durable,
                "warnings": health.warnings,
            },
            "settings": api.settings,
        },
    )


def _urgency(topic: TopicView) -> tuple[int, int, int]:
    """Dead letters before what waits for workers, and that before what sleeps."""
    return topic.buried, topic.ready + topic.reserved, topic.delayed


def _oldest_ms(topics: Iterable[TopicView]) -> int | None:
    ages = [topic.oldest_age_ms for topic in topics if topic.oldest_age_ms is not None]
    return max(ages, default=None)
