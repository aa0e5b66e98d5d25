"""Checks of what browsers send, and of compressed bodies; they raise the error with which a request is refused."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from delayqueue.errors import Compressed, Forbidden, Text
from delayqueue.net.loopback import is_loopback
from delayqueue.web.http import HttpRequest

PROTECTED = Text(
    "保护模式：只接受本机连接；网络可信时设置 protected_mode = no",
    "protected mode: only clients on this host are served; "
    "set protected_mode = no if you trust the network",
)
BY_PROXY = Text(
    "保护模式：此请求经由代理而来（X-Forwarded-For），客户端可能是任何人；"
    "请设置 auth_tokens，代理本身只放行可信的人时也可设置 protected_mode = no",
    "protected mode: a proxy has passed this on (X-Forwarded-For), for a client that may be anybody; "
    "set auth_tokens, or protected_mode = no if the proxy admits only whom you trust",
)
FORWARDED = "x-forwarded-for"
CROSS_ORIGIN = Text("不接受其他网站页面的请求", "requests from pages of other sites are refused")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def require_same_origin(request: HttpRequest) -> None:
    """Keep other sites' pages from using a browser, which sent this request, and can reach this server.

    The rule is that of Go's net/http.CrossOriginProtection.
    """
    if request.method not in SAFE_METHODS and is_cross_origin(request.headers):
        raise Forbidden(CROSS_ORIGIN)


def is_cross_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser, which sends one of the two headers, sent this for a page of another site."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in {"same-origin", "none"}
    host = headers["origin"].partition("://")[2]  # empty: of no known site, as in "null"
    return not host or host != headers.get("host")


def require_uncompressed(request: HttpRequest, body: bytes) -> None:
    """Raises Compressed for a compressed body; not for plain JSON with such a header, which the original takes, too."""
    says_so = request.headers.get("content-encoding", "identity") != "identity"
    if says_so and body[:64].lstrip()[:1] not in {b"{", b"[", b""}:
        raise Compressed


def require_this_machine(request: HttpRequest) -> None:
    """Raises Forbidden for a client on another machine, also behind a proxy on this one, as protected mode demands."""
    if not is_loopback(request.peer):
        raise Forbidden(PROTECTED)
    if FORWARDED in request.headers:
        raise Forbidden(BY_PROXY)


def require_own_page(request: HttpRequest) -> None:
    """Raises Forbidden unless a page of this server has sent this, from this machine, as protected mode demands."""
    require_same_origin(request)
    require_this_machine(request)
    if "origin" in request.headers and is_rebound(request.headers):
        raise Forbidden(CROSS_ORIGIN)


def is_rebound(headers: Mapping[str, str]) -> bool:
    """Whether the page of an `origin` reached this machine by pointing its own name at our address (DNS rebinding).

    To the browser that is one site; but a browser on this machine needs no such name.
    """
    if "sec-fetch-site" in headers:
        return False
    try:
        name = urlsplit(f"//{headers.get('host', '')}").hostname
        if name != "localhost":
            ipaddress.ip_address(name or "")
    except ValueError:
        return True
    return False
