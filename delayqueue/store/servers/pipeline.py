"""Calls to a server, one exchange after the other: what is called while an exchange is under way goes with the next.

A server does one call at a time, whatever the number of connections; what each exchange costs, in system calls and in
tasks that wake up, costs more than what a small call does. With `wait` the exchange ends with the replicas' word.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import hiredis
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

# A call that takes longer has failed, whatever it waited for: a connection of the pool, a connect, an answer.
ANSWER_S: Final = 5.0
# More go with the exchanges after it. The longest calls take about 30 ms of the store, so one exchange takes a second.
MOST_CALLS: Final = 32
OVERTAKEN_S: Final = 0.1  # after which the next exchange begins on another connection
NAME: Final = "exchange"


class Wait(NamedTuple):
    """So many replicas must have a call, each within that time."""

    replicas: int
    timeout_ms: int


class NotReplicatedError(RedisError):
    """Too few replicas have said in time that they have what a call did; it is done on the master."""


class _Call(NamedTuple):
    packed: bytes
    answer: asyncio.Future[Any]


class Pipeline:
    """A way to one server. Connections come from the pool, and whose exchange fails is not used again.

    An exchange that takes long, as the replicas or one connection are silent, is overtaken by the next one.
    """

    def __init__(self, pool: ConnectionPool, wait: Wait | None = None) -> None:
        """With `wait` a call is answered once so many replicas have what the connection wrote."""
        self._pool = pool
        self._wait = wait
        words: Any = wait and ("WAIT", wait.replicas, wait.timeout_ms)
        self._packed_wait = [hiredis.pack_command(words)] if words else []
        self._unsent: list[_Call] = []
        self._sender: asyncio.Task[None] | None = None  # who takes what is unsent
        self._tasks: set[asyncio.Task[None]] = set()  # the sender, and those that it has overtaken

    def call(self, words: Sequence[Any]) -> asyncio.Future[Any]:
        """Send a command with the next exchange. The future has its answer, or a RedisError.

        Cancelling it before that keeps the command from being sent. Raises UnicodeEncodeError.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._unsent.append(_Call(hiredis.pack_command(tuple(words)), answer))
        if self._sender is None:
            self._start()
        return answer

    def _start(self) -> None:
        self._sender = asyncio.create_task(self._run(), name=NAME)
        self._tasks.add(self._sender)
        self._sender.add_done_callback(self._tasks.discard)

    def _overtake(self) -> None:
        self._sender = None
        if self._unsent:
            self._start()

    async def _run(self) -> None:
        """Exchange until nothing is unsent, or another one has taken over."""
        loop, me = asyncio.get_running_loop(), asyncio.current_task()
        try:
            while self._unsent and self._sender is me:
                calls, self._unsent = self._unsent[:MOST_CALLS], self._unsent[MOST_CALLS:]
                overtaking = loop.call_later(OVERTAKEN_S, self._overtake)
                try:
                    await self._exchange(calls)
                finally:
                    overtaking.cancel()
        finally:
            if self._sender is me:
                self._sender = None

    async def _exchange(self, calls: Sequence[_Call]) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._send(calls)
        except Exception as error:
            failure = RedisTimeoutError("no answer") if isinstance(error, TimeoutError) else error
            for call in calls:
                _settle(call.answer, failure)

    async def _send(self, calls: Sequence[_Call]) -> None:
        connection: AbstractConnection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            calls = [call for call in calls if not call.answer.done()]  # the others are cancelled
            if not calls:
                return
            packed = [call.packed for call in calls]
            await connection.send_packed_command([*packed, *self._packed_wait], check_health=False)
            if self._wait is None:
                for call in calls:
                    _settle(call.answer, await _read(connection))
                return
            answers = [await _read(connection) for _ in calls]
            error = _replication_error(self._wait, await _read(connection))
            for call, answer in zip(calls, answers, strict=True):
                _settle(call.answer, answer if isinstance(answer, RedisError) else error or answer)
        finally:
            await self._pool.release(connection)


async def _read(connection: AbstractConnection) -> Any:
    """The next answer, which may be a ResponseError. Raises RedisError if none comes."""
    try:
        return await connection.read_response(timeout=math.inf)
    except ResponseError as error:
        return error


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _replication_error(wait: Wait, reached: Any) -> RedisError | None:
    """What is wrong with what WAIT says, None = so many replicas have it."""
    if isinstance(reached, RedisError):
        return reached
    if reached < wait.replicas:
        return NotReplicatedError(
            f"{reached} of {wait.replicas} replicas have it within {wait.timeout_ms} ms"
        )
    return None
