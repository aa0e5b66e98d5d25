"""Joins requests of one kind from all connections in one turn of the loop: one task and one call for all of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from delayqueue.errors import QueueError
from delayqueue.tasks import Tasks

log = logging.getLogger(__name__)

# From this many items on, a call takes no more: about 3 ms of the store's time.
MOST_ITEMS: Final = 500
MOST_BYTES: Final = 1024 * 1024

Item = TypeVar("Item")
Result = TypeVar("Result")

# Called for each of its items, in order, with the result or what was raised.
Answered = Callable[[Sequence[Result | Exception]], None]


class Lane(Generic[Item, Result]):
    """`work` takes items and returns a result, or an exception, for each.

    `bytes_of` an item, if they can be many.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]],
        name: str,
        bytes_of: Callable[[Item], int] = lambda _: 0,
    ) -> None:
        self._work = work
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._bytes_of = bytes_of
        self._items: list[Item] = []
        self._bytes = 0
        self._waiting: list[tuple[int, Answered[Result]]] = []
        self._tasks = Tasks(name)

    def add(self, items: Sequence[Item], answered: Answered[Result]) -> None:
        """Add items to the next call."""
        if not self._items:
            self._loop.call_soon(self._send)
        self._items += items
        self._bytes += sum(map(self._bytes_of, items))
        self._waiting.append((len(items), answered))
        if len(self._items) >= MOST_ITEMS or self._bytes >= MOST_BYTES:
            self._send()

    async def close(self) -> None:
        """Wait for calls in flight."""
        self._send()
        await self._tasks.ended()

    def _send(self) -> None:
        if not self._items:
            return
        items, self._items, self._bytes = self._items, [], 0
        waiting, self._waiting = self._waiting, []
        self._tasks.start(self._run(items, waiting))

    async def _run(self, items: list[Item], waiting: list[tuple[int, Answered[Result]]]) -> None:
        try:
            results = await self._work(items)
        except Exception as error:
            if not isinstance(error, QueueError):
                log.exception("%s failed", self._name)
            results = [error] * len(items)
        at = 0
        for count, answered in waiting:
            try:
                answered(results[at : at + count])
            except Exception:  # a bug, which must not affect others
                log.exception("%s: an answer failed", self._name)
            at += count
