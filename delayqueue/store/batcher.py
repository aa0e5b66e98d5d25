"""Batching without a timer: requests that arrive while calls are in flight share the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from delayqueue.errors import Unavailable
from delayqueue.tasks import Tasks

# A call with this many items takes no further request: about 3 ms of the store's time.
BATCH_LIMIT = 500
# Nor does a request join a call whose items would then exceed this: about 15 ms.
BATCH_BYTES = 4 * 1024 * 1024

# A request that has waited this long behind a failing call fails, too: the next call would take as long again.
PATIENCE_S = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Request(Generic[Item, Result]):
    __slots__ = ("future", "items", "results", "since")

    def __init__(
        self,
        items: Sequence[Item],
        future: asyncio.Future[Sequence[Result | Unavailable]],
        since: float,
    ) -> None:
        self.items = items
        self.future = future
        self.since = since  # loop time
        self.results: list[Result | Unavailable] = []

    @property
    def left(self) -> Sequence[Item]:
        """The items without a result so far."""
        return self.items[len(self.results) :] if self.results else self.items

    def add(self, results: Sequence[Result | Unavailable]) -> bool:
        """Add the results of the next items; returns whether all have one now."""
        if len(results) < len(self.items):
            results = self.results = [*self.results, *results]
        if len(results) < len(self.items):
            return False
        if not self.future.done():
            self.future.set_result(results)
        return True

    def fail(self, error: BaseException) -> None:
        if self.results and isinstance(error, Unavailable):
            self.add([Unavailable()] * len(self.left))
        elif not self.future.done():
            self.future.set_exception(error)


class Batcher(Generic[Item, Result]):
    """Joins concurrent requests into calls, with at most `in_flight` of them at a time.

    `call` takes items and returns a result for each of the first ones, at least one; the others go with the next call.
    If it raises, every request in it gets the error; a request that already has some results gets Unavailable for its
    other items. If an item cannot be encoded as UTF-8, so that nothing was sent, only its own request fails. `bytes_of`
    an item, if they can be many.
    """

    def __init__(
        self,
        call: Callable[[list[Item]], Awaitable[Sequence[Result | Unavailable]]],
        name: str,
        bytes_of: Callable[[Item], int] | None = None,
        in_flight: int = 1,
    ) -> None:
        self._call = call
        self._bytes_of = bytes_of
        self._waiting: list[_Request[Item, Result]] = []
        self._piece: int | None = None  # items per call, None = all
        self._free = in_flight  # further calls that may begin
        self._will_begin = False
        self._tasks = Tasks(name)

    def submit(self, items: Sequence[Item]) -> asyncio.Future[Sequence[Result | Unavailable]]:
        """Send `items` with the next call.

        The future has their results; cancelling it does not stop the call.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[Result | Unavailable]] = loop.create_future()
        self._waiting.append(_Request(items, future, loop.time()))
        if self._free and not self._will_begin:
            self._free -= 1
            self._will_begin = True
            self._tasks.start(self._run())
        return future

    async def _run(self) -> None:
        self._will_begin = False
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._free += 1

    def _take(self) -> list[_Request[Item, Result]]:
        size = size_bytes = 0
        for number, request in enumerate(self._waiting):
            if self._bytes_of is not None:
                size_bytes += sum(map(self._bytes_of, request.left))
            if number and (size >= BATCH_LIMIT or size_bytes > BATCH_BYTES):
                taken, self._waiting = self._waiting[:number], self._waiting[number:]
                return taken
            size += len(request.items)
        taken, self._waiting = self._waiting, []
        return taken

    async def _send(self, requests: list[_Request[Item, Result]]) -> None:
        items = [item for request in requests for item in request.left]
        try:
            results = await self._call(items[: self._piece])
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
        # if a call does not get to all items, the next one is given about as many as one can do
        self._piece = None if len(results) == len(items) else 2 * len(results)
        at, unfinished = 0, []
        for request in requests:
            size = len(request.left)
            if not request.add(results[at : at + size]):
                unfinished.append(request)
            at += size
        self._waiting[:0] = unfinished

    def _fail(self, requests: list[_Request[Item, Result]], error: BaseException) -> None:
        if isinstance(error, Unavailable):
            requests += self._take_impatient()
        for request in requests:
            request.fail(error)

    def _take_impatient(self) -> list[_Request[Item, Result]]:
        last = asyncio.get_running_loop().time() - PATIENCE_S
        taken = [request for request in self._waiting if request.since < last]
        self._waiting = [request for request in self._waiting if request.since >= last]
        return taken
