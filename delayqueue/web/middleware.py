"""Around every handler: who may come in, and an answer in the envelope for whatever is raised."""

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache

from aiohttp import web
from aiohttp.typedefs import Middleware

from delayqueue.errors import (
    Forbidden,
    NoSuchPath,
    QueueError,
    Text,
    TooLarge,
    Unavailable,
    WrongMethod,
)
from delayqueue.web.envelope import Speaker

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PROTECTED = Text(
    "保护模式: 只接受本机连接; 网络可信时设置 protected_mode = no",
    "protected mode: only clients of this host are served; "
    "set protected_mode = no where the network is trusted",
)


def envelope_errors(speaker: Speaker) -> Middleware:
    """The middleware that answers what handlers raise."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except QueueError as error:
            return speaker.error(request, error)
        except web.HTTPNotFound:
            return speaker.error(request, NoSuchPath())
        except web.HTTPMethodNotAllowed as error:
            response = speaker.error(request, WrongMethod())
            response.headers["Allow"] = ", ".join(sorted(error.allowed_methods))
            return response
        except web.HTTPRequestEntityTooLarge:
            return speaker.error(request, TooLarge())
        except (web.HTTPException, ConnectionError):  # the client is gone: aiohttp closes quietly
            raise
        except Exception:
            # a defect of ours: the client learns that it may try again, the log learns the rest
            log.exception("%s %s failed", request.method, request.path)
            return speaker.error(request, Unavailable())

    return middleware


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
