"""URLs of calls: checks and requests read a URL by these functions only, so that both mean the same host."""

import re
from contextlib import suppress
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from yarl import URL

from delayqueue.errors import BadValue

CACHED: Final = 1024  # each is asked for several times during a call
# a scheme, an authority, and the target, which goes into the request line
_PARTS: Final = re.compile(r"(https?)://([^/?#]+)([^#]*)", re.IGNORECASE)
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


@lru_cache(maxsize=CACHED)
def request_url(text: str) -> URL:
    """The URL with host, path and query byte for byte as they were given. Raises BadValue if it has no valid host.

    Only what HTTP cannot carry changes: characters beyond ASCII are percent-encoded as UTF-8, and in a host they
    become IDNA, as in browsers.
    """
    parts = _PARTS.fullmatch(text)
    with suppress(ValueError):  # UnicodeError among them
        if parts is not None and (understood := URL(text)).raw_host:
            scheme, authority, target = parts.groups()
            target = _NOT_ASCII.sub(lambda found: quote(found[0]), target)
            return URL.build(
                scheme=scheme.lower(),
                authority=authority if authority.isascii() else understood.raw_authority,
                # with the query, which yarl would otherwise take apart: it drops a "?" that nothing follows
                path=target if target.startswith("/") else f"/{target}",
                encoded=True,
            )
    raise BadValue("没有主机", "has no host")


def host_of(text: str) -> str:
    """The host that is called, in lower case and without the full stop at its end. Raises BadValue if there is none."""
    return (request_url(text).raw_host or "").lower().rstrip(".")


def host_and_port_of(text: str) -> str:
    """The host and the port that are called, as in a URL; "" for one that cannot be called, which its call reports."""
    with suppress(ValueError):
        host, port = host_of(text), request_url(text).port
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return ""
