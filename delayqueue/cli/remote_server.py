"""One call to a running server over HTTP."""

import os
from argparse import Namespace
from typing import Any, Final

from delayqueue.cli.subcommand import REFUSED, UNREACHABLE, USAGE, late
from delayqueue.client.api_request import ApiRequest, NotUnicode, TransportError
from delayqueue.client.sender import Sender
from delayqueue.errors import QueueError, Unavailable

LOAD: Final = late("delayqueue.config.loading:load")
SILENCE_S: Final = 30.0  # for an answer, on top of the time that a call may wait for jobs


class RequestError(Exception):
    """A failed call. The message is one line; `status` is the program's exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RemoteServer(Sender):
    """The server that the arguments, the config file or the environment name."""

    def __init__(self, asked: Namespace, silence_s: float = SILENCE_S) -> None:
        """Raises StartupError if the config file is invalid, RequestError if there can be no such server."""
        url = asked.url
        if url is None and asked.config:
            url = LOAD(asked.config, os.environ).own_url
        try:
            super().__init__(url, token=asked.token, timeout=silence_s)
        except ValueError as error:
            raise RequestError(USAGE, str(error)) from None

    def __str__(self) -> str:
        return str(self._address)

    def post(
        self, path: str, fields: dict[str, Any] | list[dict[str, Any]], wait_s: float = 0
    ) -> Any:
        """POST to an endpoint. Returns the answer's data; raises RequestError if it has none for us."""
        try:
            return self.send(ApiRequest(path, fields, read=lambda data: data, wait_s=wait_s))
        except NotUnicode as error:
            raise RequestError(USAGE, str(error)) from None
        except TransportError as error:
            raise RequestError(UNREACHABLE, f"{error}; {_way_out(error)}") from None
        except QueueError as error:
            is_away = isinstance(error, Unavailable)
            raise RequestError(UNREACHABLE if is_away else REFUSED, str(error)) from None


def _way_out(error: TransportError) -> str:
    if "certificate is not valid for" in str(error):  # it is trusted, and names others
        return "ask for the server by a name of its certificate: --url https://NAME:PORT"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):  # the server runs
        return "renew its certificate, or name its authority in SSL_CERT_FILE"
    return "start the server, or correct --url"
