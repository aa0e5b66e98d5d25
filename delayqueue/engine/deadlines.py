"""The deadlines of many waits, on one timer of the event loop: a timer for each would take 700 bytes."""

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

SPARE = 1000  # a clean-up is not worth it for fewer answered ones than this


class Waiting(Protocol):
    """A wait for a future, until a deadline. Each has a number of its own."""

    number: int
    deadline: float  # loop time
    future: asyncio.Future[Any]


W = TypeVar("W", bound=Waiting)


class Deadlines(Generic[W]):
    """Calls `expire` with each wait that is not done at its deadline."""

    def __init__(self, expire: Callable[[W], None]) -> None:
        self._expire = expire
        self._heap: list[tuple[float, int, W]] = []  # by deadline, then number
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """The number of waits that are kept, including those that are done."""
        return len(self._heap)

    def add(self, one: W, waiting: int) -> None:
        """Expire a wait at its deadline, unless it is done by then; `waiting`: how many are not done, with this one."""
        heap = self._heap
        if len(heap) > 2 * waiting + SPARE:
            heap[:] = [entry for entry in heap if not entry[2].future.done()]
            heapify(heap)
        heappush(heap, (one.deadline, one.number, one))
        if heap[0][2] is one:
            self._arm(one.deadline)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._expire_due)

    def _expire_due(self) -> None:
        now = asyncio.get_running_loop().time()
        heap, self._timer = self._heap, None
        while heap and (heap[0][0] <= now or heap[0][2].future.done()):
            self._expire(heappop(heap)[2])
        if heap:
            self._arm(heap[0][0])

    def close(self) -> None:
        """Expire no more waits."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
