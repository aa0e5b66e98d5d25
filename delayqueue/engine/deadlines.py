"""When waiting polls give up: one timer of the loop for all of them, which would each take 700 bytes."""

import asyncio
from heapq import heapify, heappop, heappush

from delayqueue.engine.line import Poll

SPARE = 1000  # entries of polls that are answered, beyond as many as wait, that are not worth a clean-up


class Deadlines:
    """Answers polls with nothing at their deadlines."""

    def __init__(self) -> None:
        self._heap: list[Poll] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many polls are kept, answered ones among them."""
        return len(self._heap)

    def add(self, poll: Poll, waiting: int) -> None:
        """Answer the poll at its deadline, unless it is done by then; so many polls wait, this one among them."""
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
        self._timer = asyncio.get_running_loop().call_at(at, self._answer_due)

    def _answer_due(self) -> None:
        now = asyncio.get_running_loop().time()
        heap, self._timer = self._heap, None
        while heap and (heap[0].deadline <= now or heap[0].future.done()):
            heappop(heap).answer([])
        if heap:
            self._arm(heap[0].deadline)

    def close(self) -> None:
        """Answer nobody any more."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
