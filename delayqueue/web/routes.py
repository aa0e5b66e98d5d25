"""The table of all endpoints."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from delayqueue.web import jobs, ops, topics
from delayqueue.web.api import Api

Handler = Callable[[Api, web.Request], Awaitable[web.StreamResponse]]


class Route(NamedTuple):
    """One endpoint."""

    method: str
    path: str
    handler: Handler
    summary: str


ROUTES = (
    Route("POST", "/push", jobs.push, "add a job, or an array of jobs"),
    Route("POST", "/pop", jobs.pop, "reserve ready jobs, waiting for the first"),
    Route("POST", "/finish", jobs.finish, "end jobs whose work is done"),
    Route("POST", "/delete", jobs.delete, "end jobs that are not wanted any more"),
    Route("POST", "/get", jobs.get, "all that is known of jobs"),
    Route("POST", "/release", jobs.release, "give a reserved job back after a failed attempt"),
    Route("POST", "/touch", jobs.touch, "extend a reservation"),
    Route("POST", "/bury", jobs.bury, "give a job up, to be kept for a person"),
    Route("POST", "/kick", jobs.kick, "make buried or delayed jobs ready now"),
    Route("POST", "/reschedule", jobs.reschedule, "give a job a new due time"),
    Route("POST", "/cancel", topics.cancel, "end all jobs of a tag"),
    Route("POST", "/list", topics.list_jobs, "a page of the jobs of a topic or a tag"),
    Route("POST", "/take", topics.take, "hand out the jobs of a range of due times"),
    Route("POST", "/forecast", topics.forecast, "how many jobs fall due in each step"),
    Route("POST", "/pause", topics.pause, "hold a topic's deliveries"),
    Route("POST", "/resume", topics.resume, "let a topic's deliveries go on"),
    Route("POST", "/purge", topics.purge, "drop a topic's jobs without a trace"),
    Route("POST", "/topics", topics.topics, "every topic with its exact counts"),
    Route("GET", "/topics", topics.topics, "every topic with its exact counts"),
    Route("GET", "/healthz", ops.healthz, "the process lives"),
    Route("GET", "/readyz", ops.readyz, "the store answers and the timers tick"),
)


def add_routes(app: web.Application, api: Api) -> None:
    """Give the app every endpoint."""
    for route in ROUTES:
        app.router.add_route(route.method, route.path, _bind(route.handler, api))


def _bind(handler: Handler, api: Api) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(api, request)

    return handle
