"""For operators: the state of the server, and what a token allows."""

import logging
from heapq import nlargest
from typing import Any, Final

from delayqueue.answers.answer import LEFT_OUT, left_out, seconds
from delayqueue.answers.servers import (
    Access,
    Attention,
    HostCalls,
    OutboxStats,
    Readiness,
    ServerStats,
    Stats,
    StoreStats,
    Trouble,
    WorkerJob,
    WorkerStats,
)
from delayqueue.domain.access import Role
from delayqueue.engine.reports import called_hosts, host_calls, outboxes, troubles
from delayqueue.engine.topic_answers import topic_counts
from delayqueue.errors import BadJson, Forbidden, Invalid, Unavailable
from delayqueue.store.census import TopicView
from delayqueue.tasks import batched, by_turns
from delayqueue.web.api import Api
from delayqueue.web.endpoint import ADMINS, ALL, OPEN, VIEWERS, Large, Stability, endpoint
from delayqueue.web.endpoints.topics import TOPIC, attention
from delayqueue.web.fields import optional
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.metrics import Figures, StoreFigures, TopicFigures, exposition
from delayqueue.web.requests import OutboxRequest, Request

log = logging.getLogger(__name__)

BUSIEST: Final = 8
MOST_TROUBLED: Final = 20
TOPICS_TOGETHER: Final = 500  # before others have their turn: about 1 ms
STATS: Final = Stats(
    topics=1,
    paused=0,
    delayed=3,
    ready=1,
    reserved=0,
    buried=0,
    oldest_ready_age=0.25,
    busiest=[TOPIC],
    attention=[],
    servers=[
        ServerStats(
            name="web1:9277 #1",
            version="1.0.0",
            started=1795215237.0,
            seen=1795217037.354,
            pushed=4,
            delivered=0,
            finished=0,
            waiting=2,
            lateness_p50=None,
            lateness_p99=None,
            call_limit=10,
        )
    ],
    called=314,
    calls=[
        HostCalls(
            host="merchant.example.com:443",
            calling=10,
            limit=10,
            waiting=312,
            waiting_since=1795216862.25,
            next_try=1795217037.9,
            succeeded=118,
            failed=3,
            put_off=40,
            took=4.2,
            failed_at=1795217031.5,
            error="502 Bad Gateway",
        )
    ],
    outboxes=[
        OutboxStats(
            name="db1/shop/delay_queue_outbox",
            failed=2,
            reason="ttr -1: must be 1 to 86400 seconds",
            oldest_age=0.25,
            seen=1795217035.2,
        )
    ],
    troubles=[
        Trouble(
            kind="job", name="1001", topic="order", count=12, at=1795217031.5, message="web1:4711"
        )
    ],
    store=StoreStats(
        version="Redis 7.0.15", memory=1048576, memory_limit=0, durable=True, warnings=[]
    ),
    settings={"bind_address": "0.0.0.0:9277"},
    set_in={"bind_address": "/etc/delay-queue.conf:3"},
)

WORKER: Final = WorkerStats(
    name="web1:4711",
    version="2.4.0",
    host="web1",
    pid=4711,
    concurrency=10,
    address="10.0.0.7",
    topics=["order"],
    since=1795215237.0,
    seen=1795217037.354,
    gone=False,
    in_hand=1,
    until=1795217090.254,
    jobs=[WorkerJob(id="1001", topic="order", since=1795217030.254, until=1795217090.254)],
    finished=12,
    failed=1,
)


class StatsRequest(Request):
    """How much of the overview."""

    counts: bool | None = optional(
        "Whether to include figures that need a count of all topics, which can take seconds "
        "with 100,000 topics; true by default."
    )

    without_topic = ()  # the handler refuses whoever may not reach all topics


@endpoint(
    "/stats",
    VIEWERS,
    methods=("POST", "GET"),
    errors=(Invalid, BadJson, Unavailable),
    asks={"counts": True},
    answers=STATS,
)
async def stats(api: Api, asked: StatsRequest, request: HttpRequest) -> Stats:
    """Return the totals of all topics, and the servers, the store and the settings."""
    api.scope.check(None)
    counted = left_out(Stats) if asked.counts is False else await _counted(api)
    store = api.queue.store
    health = await store.health()
    reports = await api.queue.heartbeat.servers()
    hosts = called_hosts(reports)
    calls = host_calls(reports, hosts)
    if asked.counts is not False:
        counted["called"] += sum(host.waiting for host in calls)
    return Stats(
        **counted,
        servers=[report.stats for report in reports],
        calls=calls,
        outboxes=outboxes(reports),
        troubles=troubles(reports, hosts),
        store=StoreStats(
            version=health.version,
            memory=health.memory_bytes,
            memory_limit=health.memory_limit_bytes,
            durable=health.durable,
            warnings=[api.responder.say(request, warning) for warning in health.warnings],
            alarms=[api.responder.say(request, alarm) for alarm in store.watch.alarms],
        ),
        settings=api.config.shown(),
        set_in=api.config.set_in(),
    )


