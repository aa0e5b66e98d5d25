"""Calls to a server, one exchange after the other: calls made during an exchange go with the next one.

A server does one call at a time, whatever the number of connections. The fixed costs of an exchange, system calls and
turns of the loop, exceed the cost of a small call. With `wait` the exchange ends with the replicas' acknowledgement.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple

import hiredis
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.store.servers.connection import Link, Links
from delayqueue.tasks import Tasks

# A call that takes longer has failed, whatever it waited for: a free connection, a connect, an answer.
ANSWER_S: Final = 5.0
# Further calls go with later exchanges. The longest calls take about 30 ms of the store, so one exchange takes a
# second.
MOST_CALLS: Final = 32
# Pipelines for each server: while it is busy with one, we prepare or answer the other. 32 connections push 1.1 times as
# many jobs with two as with one, at the same processor time, and 128 of them 0.95 times; three give no more.
AT_A_TIME: Final = 2
OVERTAKEN_S: Final = 0.1  # after which the next exchange begins on another connection
EARLY_S: Final = 0.001  # by which a timer may be early
NO_ANSWER: Final = "no answer"


class Wait(NamedTuple):
    """How many replicas must have a call, and within which time."""

    replicas: int
    timeout_ms: int


class NotReplicatedError(RedisError):
    """Too few replicas acknowledged a call in time; it is done on the master."""


class StoreCommand(asyncio.Future[Any]):
    """A command for the store, and the future of its answer, which may be a RedisError.

    `packed` is the command as it is sent, `made_s` when it was made, in monotonic seconds; both are set before it is
    sent. If it is cancelled before that, it is not sent.
    """

    __slots__ = ("made_s", "packed")

    made_s: float
    packed: bytes

    def settle(self, answer: Any) -> None:
        """Take the answer, or the error in its place: once each time that it was sent, unless the future is done."""
        if isinstance(answer, Exception):
            self.set_exception(answer)
        else:
            self.set_result(answer)


class Pipeline:
    """A path to one server. It keeps a connection from its first call on, and another one if that fails.

    If an exchange takes long, because the replicas or one connection are silent, the next one overtakes it. One timer,
    which runs while anything is under way, sees to that and to the time that calls have.
    """

    def __init__(self, links: Links, wait: Wait | None = None, answer_s: float = ANSWER_S) -> None:
        """With `wait`, a call is answered once that many replicas have what the connection wrote.

        A call without an answer `answer_s` after it was made, or up to OVERTAKEN_S later, has failed.
        """
        self._links = links
        self._wait = wait
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._unsent: list[StoreCommand | None] = []  # None: it was given up
        self.current: Exchange | None = None  # the one that the next one waits for
        self._overtaken: set[Exchange] = set()
        self._link: Link | None = None  # for the next exchange
        self._timer: asyncio.TimerHandle | None = None
        self._connecting = Tasks("connection to the store")

    def send(self, call: StoreCommand) -> None:
        """Send it with the next exchange; one that begins at the end of this turn of the loop takes all until then."""
        if self.current is None and not self._unsent:
            self._loop.call_soon(self._begin)
        self._unsent.append(call)

    async def aclose(self) -> None:
        """Give up the connections that are being made; `links` closes the others."""
        await asyncio.sleep(0)  # a call of this turn begins
        await self._connecting.cancel()

    def _begin(self) -> None:
        """Begin an exchange, unless one is under way or there is nothing to send."""
        if self.current is not None or not self._unsent:
            return
        calls, self._unsent = self._unsent[:MOST_CALLS], self._unsent[MOST_CALLS:]
        self.current = exchange = Exchange(calls, self._wait, self._ended)
        if self._timer is None:
            self._timer = self._loop.call_later(OVERTAKEN_S, self._look)
        if self._link is not None and self._link.is_sound:
            exchange.run(self._link)
        else:
            if self._link is not None:
                self._links.give_back(self._link)
                self._link = None
            self._connecting.start(self._run_on_another(exchange))

    async def _run_on_another(self, exchange: "Exchange") -> None:
        """Run it on another connection than the one in use."""
        try:
            link = await self._links.take()
        except Exception as error:
            exchange.fail(error)
            return
        if exchange is self.current:
            self._link = link
        exchange.run(link)

    def _look(self) -> None:
        """End what has taken too long, and let the next exchange overtake one that takes long."""
        self._timer = None
        now_s = monotonic() + EARLY_S
        for exchange in [*self._overtaken, *filter(None, [self.current])]:
            _time_out(exchange.calls, now_s - self._answer_s)
            if exchange.began_s <= now_s - ANSWER_S:
                exchange.fail(RedisTimeoutError(NO_ANSWER))
        _time_out(self._unsent, now_s - self._answer_s)
        current = self.current
        if current is not None and current.began_s <= now_s - OVERTAKEN_S:
            self._overtaken.add(current)
            self.current = self._link = None
            self._begin()
        if self._timer is None and (self.current or self._overtaken):
            began_s = self.current.began_s if self.current else now_s
            wait_s = began_s + OVERTAKEN_S - now_s + EARLY_S
            self._timer = self._loop.call_later(wait_s, self._look)

    def _ended(self, exchange: "Exchange") -> None:
        if exchange is self.current:
            self.current = None
            if self._unsent:
                self._loop.call_soon(self._begin)
            return
        self._overtaken.discard(exchange)
        if exchange.link is not None:  # the others use another one
            self._links.give_back(exchange.link)


class Exchange:
    """Calls that go out together. `ended` is called once all of them have their answers."""

    def __init__(
        self,
        calls: list[StoreCommand | None],
        wait: Wait | None,
        ended: Callable[["Exchange"], None],
    ) -> None:
        self.calls = calls  # those whose answer has not come; None: it was given up
        self.began_s: Final = monotonic()
        self.link: Link | None = None
        self._wait = wait
        self._ended = ended
        self._held: list[Any] = []  # answers, until WAIT's is there

    def run(self, link: Link) -> None:
        """Send the calls that were not cancelled."""
        self.link = link
        calls, self.calls = self.calls, []
        packed: list[bytes] = []
        for call in calls:
            if call is not None and not call.done():
                self.calls.append(call)
                packed.append(call.packed)
        if not packed:
            self._ended(self)
            return
        if self._wait is None:
            link.send(packed, self._settle)
        else:
            words: Any = "WAIT", *self._wait
            packed.append(hiredis.pack_command(words))
            link.send(packed, partial(self._hold, self._wait))

    def fail(self, error: Exception) -> None:
        """End the exchange: calls without an answer fail with this error."""
        if self.link is not None:
            self.link.break_off(error)
        else:
            self._settle([error] * len(self.calls))

    def _hold(self, wait: Wait, answers: Sequence[Any]) -> None:
        self._held += answers
        if len(self._held) > len(self.calls):
            *held, reached = self._held
            error = _replication_error(wait, reached)
            self._settle([a if isinstance(a, RedisError) else error or a for a in held])

    def _settle(self, answers: Sequence[Any]) -> None:
        calls, self.calls = self.calls[: len(answers)], self.calls[len(answers) :]
        for call, answer in zip(calls, answers, strict=True):
            if call is not None and not call.done():
                call.settle(answer)
        if not self.calls:
            self._held = []  # an idle link refers to its last exchange
            self._ended(self)


def _time_out(calls: list[StoreCommand | None], made_before_s: float) -> None:
    """Give up the calls that were made before that time."""
    for at, call in enumerate(calls):
        if call is not None and call.made_s <= made_before_s:
            calls[at] = None
            if not call.done():
                call.settle(RedisTimeoutError(NO_ANSWER))


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
