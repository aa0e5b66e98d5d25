"""Calls to a server, one exchange after the other: calls made during an exchange go with the next one.

A server does one call at a time, whatever the number of connections. The fixed costs of an exchange, system calls and
turns of the loop, exceed the cost of a small call. With `wait` the exchange ends with the replicas' acknowledgement.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import hiredis
from redis.asyncio.connection import ConnectionPool
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.store.servers.connection import Link
from delayqueue.tasks import Tasks

# A call that takes longer has failed, whatever it waited for: a connection of the pool, a connect, an answer.
ANSWER_S: Final = 5.0
# Further calls go with later exchanges. The longest calls take about 30 ms of the store, so one exchange takes a
# second.
MOST_CALLS: Final = 32
# Pipelines for each server: while it is busy with one, we prepare or answer the other. 32 connections push 1.1 times as
# many jobs with two as with one, at the same processor time, and 128 of them 0.95 times; three give no more.
AT_A_TIME: Final = 2
OVERTAKEN_S: Final = 0.1  # after which the next exchange begins on another connection


class Wait(NamedTuple):
    """How many replicas must have a call, and within which time."""

    replicas: int
    timeout_ms: int


class NotReplicatedError(RedisError):
    """Too few replicas acknowledged a call in time; it is done on the master."""


class _Call(NamedTuple):
    packed: bytes
    answer: asyncio.Future[Any]


class Pipeline:
    """A path to one server. It keeps a connection of the pool from its first call on, and another one if that fails.

    If an exchange takes long, because the replicas or one connection are silent, the next one overtakes it.
    """

    def __init__(self, pool: ConnectionPool, wait: Wait | None = None) -> None:
        """With `wait`, a call is answered once that many replicas have what the connection wrote."""
        self._pool = pool
        self._wait = wait
        self._unsent: list[_Call] = []
        self._current: _Exchange | None = None  # the one that the next one waits for
        self._will_begin = False
        self._link: Link | None = None  # for the next exchange
        self._connecting = Tasks("connection to the store")

    @property
    def is_busy(self) -> bool:
        """Whether a call made now has to wait for an exchange."""
        return self._current is not None

    def call(self, words: Sequence[Any]) -> asyncio.Future[Any]:
        """Send a command with the next exchange. The future has its answer, or a RedisError.

        If it is cancelled before that, the command is not sent. Raises UnicodeEncodeError.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._unsent.append(_Call(hiredis.pack_command(tuple(words)), answer))
        if self._current is None:
            self._begin_soon()
        return answer

    def _begin_soon(self) -> None:
        """Begin at the end of this turn of the loop: calls made until then go with it."""
        if not self._will_begin:
            self._will_begin = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._will_begin = False
        calls, self._unsent = self._unsent[:MOST_CALLS], self._unsent[MOST_CALLS:]
        if not calls:
            return
        self._current = exchange = _Exchange(calls, self._wait, self._ended)
        exchange.limit(OVERTAKEN_S, self._overtake)
        if self._link is not None and self._link.is_sound:
            exchange.run(self._link)
        else:
            used, self._link = self._link, None
            self._connecting.start(self._run_on_another(exchange, used))

    async def _run_on_another(self, exchange: "_Exchange", used: Link | None) -> None:
        """Run it on another connection than the one in use."""
        try:
            if used is not None:
                await self._give_back(used)
            link = await self._connect()
        except Exception as error:
            exchange.fail(error)
            return
        if exchange is self._current:
            self._link = link
        exchange.run(link)

    async def _connect(self) -> Link:
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            return Link(connection)
        except RedisConnectionError:
            await self._pool.release(connection)
            raise

    def _overtake(self, exchange: "_Exchange") -> None:
        exchange.limit(ANSWER_S - OVERTAKEN_S, _time_out)
        self._current = self._link = None
        self._begin()

    def _ended(self, exchange: "_Exchange") -> None:
        if exchange is self._current:
            self._current = None
            self._begin_soon()
        elif exchange.link is not None:  # the others use another one
            self._connecting.start(self._give_back(exchange.link))

    async def _give_back(self, link: Link) -> None:
        link.release()
        if not link.is_sound:
            await link.connection.disconnect(nowait=True)
        await self._pool.release(link.connection)


class _Exchange:
    """Calls that go out together. `ended` is called once all of them have their answers."""

    def __init__(
        self, calls: list[_Call], wait: Wait | None, ended: Callable[["_Exchange"], None]
    ) -> None:
        self.link: Link | None = None
        self._calls = calls
        self._wait = wait
        self._ended = ended
        self._answers: list[Any] = []
        self._timer: asyncio.TimerHandle | None = None

    def limit(self, seconds: float, act: Callable[["_Exchange"], None]) -> None:
        """Call `act` unless the exchange has ended by then; replaces an earlier limit."""
        self._timer = asyncio.get_running_loop().call_later(seconds, act, self)

    def run(self, link: Link) -> None:
        """Send the calls that were not cancelled."""
        self.link = link
        self._calls = [call for call in self._calls if not call.answer.done()]
        packed = [call.packed for call in self._calls]
        if not packed:
            self._end()
        elif self._wait is None:
            link.send(packed, self._answered)
        else:
            words: Any = "WAIT", *self._wait
            link.send([*packed, hiredis.pack_command(words)], self._answered_with_wait)

    def fail(self, error: Exception) -> None:
        """End the exchange: calls without an answer fail with this error."""
        if self.link is not None:
            self.link.break_off(error)
            return
        for call in self._calls:
            _settle(call.answer, error)
        self._end()

    def _answered(self, answer: Any) -> None:
        _settle(self._calls[len(self._answers)].answer, answer)
        self._answers.append(answer)
        if len(self._answers) == len(self._calls):
            self._end()

    def _answered_with_wait(self, answer: Any) -> None:
        if len(self._answers) < len(self._calls):
            self._answers.append(answer)
            return
        error = _replication_error(self._wait, answer) if self._wait else None
        for call, its_answer in zip(self._calls, self._answers, strict=True):
            _settle(
                call.answer,
                its_answer if isinstance(its_answer, RedisError) else error or its_answer,
            )
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._calls, self._answers = [], []  # an idle link refers to its last exchange
        self._ended(self)


def _time_out(exchange: _Exchange) -> None:
    exchange.fail(RedisTimeoutError("no answer"))


def _settle(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _replication_error(wait: Wait, reached: Any) -> RedisError | None:
    """The error for WAIT's answer, None = enough replicas have it.

    If the server refuses WAIT, the call is done all the same: a caller that saw the refusal would repeat the call.
    """
    if isinstance(reached, RedisError) and not isinstance(reached, ResponseError):
        return reached
    if not isinstance(reached, int):
        return NotReplicatedError(f"WAIT: {reached}")
    if reached < wait.replicas:
        return NotReplicatedError(
            f"{reached} of {wait.replicas} replicas have it within {wait.timeout_ms} ms"
        )
    return None