async def _counted(api: Api) -> dict[str, Any]:
    """The members of Stats that take a count of all topics."""
    topics = await api.jobs.census.all()
    sums, paused = TopicView(""), 0
    busiest, troubled = list[TopicView](), list[TopicView]()
    async for piece in by_turns(batched(topics, TOPICS_TOGETHER)):
        for topic in piece:
            sums.add(topic)
        paused += sum(topic.paused_until_ms is not None for topic in piece)
        busiest = nlargest(BUSIEST, [*busiest, *piece], key=_urgency)
        found = filter(attention, piece)
        troubled = nlargest(MOST_TROUBLED, [*troubled, *found], key=_urgency)
    return {
        "topics": len(topics),
        "paused": paused,
        "delayed": sums.delayed,
        "ready": sums.ready,
        "reserved": sums.reserved,
        "buried": sums.buried,
        "oldest_ready_age": seconds(sums.oldest_age_ms),
        "busiest": list(map(topic_counts, busiest)),
        "attention": [Attention(topic_counts(topic), attention(topic)) for topic in troubled],
        "called": sums.called,
    }


def _urgency(topic: TopicView) -> tuple[int, int, int]:
    """Dead letters first, then jobs that wait for workers, then delayed ones."""
    return topic.buried, topic.ready + topic.reserved, topic.delayed


class EmptyRequest(Request):
    """No fields. As it has a body, mistakes in it are told, and changes that the page makes are in its audit log."""

    without_topic = ()  # the handler refuses whoever may not reach all topics


@endpoint("/workers", VIEWERS, methods=("POST", "GET"), asks={}, answers=[WORKER])
async def workers(api: Api, asked: EmptyRequest) -> Large[list[WorkerStats]]:  # noqa: ARG001  # it declares the model
    """Return the workers that send their names with /pop, first those that are gone with reserved jobs.

    They are seen a few seconds later, and forgotten a minute after the last sign of them.
    """
    api.scope.check(None)
    return Large(await api.queue.workers.all())


class WhoamiRequest(Request):
    """Who sends the token."""

    outbox: OutboxRequest | None = optional(
        "From a relay: the state of its outbox, for /stats; needs the role `produce`."
    )

    without_topic = ()


@endpoint(
    "/whoami",
    ALL,
    methods=("POST", "GET"),
    errors=(Invalid, BadJson),
    asks={"outbox": {"name": "db1/shop/delay_queue_outbox", "failed": 0, "oldest_age": 0.25}},
    answers=Access(["consume"], ["orders.*"], ["/pop", "/finish", "/release"]),
)
async def whoami(api: Api, asked: WhoamiRequest, request: HttpRequest) -> Access:
    """Return what you may do, and your name if a proxy has logged you in."""
    name, roles = api.guard.access(request)
    if asked.outbox:
        if roles.isdisjoint({Role.ADMIN, Role.PRODUCE}):
            raise Forbidden
        api.queue.heartbeat.outboxes.note(asked.outbox.report)
    allowed = [each.path for each in api.endpoints if each.allows(roles)]
    return Access(sorted(roles), list(api.scope.entries), allowed, name or LEFT_OUT)


@endpoint("/healthz", OPEN, methods=("GET",), errors=(), stability=Stability.STABLE)
async def healthz(api: Api) -> None:  # it asks no other system
    """The process is alive."""


@endpoint(
    "/readyz",
    OPEN,
    methods=("GET",),
    errors=(Unavailable,),
    answers={"away": [2, 5]},
    stability=Stability.STABLE,
)
async def readyz(api: Api, request: HttpRequest) -> Readiness | None:
    """The store answers and the timers tick.

    At least for some buckets: the others are named. `durable` is false if jobs are not as safe as configured, and
    `alarms` say what else is wrong: its memory is full, say. If the store cannot be used, the message says why, and
    since when.
    """
    away = [bucket + 1 for bucket in await api.queue.unready_buckets()]
    if len(away) == api.queue.store.buckets.count:
        raise Unavailable.because(api.queue.ailment(), api.queue.store.watch.ailing_since)
    store = api.queue.store
    readiness = Readiness(
        away,
        durable=False if store.warnings else LEFT_OUT,
        alarms=[api.responder.say(request, each) for each in store.watch.alarms] or LEFT_OUT,
        emptied=store.watch.is_emptied or LEFT_OUT,
    )
    return None if readiness == Readiness([]) else readiness


@endpoint("/accept-store", ADMINS, asks={})
async def accept_store(api: Api, asked: EmptyRequest, request: HttpRequest) -> None:  # noqa: ARG001  # it declares the model
    """Confirm that an emptied or replaced store is a new one, which ends the warning on all servers."""
    api.scope.check(None)
    await api.queue.store.watch.accept()
    # logged here, whoever asks: the audit log has only what is done on the page
    log.warning(
        "the store is accepted as new, by %s from %s", api.guard.name_of(request), request.peer
    )


@endpoint("/metrics", VIEWERS, methods=("GET",))
async def metrics(api: Api, request: HttpRequest) -> HttpResponse:
    """Return metrics, for Prometheus."""
    api.scope.check(None)
    store = await _of_store(api)  # before the workers' figures, which include this call
    figures = Figures(await api.snapshots(), store)
    text, content_type = exposition(figures, request.headers.get("accept", ""))
    return HttpResponse(body=text, headers={"Content-Type": content_type})


async def _of_store(api: Api) -> StoreFigures | None:
    census, most = api.jobs.census, api.config.metrics_topics
    try:
        topics = await census.all()
        registered = await api.queue.store.registry.state()
        return StoreFigures(
            topics=await TopicFigures.of(topics, most, await census.due_soon(topics[:most])),
            health=await api.queue.store.health(),
            subscribers=registered.subscribers,
            schedules=registered.schedules,
            workers=await api.queue.workers.count(),
        )
    except Unavailable:
        return None
