"""Around every handler: who may come in, and an answer in the envelope for whatever is raised."""

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache

from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from delayqueue.errors import (
    Code,
    Forbidden,
    NoSuchPath,
    QueueError,
    Text,
    TooLarge,
    Unavailable,
    WrongMethod,
)
from delayqueue.metrics import REQUESTS, Metrics
from delayqueue.web.envelope import Speaker

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PROTECTED = Text(
    "保护模式: 只接受本机连接; 网络可信时设置 protected_mode = no",
    "protected mode: only clients of this host are served; "
    "set protected_mode = no where the network is trusted",
)
CROSS_ORIGIN = Text("不接受其他网站页面的请求", "requests from pages of other sites are refused")
OTHER_PATHS = "other"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def envelope_errors(speaker: Speaker, metrics: Metrics) -> Middleware:
    """The middleware that answers what handlers raise, and counts every answer."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except Exception as error:
            if isinstance(error, ConnectionError):  # the client is gone: aiohttp closes quietly
                raise
            refusal = _refusal(request, error)
            metrics.count(REQUESTS, _path(request), refusal.code.value)
            return speaker.error(request, refusal)
        metrics.count(REQUESTS, _path(request), Code.OK.value)
        return response

    return middleware


def _refusal(request: web.Request, error: Exception) -> QueueError:
    """What to answer where this was raised."""
    match error:
        case QueueError():
            return error
        case web.HTTPNotFound():
            return NoSuchPath()
        case web.HTTPMethodNotAllowed():
            return WrongMethod(error.allowed_methods)
        case web.HTTPRequestEntityTooLarge():
            return TooLarge()
        case _:
            # a defect of ours: the client learns that it may try again, the log learns the rest
            log.error("%s %s failed", request.method, request.path, exc_info=error)
            return Unavailable()


def _path(request: web.Request) -> str:
    """The endpoint's path; what no endpoint has is not named, so that nobody can fill the metrics."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else OTHER_PATHS


def same_origin() -> Middleware:
    """The middleware that keeps other sites' pages from using a browser that can reach this server.

    Only browsers send these headers; the rule is that of Go's net/http.CrossOriginProtection.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method not in SAFE_METHODS and is_cross_origin(request.headers):
            raise Forbidden(CROSS_ORIGIN)
        return await handler(request)

    return middleware


def is_cross_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser sends this for a page of another site."""
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = headers.get(hdrs.ORIGIN)
    return origin is not None and origin.partition("://")[2] != headers.get(hdrs.HOST)


def loopback_only() -> Middleware:
    """The middleware of protected mode."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_loopback(request.remote):
            raise Forbidden(PROTECTED)
        return await handler(request)

    return middleware


@lru_cache(1024)
def is_loopback(address: str | None) -> bool:
    """Whether a peer's address is one of this host's own loopback addresses; a unix socket has none and is."""
    if not address:
        return True
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback
