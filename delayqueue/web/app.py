"""The aiohttp application: middlewares and routes."""

import logging

from aiohttp import web

from delayqueue.config import Config
from delayqueue.web.admin import add_admin
from delayqueue.web.api import Api
from delayqueue.web.auth import GUARD, Guard
from delayqueue.web.journal import Journal, NoHttp
from delayqueue.web.middleware import envelope_errors, loopback_only, same_origin
from delayqueue.web.routes import add_routes

# A request holds at most so many times max_body: a batch of jobs, or one body written in JSON's escapes.
BODIES_PER_REQUEST = 8


def build_app(api: Api, config: Config, guard: Guard) -> web.Application:
    """The application that answers all that design and docs/api.md promise."""
    logging.getLogger("aiohttp.server").addFilter(NoHttp())
    journal = Journal(api.queue.metrics, lines=config.access_log)
    is_protected = config.protected_mode and not guard.asks
    checks = [same_origin, loopback_only] if is_protected else [same_origin]
    app = web.Application(
        middlewares=[envelope_errors(api.speaker, journal, checks)],
        client_max_size=BODIES_PER_REQUEST * config.max_body_bytes,
    )
    app[GUARD] = guard
    add_routes(app, api, guard)
    add_admin(app)
    return app
