"""Batching without a timer: what arrives while a call is in flight goes together in the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from delayqueue.errors import Unavailable

BATCH_LIMIT = (
    500  # a call takes no more requests once it holds so many items: about 3 ms of the store's time
)
# nor one with which its items would have more bytes than this: about 15 ms
BATCH_BYTES = 4 * 1024 * 1024

# Who has waited for so long behind a call that fails hears of it too: behind the next one, he would wait twice as long.
PATIENCE_S = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Request(NamedTuple, Generic[Item, Result]):
    items: Sequence[Item]
    future: asyncio.Future[Sequence[Result]]
    since: float  # loop time


class Batcher(Generic[Item, Result]):
    """Joins concurrent requests into calls, one in flight at a time (two were slower, measured).

    `call` takes items and returns one result each, in their order; what it raises, every request in it gets. But an
    item that cannot be written as UTF-8, so that nothing was sent, costs its own request only. `bytes_of` an item, if
    they can be many.
    """

    def __init__(
        self,
        call: Callable[[list[Item]], Awaitable[Sequence[Result]]],
        name: str,
        bytes_of: Callable[[Item], int] = lambda _: 0,
    ) -> None:
        self._call = call
        self._bytes_of = bytes_of
        self._name = name
        self._waiting: list[_Request[Item, Result]] = []
        self._task: asyncio.Task[None] | None = None

    def submit(self, items: Sequence[Item]) -> asyncio.Future[Sequence[Result]]:
        """Send `items` with the next call. The future has their results; cancelling it does not stop the call."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[Result]] = loop.create_future()
        self._waiting.append(_Request(items, future, loop.time()))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self._name)
        return future

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._task = None

    def _take(self) -> list[_Request[Item, Result]]:
        size = size_bytes = 0
        for number, request in enumerate(self._waiting):
            size_bytes += sum(map(self._bytes_of, request.items))
            if number and (size >= BATCH_LIMIT or size_bytes > BATCH_BYTES):
                taken, self._waiting = self._waiting[:number], self._waiting[number:]
                return taken
            size += len(request.items)
        taken, self._waiting = self._waiting, []
        return taken

    async def _send(self, requests: list[_Request[Item, Result]]) -> None:
        try:
            results = await self._call([item for request in requests for item in request.items])
        except BaseException as error:
            if isinstance(error, UnicodeEncodeError) and len(requests) > 1:
                middle = len(requests) // 2
                await self._send(requests[:middle])
                await self._send(requests[middle:])
                return
            self._fail(requests, error)
            if not isinstance(error, Exception):
                raise
            return
        at = 0
        for items, future, _ in requests:
            if not future.done():
                future.set_result(results[at : at + len(items)])
            at += len(items)

    def _fail(self, requests: list[_Request[Item, Result]], error: BaseException) -> None:
        if isinstance(error, Unavailable):
            requests += self._take_impatient()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(error)

    def _take_impatient(self) -> list[_Request[Item, Result]]:
        last = asyncio.get_running_loop().time() - PATIENCE_S
        taken = [request for request in self._waiting if request.since < last]
        del self._waiting[: len(taken)]  # they are in the order of arrival
        return taken
