"""Which server holds which bucket: a fixed one, the master that Sentinels name, or the masters of a Cluster.

redis-py's own RedisCluster is not used: a server that hangs or is down stops the calls to all others while it reads the
topology again, ASKING goes out on another connection than its call, and an exhausted pool fails at once.
"""

import asyncio
import logging
import random
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self, TypeVar

from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    MovedError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.values import Address
from delayqueue.store.connection import DEMOTED, NO_ANSWER
from delayqueue.store.server import ANSWER_S, Server
from delayqueue.tasks import at_most, batched, cancel_all, read_error

log = logging.getLogger(__name__)

SLOTS: Final = 16384
REFRESH_S: Final = 5.0  # how often the topology is read without any doubt
LEAST_PAUSE_S: Final = 0.2  # between two reads, however much it is doubted
# A server that holds nothing any more is closed after this time: then its last calls have been answered.
CLOSED_AFTER_S: Final = 15.0
MOST_REDIRECTIONS: Final = 4  # of one call
REDIRECTED_IN_A_CIRCLE: Final = "servers send each other the calls for a bucket"
NOWHERE: Final = Address("", 0)
UNNAMED: Final = "?"  # the host of a server that announces no name, though cluster-preferred-endpoint-type asks for one

T = TypeVar("T")


class Span(NamedTuple):
    """The slots from `first` to `last`, inclusive, are on the server at `address`."""

    first: int
    last: int
    address: Address


