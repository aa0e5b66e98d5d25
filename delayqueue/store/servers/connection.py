"""A connection to the store for exchanges: calls go out in one write, and their answers come back in order.

redis-py connects and logs in; after that the socket's own callbacks do the work. To send and to read, redis-py itself
takes a task, timeouts and a dozen coroutines for each exchange: three times the processor time.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from delayqueue.net.hangup import hang_up

CLOSED: Final = "Connection closed by server."
INCOMPLETE: Final = object()


class Link(asyncio.Protocol):
    """A connection of redis-py, which must not use it until `release`."""

    def __init__(self, connection: AbstractConnection) -> None:
        """Take over a connection without an outstanding answer. Raises ConnectionError if it is closed."""
        if connection._writer is None or connection._writer.transport.is_closing():
            raise RedisConnectionError(CLOSED)
        self.connection: Final = connection
        self.is_sound = True  # whether another exchange may begin
        self._transport: Final = connection._writer.transport
        self._former: Final = self._transport.get_protocol()
        self._reader: Final = hiredis.Reader(
            protocolError=RedisConnectionError,
            replyError=connection._parser.parse_error,
            notEnoughData=INCOMPLETE,
        )
        self._missing = 0  # answers
        self._answered: Callable[[Any], None]
        self._transport.set_protocol(self)

    def send(self, packed: Sequence[bytes], answered: Callable[[Any], None]) -> None:
        """Begin an exchange. `answered` is called with each answer, in order, which may be a RedisError."""
        self._missing, self._answered = len(packed), answered
        if self._transport.is_closing():  # then writing is ignored, or raises RuntimeError (uvloop)
            self.break_off(RedisConnectionError(CLOSED))
        else:
            self._transport.writelines(packed)

    def break_off(self, error: Exception) -> None:
        """Close the connection; the error replaces each missing answer."""
        self.is_sound = False
        hang_up(self._transport)
        while self._missing:
            self._answer(error)

    def release(self) -> None:
        """Give the connection back to redis-py: no answer is outstanding."""
        self._transport.set_protocol(self._former)

    def data_received(self, data: bytes) -> None:
        """Pass on the answers that are complete."""
        self._reader.feed(data)
        try:
            while self._missing and (answer := self._reader.gets()) is not INCOMPLETE:
                self._answer(answer)
        except RedisConnectionError as error:
            self.break_off(error)
        if not self._missing and self._reader.has_data():  # a part would prefix the next one
            self.break_off(RedisConnectionError("an answer that nobody asked for"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell redis-py, too, which may be closing the connection."""
        self.break_off(RedisConnectionError(CLOSED))
        self._former.connection_lost(exc)

    def _answer(self, answer: Any) -> None:
        self._missing -= 1
        if isinstance(answer, RedisError) and not isinstance(answer, ResponseError):
            self.is_sound = (
                False  # the server refuses everything: it is loading, or wants a password
            )
        self._answered(answer)
