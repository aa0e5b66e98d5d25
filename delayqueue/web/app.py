"""The HTTP server: its endpoints, and what stands before them."""

import asyncio
import logging
from typing import Any, Final

from aiohttp import web

from delayqueue.config import Config
from delayqueue.web.admin import pages
from delayqueue.web.api import Api
from delayqueue.web.checks import loopback_only, same_origin
from delayqueue.web.connections import Connections
from delayqueue.web.front import Front
from delayqueue.web.journal import Journal, NoHttp
from delayqueue.web.routes import endpoints

# A request holds at most so many times max_body: a batch of jobs, or one body written in JSON's escapes.
BODIES_PER_REQUEST: Final = 8
KEEPALIVE_S: Final = 75.0  # of an idle connection; aiohttp's own default is over an hour


def build_server(api: Api, config: Config) -> web.Server:
    """The server that answers all that design and docs/api.md promise."""
    logging.getLogger("aiohttp.server").addFilter(NoHttp())
    is_protected = config.protected_mode and not api.guard.asks
    checks = [same_origin, loopback_only] if is_protected else [same_origin]
    journal = Journal(api.queue.metrics, lines=config.access_log)
    front = Front(endpoints(api) | pages(), checks, api.speaker, journal)
    loop = asyncio.get_running_loop()

    most_bytes = BODIES_PER_REQUEST * config.max_body_bytes

    def request(
        message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.BaseRequest:
        return web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=most_bytes
        )

    return Connections(
        front.handle,
        request_factory=request,
        access_log=None,
        auto_decompress=False,  # it would unpack all of a request that is refused: web/api.py, Compressed
        handler_cancellation=True,  # a client that leaves while it waits takes no job
        keepalive_timeout=KEEPALIVE_S,
    )
