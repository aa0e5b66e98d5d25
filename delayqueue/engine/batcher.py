"""Batching without a timer: what arrives while a call is in flight goes together in the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

BATCH_LIMIT = (
    500  # a call takes no more requests once it holds so many items: about 3 ms of the store's time
)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Joins concurrent requests into calls, one in flight at a time (two were slower, measured).

    `call` takes items and returns one result each, in their order; what it raises, every request in it gets.
    """

    def __init__(
        self, call: Callable[[list[Item]], Awaitable[Sequence[Result]]], name: str
    ) -> None:
        self._call = call
        self._name = name
        self._waiting: list[tuple[Sequence[Item], asyncio.Future[Sequence[Result]]]] = []
        self._task: asyncio.Task[None] | None = None

    def submit(self, items: Sequence[Item]) -> asyncio.Future[Sequence[Result]]:
        """Send `items` with the next call. The future has their results; cancelling it does not stop the call."""
        future: asyncio.Future[Sequence[Result]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self._name)
        return future

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._task = None

    def _take(self) -> list[tuple[Sequence[Item], asyncio.Future[Sequence[Result]]]]:
        size = 0
        for number, (items, _) in enumerate(self._waiting, 1):
            size += len(items)
            if size >= BATCH_LIMIT:
                taken, self._waiting = self._waiting[:number], self._waiting[number:]
                return taken
        taken, self._waiting = self._waiting, []
        return taken

    async def _send(
        self, requests: list[tuple[Sequence[Item], asyncio.Future[Sequence[Result]]]]
    ) -> None:
        try:
            results = await self._call([item for items, _ in requests for item in items])
        except BaseException as error:
            for _, future in requests:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        at = 0
        for items, future in requests:
            if not future.done():
                future.set_result(results[at : at + len(items)])
            at += len(items)
