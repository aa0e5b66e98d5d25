"""A front without a server: its endpoints are called with a queue that only counts."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from delayqueue.config.config import Config
from delayqueue.domain.access import EVERYWHERE
from delayqueue.metrics import Metrics
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator
from delayqueue.web.endpoint import Endpoint
from delayqueue.web.envelope import Responder
from delayqueue.web.front import Front, build_front
from delayqueue.web.http import HttpRequest, HttpResponse

Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


def front_of(*endpoints: Endpoint, **settings: Any) -> Front:
    """A front with these endpoints."""
    config = Config(language="en", protected_mode=False, **settings)
    queue: Any = SimpleNamespace(metrics=Metrics(), scope=EVERYWHERE)
    queue.within = lambda scope: SimpleNamespace(scope=scope)
    no_snapshots: Any = None
    nothing_tried: Any = None
    api = Api(
        queue,
        queue,
        Responder(config.language),
        config.max_body_bytes,
        config.strict,
        config.queue_block_timeout_s,
        no_snapshots,
        config.metrics_topics,
        {},
        {},
        Authenticator.of(config),
        str,
        nothing_tried,
        endpoints,
    )
    return build_front(api, config)
