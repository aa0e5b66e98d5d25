"""The clients that wait for the end of a job.

The store is told that somebody waits (await_end.lua), and the script that ends or buries the job, of whatever process,
announces it. An announcement can get lost, or come from an older version of the server, which makes none: so the store
is asked again every few seconds. Nothing else is asked meanwhile. An announcement can also be about a job of another
database of the store, which share their channels: so the job is read before its clients are answered.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, count
from typing import Final

from delayqueue.domain.access import Scope
from delayqueue.domain.job import State
from delayqueue.engine.deadlines import Deadlines
from delayqueue.errors import Unavailable
from delayqueue.store.store import Store
from delayqueue.store.types import JobView
from delayqueue.store.verbs import AWAIT_END, GET
from delayqueue.tasks import at_most, batched

LOOK_S: Final = 5.0  # until the store is asked again; it remembers for three times as long
TO_END: Final = (State.DELAYED, State.READY, State.RESERVED)  # a buried job has ended here
TOGETHER: Final = 500  # ids in one question: about 3 ms of the store's time

Views = Sequence[JobView | None]  # of one job; None = it does not exist


class EndWait:
    """A client that waits for the end of a job. Its future becomes all about the job, as it is then."""

    __slots__ = ("deadline", "future", "id", "number", "scope")

    def __init__(self, number: int, job_id: str, scope: Scope, wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.id = job_id
        self.scope = scope
        self.deadline = loop.time() + wait_s  # loop time
        self.future: asyncio.Future[Views] = loop.create_future()  # done = answered or gone


class EndWaits:
    """All clients of this process that wait for the end of a job."""

    def __init__(self, store: Store, check_room: Callable[[], None]) -> None:
        """`check_room` raises TooMany if there is no room for one more wait."""
        self._store = store
        self._check_room = check_room
        self._by_id: dict[str, set[EndWait]] = {}
        self._deadlines = Deadlines[EndWait](lambda wait: self._answer([wait]))
        self._numbers = count(1)
        self._reading = set[asyncio.Future[list[JobView | None]]]()
        self._may_have_missed = asyncio.Event()  # an announcement
        self._closing = False
        self.waiting = 0  # how many wait

    def wait(self, job_id: str, wait_s: float, scope: Scope) -> EndWait:
        """Begin to wait, up to `wait_s`, for a job's end or burial. Whoever calls it takes the answer, or leaves.

        The future raises Unavailable if the store does not answer at the beginning or at the end; failures in between
        are waited out. Raises TooMany if as many are waiting as may.
        """
        wait = EndWait(next(self._numbers), job_id, scope, wait_s)
        if self._closing:
            self._read(wait)
            return wait
        self._check_room()
        self._by_id.setdefault(job_id, set()).add(wait)
        self.waiting += 1
        self._deadlines.add(wait, self.waiting)
        noting = self._store.run(AWAIT_END, (job_id,), scope)
        noting.add_done_callback(partial(self._noted, wait))
        return wait

    def leave(self, wait: EndWait) -> None:
        """End a wait: its client is gone."""
        self._remove(wait)
        wait.future.cancel()

    def ended(self, job_id: str) -> None:
        """Answer the clients that wait for this job if it has ended, as was announced."""
        for wait in self._by_id.get(job_id, ()):
            reading = self._store.run(GET, (job_id,), wait.scope)
            reading.add_done_callback(partial(self._has_read_ended, wait))

    def resync(self) -> None:
        """Ask the store again soon: announcements may have been lost."""
        self._may_have_missed.set()

    async def run(self) -> None:
        """Ask the store again from time to time while clients wait, until cancelled."""
        while True:
            async with at_most(LOOK_S):
                await self._may_have_missed.wait()
            self._may_have_missed.clear()
            for scope, ids in self._ids().items():
                for piece in batched(list(ids), TOGETHER):
                    await self._ask_again(piece, scope)

    async def close(self) -> None:
        """Answer all clients with their jobs as they are; from now on no client waits."""
        self._closing = True
        self._deadlines.close()
        self._answer(list(chain.from_iterable(self._by_id.values())))
        if self._reading:
            await asyncio.wait(self._reading)

    def _ids(self) -> dict[Scope, dict[str, None]]:
        """The ids of the jobs that clients wait for, by scope."""
        ids: dict[Scope, dict[str, None]] = {}
        for wait in chain.from_iterable(self._by_id.values()):
            ids.setdefault(wait.scope, {})[wait.id] = None
        return ids

    async def _ask_again(self, ids: Sequence[str], scope: Scope) -> None:
        try:
            goes_on = await self._store.run(AWAIT_END, ids, scope)
        except Unavailable:
            return  # the next time
        for job_id, goes in zip(ids, goes_on, strict=True):
            if not goes:
                self._answer([each for each in self._by_id.get(job_id, ()) if each.scope == scope])

    def _noted(self, wait: EndWait, noting: asyncio.Future[list[bool]]) -> None:
        """Answer the client if its job had ended before the store noted the wait, or if the call failed."""
        if noting.cancelled():  # the loop ends
            return
        if (error := noting.exception()) is not None:
            if self._remove(wait):
                wait.future.set_exception(error)
        elif not noting.result()[0]:
            self._answer([wait])

    def _answer(self, waits: Iterable[EndWait]) -> None:
        """Answer the clients with their jobs as they are."""
        for wait in waits:
            if self._remove(wait):
                self._read(wait)

    def _read(self, wait: EndWait) -> None:
        reading = self._store.run(GET, (wait.id,), wait.scope)
        self._reading.add(reading)
        reading.add_done_callback(partial(self._has_read, wait))

    def _has_read(self, wait: EndWait, reading: asyncio.Future[list[JobView | None]]) -> None:
        self._reading.discard(reading)
        error = None if reading.cancelled() else reading.exception()
        if wait.future.done() or reading.cancelled():  # the client is gone, or the loop ends
            return
        if error is not None:
            wait.future.set_exception(error)
        else:
            wait.future.set_result(reading.result())

    def _has_read_ended(self, wait: EndWait, reading: asyncio.Future[list[JobView | None]]) -> None:
        if reading.cancelled() or reading.exception() is not None:
            return  # it is looked at again
        [view] = reading.result()
        if (view is None or view.state not in TO_END) and self._remove(wait):
            wait.future.set_result([view])

    def _remove(self, wait: EndWait) -> bool:
        """Forget a wait; returns whether it was still open."""
        waits = self._by_id.get(wait.id, set())
        if wait not in waits:
            return False
        waits.remove(wait)
        self.waiting -= 1
        if not waits:
            del self._by_id[wait.id]
        return True
