"""The connections of a process: how many there are, which of those beyond the limit it serves, and how they end."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Final, Protocol, cast

from delayqueue.errors import Text
from delayqueue.metrics import REFUSED, Metrics
from delayqueue.net.each_minute import EachMinute
from delayqueue.net.loopback import is_loopback
from delayqueue.tasks import at_most

log = logging.getLogger(__name__)

FULL: Final = Text(
    "连接过多（max_connections），请稍后再试",
    "too many connections (max_connections); try again later",
)
FOR_THIS_MACHINE: Final = 16  # places beyond the limit
FOR_OPERATORS: Final = 16  # beyond those, for exempt requests (Exemption)
UNDECIDED: Final = 32  # connections whose first request is awaited
LEAVING: Final = 32  # refused connections whose clients may still be reading why
BEYOND: Final = FOR_THIS_MACHINE + FOR_OPERATORS + UNDECIDED + LEAVING  # all of them

DECIDE_S: Final = 2.0  # for the head of a first request to arrive
LINGER_S: Final = 1.0  # for a client to read why it is refused
SPARED_S: Final = 1.0  # after its last answer, a connection is not closed for others
ON_THE_WAY_S: Final = 0.2  # when the server stops, for requests that were sent already


class Served(Protocol):
    """A connection that is served."""

    def close_if_idle(self) -> bool:
        """Close the connection, unless it has something to do. Returns whether nothing was left to send."""

    def abort(self) -> None:
        """Close at once."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """Which first requests are served beyond the limit.

    A head ends with `end` and has at most `most_bytes`. `serve` returns the protocol that answers the request and then
    closes, and counts it (`ConnectionLimit.opened`); None = it is refused.
    """

    end: bytes
    most_bytes: int
    serve: Callable[[bytes], asyncio.Protocol | None]


@dataclass(frozen=True, slots=True)
class ClientProtocol:
    """How the clients of one protocol are served: `make` makes a connection, `refusal` is sent to the others."""

    make: Callable[[], asyncio.Protocol]
    refusal: Callable[[], bytes]
    exemption: Exemption | None = None


class Idle(Protocol):
    """A connection that waits for a request."""

    def give_way(self) -> bool:
        """Close it, unless something is left to send. Returns whether it closes."""


class ConnectionLimit:
    """The connections of this process, over all protocols; it serves at most `most`, 0 = no limit.

    Beyond it, the connection that has been idle for longest makes room for a new one. If none is idle, some places are
    kept for clients on this machine, and some for exempt requests: so an operator can still find out why clients are
    refused. What is closed or refused is counted, and logged once a minute.
    """

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most = most
        self._metrics = metrics
        self._closed = EachMinute(self._tell_closed)
        self._refused = EachMinute(self._tell_refused)
        # since when each waits for a request, the longest first; of a dict, the first is found slowly if those before
        # it were removed
        self.idle: OrderedDict[Idle, float] = OrderedDict()
        self._undecided: dict[ExcessConnection, None] = {}  # the oldest first
        self._leaving: dict[ExcessConnection, None] = {}  # likewise
        self.served: set[Served] = set()
        self._one_has_ended = asyncio.Event()

    @property
    def count(self) -> int:
        """How many connections are served."""
        return len(self.served)

    def opened(self, connection: Served) -> None:
        """Count a connection that begins."""
        self.served.add(connection)

    def closed(self, connection: Served) -> None:
        """Count a connection that has ended."""
        self.served.discard(connection)
        self._one_has_ended.set()

    async def finish(self, within_s: float) -> None:
        """Close idle connections, once what is on its way has come, and wait up to `within_s` for the end of others."""
        if self.served:
            await asyncio.sleep(ON_THE_WAY_S)
        last = {each for each in list(self.served) if not each.close_if_idle()}
        async with at_most(within_s):
            await self._ended(last)

    async def abort(self) -> None:
        """Close all connections at once, but none whose TLS handshake ends only now."""
        last = set(self.served)
        for each in last:
            each.abort()
        await self._ended(last)

    async def _ended(self, connections: Set[Served]) -> None:
        while not self.served.isdisjoint(connections):
            self._one_has_ended.clear()
            await self._one_has_ended.wait()

    def has_room(self, kept: int = 0) -> bool:
        """Whether one more connection may be served, if it may have the next `kept` places beyond the limit, too."""
        return not 0 < self._most <= self.count - kept

    def make_room(self) -> bool:
        """Close the connection that has been idle for longest, but none that was just used. Returns whether one was."""
        now_s = asyncio.get_running_loop().time()
        while self.idle:
            connection, since_s = next(iter(self.idle.items()))
            if since_s >= now_s - SPARED_S:
                break
            del self.idle[connection]
            if connection.give_way():
                self._metrics.count(REFUSED, "idle")
                self._closed.happened()
                return True
            self.idle[connection] = now_s  # it may, once its answer is sent
        return False

    def limited(self, clients: ClientProtocol, *, tls: bool) -> Callable[[], asyncio.Protocol]:
        """What makes the protocol of each connection of these clients.

        With TLS, others may take the room while its handshake is under way.
        """
        return lambda: (
            clients.make() if not tls and self.has_room() else ExcessConnection(self, clients)
        )

    def await_request(self, connection: "ExcessConnection") -> None:
        """Note that this connection's first request decides. If too many are undecided, the oldest one is refused.

        So a storm of clients that send nothing leaves room for one that sends at once.
        """
        self._undecided[connection] = None
        if len(self._undecided) > UNDECIDED:
            next(iter(self._undecided)).refuse()

    def decided(self, connection: "ExcessConnection") -> None:
        """Stop waiting for the first request of this connection."""
        self._undecided.pop(connection, None)

    def note_refusal(self, connection: "ExcessConnection") -> None:
        """Note that this connection is being sent its refusal. If there are too many, the oldest one is cut off."""
        self._metrics.count(REFUSED, "connections")
        self._refused.happened()
        self._leaving[connection] = None
        if len(self._leaving) > LEAVING:
            next(iter(self._leaving)).abort()

    def forget(self, connection: "ExcessConnection") -> None:
        """Forget a connection that has ended, or is about to."""
        self.decided(connection)
        self._leaving.pop(connection, None)

    def _tell_closed(self, count: int) -> None:
        log.warning(
            "closed %d idle connections, to accept others: a process has at most %d (max_connections, or open files)",
            count,
            self._most,
        )

    def _tell_refused(self, count: int) -> None:
        log.warning(
            "refused %d connections: a process has at most %d (max_connections, the limit of open files)",
            count,
            self._most,
        )


class ExcessConnection(asyncio.Protocol):
    """A connection that may be beyond the limit: then it is served or refused by its address or its first request."""

    _transport: asyncio.Transport

    def __init__(self, limit: ConnectionLimit, clients: ClientProtocol) -> None:
        self._limit = limit
        self._clients = clients
        self._head = b""
        self._timer: asyncio.TimerHandle | None = None  # until it is refused, or cut off
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve it if there is room, an idle one makes some, or it comes from this machine."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        kept = FOR_THIS_MACHINE if is_loopback(peer[0] if peer else None) else 0
        if self._limit.has_room() or self._limit.make_room() or self._limit.has_room(kept):
            self._become(self._clients.make())
        elif self._clients.exemption is None:
            self.refuse()
        else:
            self._timer = asyncio.get_running_loop().call_later(DECIDE_S, self.refuse)
            self._limit.await_request(self)

    def data_received(self, data: bytes) -> None:
        """Take part of the first request's head, or all of it."""
        exemption = self._clients.exemption
        if self._is_refused or exemption is None:
            return
        self._head += data
        if exemption.end not in self._head:
            if len(self._head) > exemption.most_bytes:
                self.refuse()
            return
        has_room = self._limit.has_room(FOR_THIS_MACHINE + FOR_OPERATORS)
        protocol = exemption.serve(self._head) if has_room else None
        if protocol is None:
            self.refuse()
        else:
            self._become(protocol)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  # the protocol's signature
        """The client is gone."""
        self._stop_waiting()
        self._limit.forget(self)

    def refuse(self) -> None:
        """Send the refusal. Closing at once would reset a connection whose client sends, and hide the refusal."""
        self._stop_waiting()
        self._limit.decided(self)
        self._head, self._is_refused = b"", True
        self._transport.write(self._clients.refusal())
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, self.abort)
        self._limit.note_refusal(self)

    def abort(self) -> None:
        """Close at once."""
        self._stop_waiting()
        self._limit.forget(self)
        self._transport.abort()

    def _become(self, protocol: asyncio.Protocol) -> None:
        """Hand the connection to this protocol, with the bytes that have arrived."""
        self._stop_waiting()
        self._limit.decided(self)
        self._transport.set_protocol(protocol)  # before that is told of what TLS has yet to send
        protocol.connection_made(self._transport)
        if self._head:
            protocol.data_received(self._head)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
