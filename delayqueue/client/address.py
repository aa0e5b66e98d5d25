"""The server's address, and the headers that every request carries."""

from __future__ import annotations

import os
import re
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from delayqueue.client.api_request import SERVER_LANGUAGE, ApiRequest

DEFAULT_URL: Final = "http://127.0.0.1:9277"
URL_VARIABLE: Final = "DELAYQUEUE_URL"
TOKEN_VARIABLE: Final = "DELAYQUEUE_TOKEN"  # noqa: S105  # the variable's name
DEFAULT_TIMEOUT_S: Final = 10.0  # for an answer, on top of the time that the server may wait
DEFAULT_RETRIES: Final = 2
PATH: Final = "/%:@!$&'()*+,;=~"  # left unquoted in a path


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The server's URL, taken apart, and the headers of every request."""

    host: str
    port: int
    is_secure: bool
    path: str
    head: bytes = field(repr=False)

    @classmethod
    def of(cls, url: str | None, token: str | None) -> ServerAddress:
        """Parse `url`; None means the environment variable, and if that is not set, this machine without a token.

        A user and a password in it are sent as `Basic`. Raises ValueError if the URL or the token is invalid.
        """
        source = f"{URL_VARIABLE}=" if url is None else "URL "
        url = os.environ.get(URL_VARIABLE) or DEFAULT_URL if url is None else url
        shown = source + re.sub("//.*@", "//***@", url)  # without a password
        parts = _parts(url)
        if parts is None:
            raise ValueError(f"{shown}: must be http://HOST:PORT or https://HOST:PORT")
        if {"?", "#"} & {*url}:
            raise ValueError(
                f"{shown}: must be http://HOST:PORT or https://HOST:PORT, without ? and #"
            )
        token = _token(token)
        if token and parts.username is not None:
            raise ValueError(
                f"{shown}: it has a password, and there is a token, which takes its place: "
                f"give one of them (a token may come from {TOKEN_VARIABLE})"
            )
        is_secure = parts.scheme == "https"
        host = _ascii(parts.hostname or "")
        port = parts.port or (443 if is_secure else 80)
        lines = {
            "Host": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
            "Content-Type": "application/json",
            "Accept-Language": SERVER_LANGUAGE,
        }
        if token:
            lines["Authorization"] = f"Bearer {token}"
        elif parts.username is not None:
            lines["Authorization"] = f"Basic {_basic(parts.username, parts.password or '')}"
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()
        return cls(host, port, is_secure, quote(parts.path.rstrip("/"), safe=PATH), head)

    def encode(self, request: ApiRequest[Any]) -> bytes:
        """The request in the bytes of HTTP; its path is appended to that of the URL."""
        body = request.body
        trace = f"traceparent: {request.traceparent}\r\n" if request.traceparent else ""
        return b"POST %b%b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (
            self.path.encode(),
            request.path.encode(),
            self.head,
            trace.encode(),
            len(body),
            body,
        )

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context for connections; None for plain http."""
        return ssl.create_default_context() if self.is_secure else None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.is_secure}://{host}:{self.port}{self.path}"


def _token(given: str | None) -> str | None:
    """The given token, or that of the environment. Raises ValueError if it is invalid."""
    token = os.environ.get(TOKEN_VARIABLE) if given is None else given
    if token and not (token.isascii() and token.isprintable()):
        source = TOKEN_VARIABLE if given is None else "the token"
        raise ValueError(f"{source}: must be printable ASCII")
    return token


def _ascii(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode()


def _basic(user: str, password: str) -> str:
    """User and password in the form of the header `Authorization`."""
    return b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def _parts(url: str) -> SplitResult | None:
    """The parts of a server's URL; None if it is not one."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # bad brackets, or a port that is not a number
        return None
    return parts if good else None
