"""One call to a running server over HTTP."""

from typing import Any, Final

from delayqueue.cli.subcommand import REFUSED, UNREACHABLE, USAGE
from delayqueue.client import Client, QueueError, TransportError, Unavailable
from delayqueue.client.calls import Call

SILENCE_S: Final = 30.0  # for an answer, on top of the time that a call may wait for jobs


class CallError(Exception):
    """A failed call. The message is one line; `status` is the program's exit status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RemoteServer:
    """The server that is called, in a `with` block."""

    def __init__(self, url: str, token: str, silence_s: float = SILENCE_S) -> None:
        """`token` is "" for none. Raises CallError if the URL is invalid, or the token cannot be sent."""
        if not (token.isascii() and token.isprintable()):
            raise CallError(USAGE, "--token: must be printable ASCII")
        self._url = url
        try:
            self._client = Client(url, token=token, timeout=silence_s)
        except ValueError as error:
            raise CallError(USAGE, f"--url {error}") from None

    def __enter__(self) -> "RemoteServer":
        return self

    def __str__(self) -> str:
        return self._url

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def call(self, path: str, fields: dict[str, Any], wait_s: float = 0) -> Any:
        """POST to an endpoint. Returns the answer's data; raises CallError if it has none for us."""
        try:
            return self._client.send(Call(path, fields, read=lambda data: data, wait_s=wait_s))
        except TransportError as error:
            message = f"{error}; start the server, or correct --url"
            raise CallError(UNREACHABLE, message) from None
        except Unavailable as error:
            raise CallError(UNREACHABLE, str(error)) from None
        except QueueError as error:
            raise CallError(REFUSED, str(error)) from None
