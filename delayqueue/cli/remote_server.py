"""One call to a running server over HTTP."""

import os
from argparse import Namespace
from typing import Any, Final

from delayqueue.cli.subcommand import REFUSED, UNREACHABLE, USAGE, late
from delayqueue.client.address import DEFAULT_URL, TOKEN_VARIABLE, URL_VARIABLE
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
        url, token = asked.url, asked.token
        if url is None:
            of_file = LOAD(asked.config, os.environ).own_url if asked.config else ""
            url = of_file or os.environ.get(URL_VARIABLE) or DEFAULT_URL
        token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
        if not (token.isascii() and token.isprintable()):
            raise RequestError(USAGE, "--token: must be printable ASCII")
        try:
            super().__init__(url, token=token, timeout=silence_s)
        except ValueError as error:
            raise RequestError(USAGE, f"--url {error}") from None

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
    if "CERTIFICATE_VERIFY_FAILED" in str(error):  # the server runs
        return "renew its certificate, or name its authority in SSL_CERT_FILE"
    return "start the server, or correct --url"
