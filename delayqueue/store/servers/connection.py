"""A connection to the store for exchanges: calls go out in one write, and their answers come back in order.

redis-py connects and logs in; after that the socket's own callbacks do the work. To send and to read, redis-py itself
takes a task, timeouts and a dozen coroutines for each exchange: three times the processor time.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from time import monotonic
from typing import Any, Final

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from delayqueue.net.hangup import hang_up

CLOSED: Final = "Connection closed by server."
INCOMPLETE: Final = object()


class _Checked(AbstractConnection):
    __slots__ = ()

    async def _send_packed_command(self, command: Iterable[bytes]) -> None:
        if self._writer is None or self._writer.transport.is_closing():
            raise ConnectionResetError(CLOSED)
        await super()._send_packed_command(command)


@cache
def checked(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """This connection of redis-py, for uvloop: one that the store closes fails with redis-py's ConnectionError.

    Without this, uvloop raises RuntimeError if it is closed between two commands, as it can be at each login.
    """
    return type(kind.__name__, (_Checked, kind), {})


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
        self._answered: Callable[[Sequence[Any]], None]
        self._transport.set_protocol(self)

    def send(self, packed: Sequence[bytes], answered: Callable[[Sequence[Any]], None]) -> None:
        """Begin an exchange. `answered` is called with answers as they come, in order; each may be a RedisError."""
        self._missing, self._answered = len(packed), answered
        if self._transport.is_closing():  # then writing is ignored, or raises RuntimeError (uvloop)
            self.break_off(RedisConnectionError(CLOSED))
        else:
            self._transport.writelines(packed)

    def break_off(self, error: Exception) -> None:
        """Close the connection; the error replaces each missing answer."""
        self.is_sound = False
        hang_up(self._transport)
        if missing := self._missing:
            self._missing = 0
            self._answered([error] * missing)

    def release(self) -> None:
        """Give the connection back to redis-py: no answer is outstanding."""
        self._transport.set_protocol(self._former)

    def data_received(self, data: bytes) -> None:
        """Pass on the answers that are complete."""
        reader, answers = self._reader, list[Any]()
        broken: RedisConnectionError | None = None
        reader.feed(data)
        try:
            while len(answers) < self._missing and (answer := reader.gets()) is not INCOMPLETE:
                answers.append(answer)
                if isinstance(answer, RedisError) and not isinstance(answer, ResponseError):
                    # the server refuses everything: it is loading, or wants a password
                    self.is_sound = False
        except RedisConnectionError as error:
            broken = error
        self._missing -= len(answers)
        if not self._missing and reader.has_data():  # a part would prefix the next one
            broken = RedisConnectionError("an answer that nobody asked for")
        if answers:
            self._answered(answers)
        if broken is not None:
            self.break_off(broken)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell redis-py, too, which may be closing the connection."""
        self.break_off(RedisConnectionError(CLOSED))
        self._former.connection_lost(exc)


class Subscription(Link):
    """A connection of redis-py that hears channels. `heard` is called with each message: its kind, its channel, ...

    `lost` fails with the reason when the connection ends: an error of redis-py, or what `heard` raised.
    """

    def __init__(self, connection: AbstractConnection, heard: Callable[[list[Any]], None]) -> None:
        super().__init__(connection)
        self.lost: Final = asyncio.get_running_loop().create_future()
        self.heard_s = monotonic()  # when the last message came
        self._heard = heard

    def ask(self, *words: str) -> None:
        """Send a command; its answer is a message, too."""
        if not self._transport.is_closing():
            self._transport.write(hiredis.pack_command(words))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Pass on the messages that are complete."""
        self.heard_s = monotonic()
        try:
            self._reader.feed(data)
            while (message := self._reader.gets()) is not INCOMPLETE:
                if isinstance(message, RedisError):
                    self.break_off(message)
                else:
                    self._heard(message)
        except Exception as error:
            self.break_off(error)

    def break_off(self, error: Exception) -> None:
        """Close the connection."""
        super().break_off(error)
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()  # nobody may be left to hear it