class Servers:
    """The servers, with a connection pool each: trouble with one of them affects only the calls to it."""

    def __init__(
        self,
        topology: "Sentinels | Cluster | None",
        dial: Callable[[Address], Redis],
        ask: Callable[[Address], Redis],
        spans: Sequence[Span],
        answer_s: float = ANSWER_S,
    ) -> None:
        """`dial` makes a client, and `ask` one for a single question to any server, also to a replica.

        `spans` is what is known already; without a `topology` to ask it is everything. A call that takes longer than
        `answer_s` has failed.
        """
        self.ask = ask
        self.answer_s: Final = answer_s
        self._topology = topology
        self._dial = dial
        self._spans = list(spans)
        self._slots: dict[str, int] = {}
        self._moved: dict[int, Address] = {}  # redirections since the topology was read
        # By key: the servers that can be called at once. A call whose key is not in it asks reach().
        self.known: Final[dict[str, Server]] = {}
        self._servers: dict[Address, Server] = {}
        self._retired: list[tuple[float, Server]] = []  # since when, the oldest first; to be closed
        self._silent: set[Address] = set()  # servers with a timeout since the topology was read
        self._reading = asyncio.Lock()
        self._is_doubted = asyncio.Event()
        self.changed = asyncio.Event()  # set, and replaced, by announce_change

    @classmethod
    def one(
        cls, redis: Redis, ask: Callable[[Address], Redis] | None = None, answer_s: float = ANSWER_S
    ) -> Self:
        """All buckets on one server. `ask` makes clients for its replicas, None = it has none."""
        return cls(
            None, lambda _: redis, ask or (lambda _: redis), [Span(0, SLOTS - 1, NOWHERE)], answer_s
        )

    def of(self, key: str) -> Redis:
        """The client of the server that holds the key.

        Raises ClusterDownError if no server does, ConnectionError if nobody has told which one does.
        """
        return self._server(self._address(key)).redis

    def clients(self) -> dict[Address, Redis]:
        """The clients of all servers that hold slots."""
        addresses = dict.fromkeys(span.address for span in self._spans)
        return {address: self._server(address).redis for address in addresses}

    def clock_jumps(self) -> int:
        """How often the clock of any of them has jumped."""
        return sum(self._server(address).clock.jumps for address in self.clients())

    async def replicas_of(self, master: Redis) -> int | None:
        """How many replicas could take its place, including unavailable ones; None = only the master could tell."""
        return await self._topology.replicas(master) if self._topology else None

    def groups(self, keys: Iterable[str]) -> dict[Redis, list[str]]:
        """The keys grouped by the server that holds them; keys without one are left out."""
        groups: dict[Redis, list[str]] = {}
        for key in keys:
            with suppress(ClusterDownError, RedisConnectionError):
                groups.setdefault(self.of(key), []).append(key)
        return groups

    async def call(self, key: str, send: Callable[[Redis], Awaitable[T]]) -> T:
        """Send to the server that holds the key, and follow its redirections.

        Raises RedisError if the server refuses, its TimeoutError if the answer takes too long.
        """
        server: Server | None = None
        try:
            async with asyncio.timeout(self.answer_s):
                for _ in range(MOST_REDIRECTIONS):
                    server = await self.reach(key)
                    try:
                        return await send(server.redis)
                    except RedisError as error:
                        await self.learn(error, server)
                    server = None
                raise ClusterDownError(REDIRECTED_IN_A_CIRCLE)
        except TimeoutError:
            silence = RedisTimeoutError(NO_ANSWER)
            if server is not None:
                await self.learn(silence, server)
            raise silence from None

    async def reach(self, key: str) -> Server:
        """The server that holds the key. Raises RedisError as of() does.

        After a timeout, the next call to that server waits until the topology has been read: another server may have
        taken its place by then, and the call would wait as long for nothing.
        """
        address = self._address(key)
        if address in self._silent:
            await self._look_for(address)
            address = self._address(key)
        server = self._server(address)
        if address not in self._silent:
            self.known[key] = server
        return server

    async def learn(self, error: RedisError, server: Server) -> None:
        """Learn where keys are from the error of a call to this server.

        Returns if the call has not been done and may go to another server. Otherwise raises what its caller sees: after
        any other error nothing may be sent again. While a slot is moving from one server to another (ASK, TRYAGAIN),
        its calls fail: half of the bucket's keys would be missing.
        """
        if isinstance(error, MovedError):
            if self._topology is None:  # it is one server of a Cluster, whose others are unknown
                raise error
            if error.host == UNNAMED:  # the topology tells more
                self._suspect(server.address)
            else:
                self._follow(error, server.address)
            return
        if isinstance(error, AskError):
            raise TryAgainError(f"slot {error.slot_id} is on its way to another server") from error
        if isinstance(error, RedisTimeoutError):
            self._suspect(server.address)
        else:
            self._is_doubted.set()
        if isinstance(error, (RedisTimeoutError, *DEMOTED)):
            await server.drop_idle()
        raise error

    def announce_change(self) -> None:
        """Buckets have another server, or there are other buckets."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def refresh(self) -> None:
        """Read the topology. Raises RedisError if nobody knows it."""
        if self._topology is None:
            return
        async with self._reading:
            await self._read(self._topology)

    async def watch(self) -> None:
        """Follow the topology until cancelled."""
        while True:
            self._is_doubted.clear()
            async with at_most(REFRESH_S):
                await self._is_doubted.wait()
            try:
                await self.refresh()
            except RedisError as error:
                log.warning("cannot find out where the store is: %s", error)
            await asyncio.sleep(LEAST_PAUSE_S)

    async def aclose(self) -> None:
        """Close all connections."""
        self._retire(set(self._servers))
        await self._close_retired(0)

    async def _look_for(self, silent: Address) -> None:
        """Read the topology, unless that was done since the server fell silent."""
        async with self._reading:
            if self._topology and silent in self._silent:
                with suppress(RedisError):
                    await self._read(self._topology)

    async def _read(self, topology: "Sentinels | Cluster") -> None:
        await self._close_retired(CLOSED_AFTER_S)
        silent = set(self._silent)
        try:
            spans = await topology.find()
        finally:
            self._silent -= silent
        differs = self._spans != spans or bool(self._moved)
        self._spans = spans
        self._moved = {}
        if differs:
            self.known.clear()
            log.info("the store: %s", ", ".join(map(str, self.clients())))
            self.announce_change()
            self._retire(self._servers.keys() - self.clients().keys())

    def _address(self, key: str) -> Address:
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = key_slot(key.encode())
        if slot in self._moved:
            return self._moved[slot]
        at = bisect_right(self._spans, slot, key=lambda span: span.first) - 1
        if at < 0 or self._spans[at].last < slot:
            self._is_doubted.set()
            if not self._spans:
                raise RedisConnectionError("nobody has told where the store is")
            raise ClusterDownError(f"no server holds slot {slot}")
        return self._spans[at].address

    def _server(self, address: Address) -> Server:
        server = self._servers.get(address)
        if server is None:
            server = Server(address, self._dial(address), self.answer_s)
            for former in self._servers.values():
                server.clock.take_over(former.clock)
            self._servers[address] = server
        return server

    def _suspect(self, address: Address) -> None:
        if self._topology:
            self._silent.add(address)
            self.known.clear()
            self._is_doubted.set()

    def _follow(self, moved: MovedError, asked: Address) -> None:
        """Follow a redirection. An empty host means that of the server that was asked."""
        self._moved[moved.slot_id] = Address(moved.host or asked.host, moved.port)
        self.known.clear()
        self._is_doubted.set()
        self.announce_change()

    def _retire(self, addresses: Iterable[Address]) -> None:
        now = asyncio.get_running_loop().time()
        self._retired += [(now, self._servers.pop(address)) for address in addresses]

    async def _close_retired(self, after_s: float) -> None:
        """Close the connections to servers retired this long ago; if cancelled here, the next call does the rest."""
        until_s = asyncio.get_running_loop().time() - after_s
        while self._retired and self._retired[0][0] <= until_s:
            await self._retired[0][1].aclose()
            del self._retired[0]


class _NamedMaster(NamedTuple):
    """The master that a Sentinel names.

    They sort by trust: a later failover, or one that has just promoted a master, comes last.
    """

    epoch: int
    promoted: bool
    address: Address


class Sentinels:
    """Names the master of one server and its replicas. Raises RedisError if nobody knows."""

    def __init__(
        self, addresses: Sequence[Address], name: str, dial: Callable[[Address], Redis]
    ) -> None:
        self._addresses = addresses
        self._name = name
        self._dial = dial

    async def find(self) -> list[Span]:
        """All slots on the master. All Sentinels are asked: one that was cut off may name an old master."""
        return [Span(0, SLOTS - 1, max(await self._all(self._ask)).address)]

    async def replicas(self, master: Redis) -> int:  # noqa: ARG002  # they know one master
        """The highest number that any Sentinel knows: they never forget one by themselves."""
        return max(await self._all(self._count))

    async def _all(self, ask: Callable[[Address], Awaitable[T]]) -> list[T]:
        """The answers of all Sentinels that give one. Raises RedisError if none does."""
        found = await asyncio.gather(*map(ask, self._addresses), return_exceptions=True)
        answers = [answer for answer in found if not isinstance(answer, BaseException)]
        if not answers:
            raise _first_error(found)
        return answers

    async def _count(self, address: Address) -> int:
        async with self._dial(address) as sentinel:
            return len(await _asked(sentinel, "SENTINEL", "REPLICAS", self._name))

    async def _ask(self, address: Address) -> _NamedMaster:
        async with self._dial(address) as sentinel:
            try:
                raw = await _asked(sentinel, "SENTINEL", "MASTER", self._name)
            except ResponseError as error:
                raise _refusal(error, address, f"redis.master_name = {self._name}") from None
            facts = {_text(name): _text(fact) for name, fact in batched(raw, 2)}
            # while replicas follow the new master, which can take long, only this names it
            host, port = await _asked(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)
        master = Address(_text(host), int(port))
        promoted = master != Address(facts["ip"], int(facts["port"]))
        return _NamedMaster(int(facts["config-epoch"]), promoted, master)


HEAD_START_S: Final = 0.1  # before the next server is asked, too; a working one answers sooner


class CutOffError(RedisConnectionError):
    """A server of a Cluster that is cut off from the others, or all of them, tells what it knew."""

    def __init__(self, spans: list[Span]) -> None:
        super().__init__("the Cluster is down")
        self.spans: Final = spans


class Cluster:
    """Finds out which server of a Redis Cluster holds which slots. Raises RedisError if nobody knows."""

    def __init__(self, seeds: Sequence[Address], dial: Callable[[Address], Redis]) -> None:
        self._seeds = seeds
        self._dial = dial
        self._known: set[Address] = set()  # including replicas: they know when their master is lost

    async def find(self) -> list[Span]:
        """The masters' spans, from the first server that answers: any of them may be lost, or lag behind.

        If one is silent for a moment, the next one is asked, too; one that is cut off counts if no other answers.
        """
        addresses = list(self._known | set(self._seeds))
        random.shuffle(addresses)
        asked: set[asyncio.Task[list[Span]]] = set()
        errors: list[object] = []
        try:
            while addresses or asked:
                if addresses:
                    address = addresses.pop()
                    task = asyncio.create_task(self._ask(address), name=f"ask {address}")
                    task.add_done_callback(read_error)
                    asked.add(task)
                answered, asked = await asyncio.wait(
                    asked,
                    timeout=HEAD_START_S if addresses else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in answered:
                    if task.exception() is None:
                        return task.result()
                    errors.append(task.exception())
            for error in errors:
                if isinstance(error, CutOffError):
                    return error.spans
            raise _first_error(errors)
        finally:
            await cancel_all(asked)

    async def replicas(self, master: Redis) -> int:
        """How many replicas the master knows, including failed ones."""
        myself = _text(await _asked(master, "CLUSTER", "MYID"))
        return len(await _asked(master, "CLUSTER", "REPLICAS", myself))

    async def _ask(self, address: Address) -> list[Span]:
        async with self._dial(address) as redis:
            try:
                raw = await _asked(redis, "CLUSTER", "SLOTS")
            except ResponseError as error:
                raise _refusal(error, address, "redis.cluster") from None
            state = b""
            with suppress(ResponseError):  # our user may not ask that
                state = await _asked(redis, "CLUSTER", "INFO")
        if not raw:
            raise RedisConnectionError(f"{address} belongs to no Cluster yet")
        self._known = {_place(server, address) for row in raw for server in row[2:]}
        spans = sorted(
            Span(first, last, _place(master, address)) for first, last, master, *_ in raw
        )
        if b"cluster_state:fail" in state:
            raise CutOffError(spans)
        return spans


async def _asked(redis: Redis, *words: str) -> Any:
    """The raw answer: redis-py parses these only for its own Sentinel and Cluster clients."""
    return await redis.execute_command(*words)  # type: ignore[no-untyped-call]  # redis-py has no types here


def _place(server: Sequence[Any], asked: Address) -> Address:
    """The address of a server in an answer to CLUSTER SLOTS; an empty host means that of the server that was asked."""
    host, port, _, *more = server
    if host == UNNAMED.encode():
        facts = more[0] if more else []
        host = dict(zip(facts[::2], facts[1::2], strict=True)).get(b"ip")
    return Address(_text(host or b"") or asked.host, port)


class RefusedError(RedisConnectionError):
    """A server answers that it cannot tell where the store is."""


def _refusal(error: ResponseError, address: Address, what: str) -> RedisError:
    return RefusedError(f"{address} says to {what}: {error}")


def _first_error(answers: Sequence[object]) -> RedisError:
    """The error to show if none gave an answer. Exceptions that are not Redis's are raised: a bug."""
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, RedisError):
            raise answer
    errors = [error for error in answers if isinstance(error, RedisError)]
    # a server's refusal explains more than a server that cannot be reached
    return min(
        errors,
        key=lambda error: not isinstance(error, (RefusedError, AuthenticationError)),
        default=RedisConnectionError("nobody is there to ask"),
    )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
