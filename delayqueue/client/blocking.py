"""The client for plain programs and threads."""

from __future__ import annotations

import http.client
import select
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from delayqueue.client.address import (
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT_S,
    KEEPALIVE,
    ServerAddress,
    limit_s,
)
from delayqueue.client.calls import Answer, Call, TransportError, conversation
from delayqueue.client.jobs import seconds
from delayqueue.client.verbs import Verbs

if TYPE_CHECKING:
    from types import TracebackType

    from delayqueue.client.jobs import Seconds

T = TypeVar("T")

CONNECTIONS: Final = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class Client(Verbs):
    """Talks to a delay queue server; may be shared by threads.

    `url` and `token` are DELAYQUEUE_URL and DELAYQUEUE_TOKEN of the environment if they are not given. `timeout` is for
    an answer, beyond the time that the server may wait for jobs. Calls that are as good twice as once are repeated up
    to `retries` times when the connection breaks or the store is away; all of them, when the server says that there are
    too many. Use it in a `with` block, or call close().
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: Seconds = DEFAULT_TIMEOUT_S,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        self._address = ServerAddress.of(url, token)
        self._timeout_s = seconds(timeout)
        self._retries = retries
        self._idle: deque[http.client.HTTPConnection] = deque()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def send(self, call: Call[T]) -> T:
        """Make a call, and repeat it where that is allowed. The verbs are built on this."""
        talk = conversation(call, self._retries)
        pause_s = next(talk)
        while True:
            time.sleep(pause_s)
            try:
                pause_s = talk.send(self._try(call))
            except StopIteration as end:
                result: T = end.value
                rest = call.rest()
                if rest is None:
                    return result
                call, talk = rest, conversation(rest, self._retries)
                pause_s = next(talk)

    def _try(self, call: Call[T]) -> Answer | TransportError:
        try:
            return self._exchange(self._idle_connection() or self._connect(), call)
        except (OSError, http.client.HTTPException) as error:
            return TransportError(f"{self._address}: {error or type(error).__name__}")

    def _exchange(self, connection: http.client.HTTPConnection, call: Call[T]) -> Answer:
        try:
            connection.sock.settimeout(limit_s(call, self._timeout_s))
            connection.request("POST", self._address.path(call), call.body, self._address.headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.read(), response.getheader("Retry-After"))
        except BaseException:
            connection.close()
            raise
        if not response.will_close:
            self._idle.append(connection)
        return answer

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        """One that the server has not closed meanwhile."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if not _is_readable(connection.sock):
                return connection
            connection.close()
        return None

    def _connect(self) -> http.client.HTTPConnection:
        parts = self._address.parts
        connection: http.client.HTTPConnection = CONNECTIONS[parts.scheme](
            parts.hostname or "", parts.port, timeout=self._timeout_s
        )
        connection.connect()
        _probe(connection.sock)
        return connection


def _is_readable(idle: socket.socket) -> bool:
    """Nothing is asked, so what can be read is the connection's end."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([idle], [], [], 0)[0])
    poll = select.poll()
    poll.register(idle, select.POLLIN)
    return bool(poll.poll(0))


def _probe(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):  # Linux has them
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
