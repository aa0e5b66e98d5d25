"""Where the server is, and who we are to it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from delayqueue.client.calls import SERVER_LANGUAGE, Call

DEFAULT_URL: Final = "http://127.0.0.1:9277"
URL_VARIABLE: Final = "DELAYQUEUE_URL"
TOKEN_VARIABLE: Final = "DELAYQUEUE_TOKEN"  # noqa: S105  # its name
DEFAULT_TIMEOUT_S: Final = 10.0  # for an answer, beyond what the server may wait
DEFAULT_RETRIES: Final = 2
# A poll without a limit of its own is not broken off here; TCP's probes find out within a minute
# whether the server is still there.
KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The server's URL, taken apart, and the headers of every request."""

    parts: SplitResult
    headers: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, url: str | None, token: str | None) -> ServerAddress:
        """What is None is in the environment, or else on this machine and without a token.

        Raises ValueError if the URL is none.
        """
        url = os.environ.get(URL_VARIABLE) or DEFAULT_URL if url is None else url
        token = os.environ.get(TOKEN_VARIABLE) if token is None else token
        parts = _parts(url)
        if parts is None:
            raise ValueError(f"{url}: must be http://HOST:PORT or https://HOST:PORT")
        headers = {"Content-Type": "application/json", "Accept-Language": SERVER_LANGUAGE}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return cls(parts, headers)

    def path(self, call: Call[Any]) -> str:
        """The path of a call, below that of the URL."""
        return self.parts.path.rstrip("/") + call.path

    def __str__(self) -> str:
        return f"{self.parts.scheme}://{self.parts.netloc.rpartition('@')[2]}"


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL that leads to a server; None where it does not."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, or a port that is none
        return None
    return parts if good else None


def limit_s(call: Call[Any], timeout_s: float) -> float | None:
    """How long to wait for the answer; None = for ever."""
    return None if call.wait_s is None else call.wait_s + timeout_s
