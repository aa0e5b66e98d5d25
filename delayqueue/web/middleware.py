"""Around every handler: who may come in, and an answer in the envelope for whatever is raised.

One middleware and plain checks: each middleware more is 2 µs a request.
"""

import ipaddress
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from time import perf_counter
from urllib.parse import urlsplit

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
from delayqueue.web.envelope import Speaker
from delayqueue.web.journal import Journal, new_request_id, request_id

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Check = Callable[[web.Request], None]  # raises what the client is refused with

PROTECTED = Text(
    "保护模式: 只接受本机连接; 网络可信时设置 protected_mode = no",
    "protected mode: only clients of this host are served; "
    "set protected_mode = no where the network is trusted",
)
CROSS_ORIGIN = Text("不接受其他网站页面的请求", "requests from pages of other sites are refused")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def envelope_errors(speaker: Speaker, journal: Journal, checks: Sequence[Check] = ()) -> Middleware:
    """The middleware that answers what the checks and handlers raise, and notes every answer."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        began_s = perf_counter()
        code = Code.OK
        try:
            for check in checks:
                check(request)
            response = await handler(request)
        except ConnectionError:  # the client is gone: aiohttp closes quietly
            raise
        except Exception as error:
            code, response = _answer(speaker, request, error)
        journal.note(request, response.status, code.value, began_s)
        return response

    return middleware


def _answer(
    speaker: Speaker, request: web.Request, error: Exception
) -> tuple[Code, web.StreamResponse]:
    """The answer to what was raised, and its code.

    Not in the middleware: its frame is part of the error's traceback, and if it held the error in turn, the request's
    body would stay until the garbage collector finds that ring.
    """
    refusal, given_id = _refusal(request, error)
    return refusal.code, speaker.error(request, refusal, given_id)


def _refusal(request: web.Request, error: Exception) -> tuple[QueueError, str]:
    """What to answer where this was raised, and an id for the request where somebody will want to find it."""
    match error:
        case QueueError():
            return error, ""
        case web.HTTPNotFound():
            return NoSuchPath(), ""
        case web.HTTPMethodNotAllowed():
            return WrongMethod(error.allowed_methods), ""
        case web.HTTPRequestEntityTooLarge():
            return TooLarge(), ""
        case _:
            # a defect of ours: the client learns that it may try again, the log learns the rest
            name = request_id(request) or new_request_id()
            text = "%s %s failed, request %s"
            log.error(text, request.method, request.path, name, exc_info=error)
            return Unavailable(), name


def same_origin(request: web.Request) -> None:
    """Keep other sites' pages from using a browser that can reach this server.

    Only browsers send these headers; the rule is that of Go's net/http.CrossOriginProtection.
    """
    if request.method not in SAFE_METHODS and is_cross_origin(request.headers):
        raise Forbidden(CROSS_ORIGIN)


def is_cross_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser sends this for a page of another site."""
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = headers.get(hdrs.ORIGIN)
    return origin is not None and origin.partition("://")[2] != headers.get(hdrs.HOST)


def loopback_only(request: web.Request) -> None:
    """Serve clients of this host only: protected mode."""
    if not is_loopback(request.remote):
        raise Forbidden(PROTECTED)
    if is_rebound(request.headers):
        raise Forbidden(CROSS_ORIGIN)


def is_rebound(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site reached this machine by giving its own name our address (DNS rebinding).

    To the browser that is one site; but a browser of this machine has no need of such a name.
    """
    if hdrs.ORIGIN not in headers or "Sec-Fetch-Site" in headers:
        return False
    try:
        name = urlsplit(f"//{headers.get(hdrs.HOST, '')}").hostname
        if name != "localhost":
            ipaddress.ip_address(name or "")
    except ValueError:
        return True
    return False


@lru_cache(1024)
def is_loopback(address: str | None) -> bool:
    """Whether a peer's address is one of this host's own loopback addresses; a unix socket has none and is."""
    if not address:
        return True
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback
