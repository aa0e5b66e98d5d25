"""One server of the store: the ways to it, and its clock, as far as its answers have told it.

A server does one call at a time, whatever the number of connections. The fixed costs of an exchange, system calls and
turns of the loop, exceed the cost of a small call: so calls made during an exchange go with the next one.

A call can reach the store when its client has long been told that nobody knows: the system sends its bytes again once
a broken link has healed, and a frozen store or a proxy passes on what it took in before. Done then, it would undo what
was acknowledged since. So each call says until when it may be done, in the clock of the server that does it, which
refuses it after that (`begin` in _call.lua).
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable
from time import monotonic
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.values import Address
from delayqueue.store.connection import CLOSED, NO_ANSWER, Link, Links, Sendable, Wait, give_up
from delayqueue.tasks import SingleFlight, Tasks

log = logging.getLogger(__name__)

# A call that takes longer has failed, whatever it waited for: a free connection, a connect, an answer.
ANSWER_S: Final = 5.0
# Further calls go with later exchanges. The longest calls take about 30 ms of the store, so one exchange takes a
# second.
MOST_CALLS: Final = 32
# Exchanges under way with a server: while it is busy with one, we prepare or answer the other. 32 connections push 1.1
# times as many jobs with two as with one, at the same processor time, and 128 of them 0.95 times; three give no more.
AT_A_TIME: Final = 2
OVERTAKEN_S: Final = 0.1  # after which the next exchange begins on another connection
MOST_ATTEMPTS: Final = 2  # to connect, at a time
EARLY_S: Final = 0.001  # by which a timer may be early


class Pipeline:
    """The exchanges with one server, of which some are under way at a time, each on a connection of its own.

    It keeps connections from their first call on, and others if those fail. If an exchange takes long, because the
    replicas or one connection are silent, the next one overtakes it on another connection; so does a second attempt to
    connect. One timer, which runs while anything is under way, sees to that and to the time that calls have.
    """

    def __init__(self, links: Links, wait: Wait | None = None, answer_s: float = ANSWER_S) -> None:
        """With `wait`, a call is answered once that many replicas have what the connection wrote.

        A call without an answer `answer_s` after it was made, or up to OVERTAKEN_S later, has failed.
        """
        self._links = links
        self._wait = wait
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Sendable] = []
        self._free: list[Link] = []  # for the next exchanges
        self._busy: list[Link] = []  # whose exchanges the next ones wait for, the earliest first
        self._overtaken: set[Link] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._attempts = 0  # to connect, under way
        self._attempted_s = 0.0  # monotonic, the last one
        self._connecting = Tasks("connection to the store")

    def send(self, call: Sendable) -> None:
        """Send it with the next exchange; one that begins at the end of this turn of the loop takes all until then."""
        if not self._unsent and len(self._busy) < AT_A_TIME:
            self._loop.call_soon(self._begin)
        self._unsent.append(call)

    async def aclose(self) -> None:
        """Give up the connections that are being made; `links` closes the others."""
        await asyncio.sleep(0)  # a call of this turn begins
        await self._connecting.cancel()
        self._fail_unsent(RedisConnectionError(CLOSED))

    def _begin(self) -> None:
        """Begin as many exchanges as there are calls for, and may be under way."""
        while self._unsent and len(self._busy) < AT_A_TIME:
            if self._timer is None:
                self._timer = self._loop.call_later(OVERTAKEN_S, self._look)
            if not self._free:
                if not self._attempts:
                    self._connect()
                return
            link = self._free.pop()
            if not link.is_sound:
                self._links.give_back(link)
                continue
            calls, self._unsent = self._unsent[:MOST_CALLS], self._unsent[MOST_CALLS:]
            self._busy.append(link)
            link.begin(calls, self._wait, self._ended)

    def _connect(self) -> None:
        self._attempts += 1
        self._attempted_s = monotonic()
        self._connecting.start(self._take_link())

    async def _take_link(self) -> None:
        try:
            try:
                link = await self._links.take()
            finally:
                self._attempts -= 1
        except Exception as error:
            if not self._attempts and not self._busy:  # nobody else takes them
                self._fail_unsent(error)
        else:
            self._go_on_with(link)

    def _go_on_with(self, link: Link) -> None:
        """Use a link that is free now, if calls wait for one."""
        if self._unsent and len(self._free) + len(self._busy) < AT_A_TIME:
            self._free.append(link)
            self._loop.call_soon(self._begin)
        else:  # they have another one, or have given up
            self._links.give_back(link)

    def _fail_unsent(self, error: Exception) -> None:
        calls, self._unsent = self._unsent, []
        give_up(calls, error)

    def _look(self) -> None:
        """End what has taken too long, and let the next exchange overtake one that takes long."""
        self._timer = None
        now_s = monotonic() + EARLY_S
        self._end_late(now_s)
        if self._busy and self._busy[0].began_s <= now_s - OVERTAKEN_S:
            self._overtaken.add(self._busy.pop(0))
            self._begin()
        elif 0 < self._attempts < MOST_ATTEMPTS and self._attempted_s <= now_s - OVERTAKEN_S:
            self._connect()
        if self._timer is None and (self._busy or self._overtaken or self._unsent):
            began_s = self._busy[0].began_s if self._busy else now_s
            wait_s = began_s + OVERTAKEN_S - now_s + EARLY_S
            self._timer = self._loop.call_later(wait_s, self._look)

    def _end_late(self, now_s: float) -> None:
        """Fail the calls whose time is over, and close connections that are silent."""
        made_before_s = now_s - self._answer_s
        for link in [*self._overtaken, *self._busy]:
            link.time_out(made_before_s)
            if link.began_s <= now_s - ANSWER_S:
                link.break_off(RedisTimeoutError(NO_ANSWER))
        in_time = [call for call in self._unsent if call.made_s > made_before_s]
        late = [call for call in self._unsent if call.made_s <= made_before_s]
        self._unsent = in_time
        give_up(late, RedisTimeoutError(NO_ANSWER))

    def _ended(self, link: Link) -> None:
        if link in self._busy:
            self._busy.remove(link)
            self._free.append(link)
            if self._unsent:
                self._loop.call_soon(self._begin)
            return
        self._overtaken.discard(link)
        self._go_on_with(link)  # other connections may never be made


# Connections that its pipelines hold, with and without WAIT; while exchanges take long, they use more.
HELD: Final = 2 * AT_A_TIME

REFUSAL: Final = re.compile(r"LATE (\d+)")  # the start of the scripts' error, with the store's time
# What is known of a clock is wrong by what an answer took, so a smaller change may be none.
JUMP_MS: Final = ANSWER_S * 1000


def told_by(refusal: Exception) -> int | None:
    """The store's time in ms, if it refused a call because the call's time was over; None for any other error."""
    found = REFUSAL.match(str(refusal))
    return int(found[1]) if found else None


def asleep_s() -> float:
    """For how long this machine has slept since it was started: the event loop's clock stands still meanwhile."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic()
    except (AttributeError, OSError):  # only Linux has that clock
        return 0.0


class Clock:
    """How far a server's clock is ahead of the event loop's, at most.

    Each answer tells it: the server read its clock after the call was made, so it cannot be further ahead than that.
    It may be less far ahead, by what the call took. So a call that is on time is never refused, and one that is late is
    refused at the latest that much later.
    """

    def __init__(self, asleep: Callable[[], float] = asleep_s) -> None:
        self._ahead_ms: float | None = None
        self._before_ms: float | None = None  # what the next answer is compared with
        self._asleep = asleep
        self._asleep_s = asleep()
        self.jumps = 0

    def take_over(self, former: "Clock") -> None:
        """Tell of a jump if this clock differs from that of another server, whose jobs this one may have taken over."""
        if former._before_ms is not None:
            self._before_ms, self._asleep_s = former._before_ms, former._asleep_s

    def heard(self, now_ms: int, asked_s: float) -> None:
        """The answer to a call that was made at the loop's time `asked_s` has the server's time."""
        before_ms = self._before_ms
        self._ahead_ms = self._before_ms = now_ms - asked_s * 1000
        if before_ms is not None and abs(self._ahead_ms - before_ms) > JUMP_MS:
            self._tell((self._ahead_ms - before_ms) / 1000)

    def _tell(self, jump_s: float) -> None:
        """Tell of a jump, unless it was this machine that slept."""
        before_s, self._asleep_s = self._asleep_s, self._asleep()
        jump_s -= self._asleep_s - before_s
        if abs(jump_s) * 1000 > JUMP_MS:
            self.jumps += 1
            log.warning("the store's clock has jumped by %+.1f s", jump_s)

    def at_ms(self, loop_s: float) -> int:
        """The server's time at a time of the loop, at the latest; long ago if nothing was heard of it."""
        return 0 if self._ahead_ms is None else math.ceil(loop_s * 1000 + self._ahead_ms)


class Server:
    """A server at an address, or at any that `redis` is connected to."""

    def __init__(self, address: Address, redis: Redis, answer_s: float) -> None:
        """A call that takes longer than `answer_s` has failed."""
        self.address: Final = address
        self.redis: Final = redis
        self.clock: Final = Clock()
        self.loads: Final = SingleFlight[object]()  # of functions and scripts
        self.refused_until_s = 0.0  # monotonic: it refuses functions; 0 = it never has
        self._answer_s = answer_s
        pool = redis.connection_pool
        # A call waits for a connection for less time than it has: its error then says that there was none, and does not
        # blame the server.
        self._links = Links(pool, HELD + pool.max_connections - 1, answer_s / 2)
        self.pipelines: Final[dict[Wait | None, Pipeline]] = {}

    def pipeline(self, wait: Wait | None) -> Pipeline:
        """Make the pipeline of the calls that are answered once `wait` is over."""
        pipeline = self.pipelines[wait] = Pipeline(self._links, wait, self._answer_s)
        return pipeline

    async def drop_idle(self) -> None:
        """Close the idle connections: the server is silent, or a replica now, and the next call would suffer."""
        self._links.drop_free()
        pool = self.redis.connection_pool
        # taken out of the pool meanwhile: a question that took one of them would fail
        (idle, _), *_ = pool.get_connection_count()
        taken = [pool.get_available_connection() for _ in range(idle)]  # type: ignore[no-untyped-call]  # redis-py has no types here
        try:
            await asyncio.gather(*(connection.disconnect() for connection in taken))
        finally:
            for connection in taken:
                await pool.release(connection)

    async def aclose(self) -> None:
        """Close all connections."""
        for pipeline in self.pipelines.values():
            await pipeline.aclose()
        await self._links.aclose()
        await self.redis.aclose()
