"""The table of all endpoints."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from delayqueue.web import jobs, ops
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
