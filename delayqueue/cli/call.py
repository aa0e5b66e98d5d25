"""One call to a running server over HTTP."""

import http.client
import json
import os
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from delayqueue.cli.verb import REFUSED, UNREACHABLE, USAGE
from delayqueue.errors import Code

SILENCE_S: Final = 30.0  # for an answer, beyond the time that a call is to wait for jobs
CONNECTIONS: Final = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class CallError(Exception):
    """A call that came to nothing. The message is one line; `status` is the program's exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server(NamedTuple):
    """Where the server is, and the token that it wants, "" for none."""

    url: SplitResult
    token: str

    @classmethod
    def at(cls, url: str, token: str) -> "Server":
        """Read the URL. CallError where it is none, or the token cannot be sent."""
        parts = urlsplit(url)
        try:
            known = parts.scheme in CONNECTIONS and parts.hostname and parts.port != 0
        except ValueError:  # the port is no port
            known = False
        if not known:
            raise CallError(USAGE, f"--url {url}: must be http://HOST:PORT or https://HOST:PORT")
        if not (token.isascii() and token.isprintable()):
            raise CallError(USAGE, "--token: must be printable ASCII")
        return cls(parts, token)

    def call(self, path: str, fields: dict[str, Any], wait_s: float = 0) -> Any:
        """POST to an endpoint. Returns the answer's data; CallError where it has none for us."""
        answer = _envelope(self._post(path, json.dumps(fields).encode(), wait_s))
        if answer is None:
            raise CallError(UNREACHABLE, f"{self.url.geturl()}: this is not a delay-queue server")
        if answer["code"] != Code.OK:
            status = UNREACHABLE if answer["code"] == Code.UNAVAILABLE else REFUSED
            raise CallError(status, answer["message"])
        return answer["data"]

    def _post(self, path: str, body: bytes, wait_s: float) -> bytes:
        connection = CONNECTIONS[self.url.scheme](
            self.url.hostname or "", self.url.port, timeout=SILENCE_S + wait_s
        )
        try:
            connection.request("POST", self.url.path.rstrip("/") + path, body, self._headers())
            answer: bytes = connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise CallError(
                UNREACHABLE, f"{self.url.geturl()}: {reason}; start the server, or correct --url"
            ) from None
        finally:
            connection.close()
        return answer

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept-Language": _language()}
        return headers | ({"Authorization": f"Bearer {self.token}"} if self.token else {})


def _language() -> str:
    """The language of the server's messages: Chinese where the terminal speaks it, else English."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if locale.startswith("zh") else "en"


def _envelope(body: bytes) -> dict[str, Any] | None:
    """The envelope of an answer, None where it is in none: a proxy's page, another program's."""
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    if isinstance(answer, dict) and {"code", "message", "data"} <= answer.keys():
        return answer
    return None
