"""When waiting polls give up: one timer of the loop for all of them, which would each take 700 bytes."""

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from delayqueue.engine.wait_queue import Poll

SPARE = 1000  # entries of polls that are answered, beyond as many as wait, that are not worth a clean-up


class Deadlines:
    """Tells `expire` of the polls that wait for nothing until their deadlines."""

    def __init__(self, expire: Callable[[Poll], None]) -> None:
        self._expire = expire
        self._heap: list[Poll] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many polls are kept, answered ones among them."""
        return len(self._heap)

    def add(self, poll: Poll, waiting: int) -> None:
        """Tell of the poll at its deadline, unless it is done by then; so many polls wait, this one among them."""
        heap = self._heap
        if len(heap) > 2 * waiting + SPARE:
            heap[:] = [each for each in heap if not each.future.done()]
            heapify(heap)
        heappush(heap, poll)
        if heap[0] is poll:
            self._arm(poll.deadline)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._expire_due)

    def _expire_due(self) -> None:
        now = asyncio.get_running_loop().time()
        heap, self._timer = self._heap, None
        while heap and (heap[0].deadline <= now or heap[0].future.done()):
            self._expire(heappop(heap))
        if heap:
            self._arm(heap[0].deadline)

    def close(self) -> None:
        """Tell of nobody any more."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
