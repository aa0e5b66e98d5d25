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
# More go with the exchanges after it: the longest calls take about 30 ms each, and one exchange has ANSWER_S.
MOST_CALLS: Final = 32
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
    """A way to one server. Connections come from the pool, and whose exchange fails is not used again."""

    def __init__(self, pool: ConnectionPool, wait: Wait | None = None) -> None:
        """With `wait` a call is answered once so many replicas have it, and all that it has read."""
        self._pool = pool
        self._wait = wait
        waiting: Any = wait and ("WAIT", wait.replicas, wait.timeout_ms)
        self._last = [hiredis.pack_command(waiting)] if waiting else []  # behind the calls
        self._waiting: list[_Call] = []
        self._task: asyncio.Task[None] | None = None

    def call(self, words: Sequence[Any]) -> asyncio.Future[Any]:
        """Send a command with the next exchange. The future has its answer, or a RedisError.

        Cancelling it before that keeps the command from being sent. Raises UnicodeEncodeError.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(hiredis.pack_command(tuple(words)), answer))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=NAME)
        return answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                waiting = [call for call in self._waiting if not call.answer.done()]
                calls, self._waiting = waiting[:MOST_CALLS], waiting[MOST_CALLS:]
                if calls:
                    await self._exchange(calls)
        finally:
            self._task = None

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
            packed = [call.packed for call in calls]
            await connection.send_packed_command([*packed, *self._last], check_health=False)
            if self._wait is None:
                for call in calls:
                    _settle(call.answer, await _read(connection))
                return
            answers = [await _read(connection) for _ in calls]
            lack = _lack(self._wait, await _read(connection))
            for call, answer in zip(calls, answers, strict=True):
                _settle(call.answer, answer if isinstance(answer, RedisError) else lack or answer)
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


def _lack(wait: Wait, reached: Any) -> RedisError | None:
    """What is wrong with what WAIT says, None = so many replicas have it."""
    if isinstance(reached, RedisError):
        return reached
    if reached < wait.replicas:
        return NotReplicatedError(
            f"{reached} of {wait.replicas} replicas have it within {wait.timeout_ms} ms"
        )
    return None
