"""The table of all endpoints."""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import NamedTuple

from delayqueue.access import EVERYWHERE, Role, Scope
from delayqueue.web import jobs, metrics, ops, schedules, stats, subscribers, topics
from delayqueue.web.api import Api
from delayqueue.web.auth import Roles
from delayqueue.web.http import Handler, HttpRequest, HttpResponse
from delayqueue.web.openapi import Json, document
from delayqueue.web.pages import answer_json, answer_page

Verb = Callable[[Api, HttpRequest], Awaitable[HttpResponse]]

# The admin role may call everything.
OPEN: Roles = None
PRODUCERS: Roles = frozenset({Role.PRODUCE})
CONSUMERS: Roles = frozenset({Role.CONSUME})
BOTH: Roles = frozenset({Role.PRODUCE, Role.CONSUME})
ADMINS: Roles = frozenset({Role.ADMIN})
ALL: Roles = frozenset(Role)


class Route(NamedTuple):
    """One endpoint; `roles` may call it, where tokens are set."""

    method: str
    path: str
    handler: Verb
    roles: Roles
    summary: str


@cache
def description() -> Json:
    """What /openapi.json says, made once."""
    return document((each.method, each.path, each.roles, each.summary) for each in ROUTES)


async def openapi(_api: Api, _request: HttpRequest) -> HttpResponse:
    """The description of all endpoints."""
    return answer_json(description())


async def docs(_api: Api, _request: HttpRequest) -> HttpResponse:
    """The description of all endpoints as a page."""
    return answer_page(description())


ROUTES = (
    Route("POST", "/push", jobs.push, PRODUCERS, "add a job, or an array of jobs"),
    Route("POST", "/pop", jobs.pop, CONSUMERS, "reserve ready jobs, waiting for the first"),
    Route("POST", "/finish", jobs.finish, CONSUMERS, "end jobs whose work is done"),
    Route("POST", "/delete", jobs.delete, BOTH, "end jobs that are not wanted any more"),
    Route("POST", "/get", jobs.get, BOTH, "all that is known of jobs"),
    Route(
        "POST",
        "/release",
        jobs.release,
        CONSUMERS,
        "give a reserved job back after a failed attempt",
    ),
    Route("POST", "/touch", jobs.touch, CONSUMERS, "extend a reservation"),
    Route("POST", "/bury", jobs.bury, CONSUMERS, "give a job up, to be kept for a person"),
    Route("POST", "/kick", jobs.kick, ADMINS, "make buried or delayed jobs ready now"),
    Route("POST", "/reschedule", jobs.reschedule, PRODUCERS, "give jobs a new due time"),
    Route("POST", "/cancel", topics.cancel, PRODUCERS, "end all jobs of a tag"),
    Route("POST", "/list", topics.list_jobs, ADMINS, "a page of the jobs of a topic or a tag"),
    Route("POST", "/take", topics.take, CONSUMERS, "hand out the jobs of a range of due times"),
    Route("POST", "/forecast", topics.forecast, ADMINS, "how many jobs fall due in each step"),
    Route("POST", "/limit", topics.limit, ADMINS, "limit a topic's deliveries"),
    Route("POST", "/pause", topics.pause, ADMINS, "hold a topic's deliveries"),
    Route("POST", "/resume", topics.resume, ADMINS, "let a topic's deliveries go on"),
    Route("POST", "/purge", topics.purge, ADMINS, "drop a topic's jobs without a trace"),
    Route("POST", "/topics", topics.topics, ADMINS, "every topic with its exact counts"),
    Route("GET", "/topics", topics.topics, ADMINS, "every topic with its exact counts"),
    Route("POST", "/stats", stats.stats, ADMINS, "sums over all topics, servers, store, settings"),
    Route("GET", "/stats", stats.stats, ADMINS, "sums over all topics, servers, store, settings"),
    Route("POST", "/whoami", ops.whoami, ALL, "the roles of the token that was sent"),
    Route("POST", "/subscribe", subscribers.subscribe, ADMINS, "have a url called with jobs"),
    Route("POST", "/unsubscribe", subscribers.unsubscribe, ADMINS, "have it called no more"),
    Route("POST", "/subscribers", subscribers.subscribers, ADMINS, "who is called, in order"),
    Route("POST", "/schedule", schedules.schedule, ADMINS, "have jobs pushed at given times"),
    Route("POST", "/unschedule", schedules.unschedule, ADMINS, "have them pushed no more"),
    Route("POST", "/schedules", schedules.schedules, ADMINS, "what is pushed, and when next"),
    Route("GET", "/healthz", ops.healthz, OPEN, "the process lives"),
    Route("GET", "/readyz", ops.readyz, OPEN, "the store answers and the timers tick"),
    Route("GET", "/metrics", metrics.metrics, ADMINS, "what happens here, for Prometheus"),
    Route("GET", "/openapi.json", openapi, ADMINS, "this description, for programs"),
    Route("GET", "/docs", docs, ADMINS, "this description, for people"),
)

# The original took any method with a body at its endpoints. Not GET: pages of other sites can have a browser send it.
ORIGINAL = frozenset({"/push", "/pop", "/finish", "/delete", "/get"})
AS_POST = ("DELETE", "PATCH", "PUT")


def endpoints(api: Api) -> dict[str, dict[str, Handler]]:
    """What answers, by path and method; each behind the guard."""
    confined: dict[Scope, Api] = {}

    def api_for(scope: Scope) -> Api:
        if scope is EVERYWHERE:
            return api
        if scope not in confined:
            confined[scope] = api.confined(scope)
        return confined[scope]

    def bind(route: Route) -> Handler:
        def handle(request: HttpRequest) -> Awaitable[HttpResponse]:
            return route.handler(api_for(api.guard.admit(request, route.roles)), request)

        return handle

    found: dict[str, dict[str, Handler]] = {}
    for route in ROUTES:
        found.setdefault(route.path, {})[route.method] = bind(route)
    for path in ORIGINAL:
        found[path] |= dict.fromkeys(AS_POST, found[path]["POST"])
    return found
