"""Sending requests without asyncio. The command line needs no more of a client, and starts without the verbs."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from typing import Final, Self, TypeVar

from delayqueue.client import tracing
from delayqueue.client.api_request import Answer, ApiRequest, TransportError, conversation
from delayqueue.client.base import BaseClient, is_readable
from delayqueue.client.http import BadResponse, Response
from delayqueue.client.made_once import made_once
from delayqueue.keepalive import keep_alive

T = TypeVar("T")

READ_BYTES: Final = 65_536


class Sender(BaseClient):
    """Sends requests; threads may share one, and forks of the process may go on using it."""

    _process: int = 0  # whose connections the idle ones are

    @made_once
    def _idle(self) -> deque[socket.socket]:
        return deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def send(self, request: ApiRequest[T]) -> T:
        """Send a request, and retry it if that is safe."""
        with tracing.sending(request, self._address) as traced:
            return self._send(traced)

    def _send(self, request: ApiRequest[T]) -> T:
        tries = conversation(request, self._retries)
        pause_s, request = next(tries)
        try:
            while True:
                if pause_s:
                    time.sleep(pause_s)
                pause_s, request = tries.send(self._try(request))
        except StopIteration as end:
            result: T = end.value
            return result

    def _try(self, request: ApiRequest[T]) -> Answer | TransportError:
        try:
            return self._exchange(self._idle_connection() or self._connect(), request)
        except (OSError, BadResponse) as error:
            return self._failure(error)

    def _exchange(self, connection: socket.socket, request: ApiRequest[T]) -> Answer:
        response = Response()
        limit = request.limit_s(self._timeout_s)
        until_s = None if limit is None else time.monotonic() + limit
        try:
            connection.settimeout(limit)
            connection.sendall(self._address.encode(request))
            answer = None
            while answer is None:
                data = connection.recv(READ_BYTES)
                answer = response.feed(data) if data else response.end()
                if answer is None and until_s is not None:
                    connection.settimeout(_left_s(until_s))
        except BaseException:
            connection.close()
            raise
        if response.keeps_alive:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def _idle_connection(self) -> socket.socket | None:
        """An idle connection that the server has not closed in the meantime; None if there is none."""
        if self._process != os.getpid():  # this is a fork, and its parent goes on using them
            self._process = os.getpid()
            self.close()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if not is_readable(connection):
                return connection
            connection.close()
        return None

    def _connect(self) -> socket.socket:
        address = self._address
        connection = socket.create_connection((address.host, address.port), self._timeout_s)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(connection)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=address.host)
        except BaseException:
            connection.close()
            raise
        return connection


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s
