"""Finds the store's servers: Sentinels name a master, the servers of a Cluster tell who has which slots."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from delayqueue.config.values import Address
from delayqueue.store.servers.shards import SLOTS, Span
from delayqueue.tasks import cancel_all

T = TypeVar("T")

MOMENT_S: Final = 0.1  # a working server of a Cluster answers sooner


class _Named(NamedTuple):
    """One Sentinel's answer.

    They sort by trust: a later failover, or one that has just promoted a master, comes last.
    """

    epoch: int
    promoted: bool
    address: Address


class Sentinels:
    """Names the master of one server and its replicas."""

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

    async def _ask(self, address: Address) -> _Named:
        async with self._dial(address) as sentinel:
            try:
                raw = await _asked(sentinel, "SENTINEL", "MASTER", self._name)
            except ResponseError as error:
                raise _said(error, address, f"redis.master_name = {self._name}") from None
            facts = {_text(raw[i]): _text(raw[i + 1]) for i in range(0, len(raw), 2)}
            # while replicas follow the new master, which can take long, only this names it
            host, port = await _asked(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name)
        master = Address(_text(host), int(port))
        promoted = master != Address(facts["ip"], int(facts["port"]))
        return _Named(int(facts["config-epoch"]), promoted, master)


class Cluster:
    """Finds out which server of a Redis Cluster holds which slots."""

    def __init__(self, seeds: Sequence[Address], dial: Callable[[Address], Redis]) -> None:
        self._seeds = seeds
        self._dial = dial
        self._known: set[Address] = set()  # including replicas: they know when their master is lost

    async def find(self) -> list[Span]:
        """The masters' spans, from the first server that answers: any of them may be lost, or lag behind.

        If one is silent for a moment, the next one is asked, too.
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
                    task.add_done_callback(_note)
                    asked.add(task)
                answered, asked = await asyncio.wait(
                    asked,
                    timeout=MOMENT_S if addresses else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in answered:
                    if task.exception() is None:
                        return task.result()
                    errors.append(task.exception())
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
                raise _said(error, address, "redis.cluster") from None
        if not raw:
            raise RedisConnectionError(f"{address} belongs to no Cluster yet")
        self._known = {_place(server, address) for row in raw for server in row[2:]}
        return sorted(Span(first, last, _place(master, address)) for first, last, master, *_ in raw)


async def _asked(redis: Redis, *words: str) -> Any:
    """The raw answer: redis-py parses these only for its own Sentinel and Cluster clients."""
    return await redis.execute_command(*words)  # type: ignore[no-untyped-call]  # redis-py has no types here


def _note(task: asyncio.Task[Any]) -> None:
    """Read its error, which nobody else does once another server has answered: asyncio would log that."""
    if not task.cancelled():
        task.exception()


def _place(server: Sequence[Any], asked: Address) -> Address:
    """The address of a server; an empty or unknown host ("?") means the server that was asked."""
    host = _text(server[0] or b"")
    return Address(asked.host if host in {"", "?"} else host, server[1])


def _said(error: ResponseError, address: Address, what: str) -> RedisError:
    return RedisConnectionError(f"{address} says to {what}: {error}")


def _first_error(answers: Sequence[object]) -> RedisError:
    """The error to show if none gave an answer. Exceptions that are not Redis's are raised: a bug, or TLS files."""
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, RedisError):
            raise answer
    errors = [error for error in answers if isinstance(error, RedisError)]
    return errors[0] if errors else RedisConnectionError("nobody is there to ask")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
