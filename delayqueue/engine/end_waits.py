"""The clients that wait for the end of a job.

The store is told that somebody waits (await_end.lua), and the script that ends or buries the job, of whatever process,
announces it. An announcement can be about a job of another database of the store, which share their channels: so the
store is asked again. It can get lost, or never come from an older version of the server: so the store is also asked
again every few seconds. Nothing else is asked meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count
from typing import Final

from delayqueue.domain.access import Scope
from delayqueue.engine.deadlines import Deadlines
from delayqueue.errors import Unavailable
from delayqueue.store.store import Store
from delayqueue.store.types import JobView
from delayqueue.store.verbs import AWAIT_END, GET
from delayqueue.tasks import at_most, batched

LOOK_S: Final = 5.0  # until the store is asked again; it remembers for three times as long
TOGETHER: Final = 500  # waits that are asked about at a time: about 3 ms of the store's time

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
        [asking] = self._ask([wait])
        asking.add_done_callback(partial(self._has_begun, wait))
        return wait

    def leave(self, wait: EndWait) -> None:
        """End a wait: its client is gone."""
        self._remove(wait)
        wait.future.cancel()

    def ended(self, job_id: str) -> None:
        """Ask whether this job has ended, as was announced, if clients wait for it."""
        self._ask(self._by_id.get(job_id, ()))

    def resync(self) -> None:
        """Ask the store again soon: announcements may have been lost."""
        self._may_have_missed.set()

    async def run(self) -> None:
        """Ask the store again from time to time while clients wait, until cancelled."""
        while True:
            async with at_most(LOOK_S):
                await self._may_have_missed.wait()
            self._may_have_missed.clear()
            for piece in batched(self._all(), TOGETHER):
                await asyncio.wait(self._ask(piece))

    async def close(self) -> None:
        """Answer all clients with their jobs as they are; from now on no client waits."""
        self._closing = True
        self._deadlines.close()
        self._answer(self._all())
        if self._reading:
            await asyncio.wait(self._reading)

    def _all(self) -> list[EndWait]:
        return list(chain.from_iterable(self._by_id.values()))

    def _ask(self, waits: Iterable[EndWait]) -> list[asyncio.Future[list[Views]]]:
        """Have the ends of these clients' jobs announced, and answer the clients of those that have ended."""
        of_job: dict[tuple[str, Scope], list[EndWait]] = {}
        for wait in waits:
            of_job.setdefault((wait.id, wait.scope), []).append(wait)
        asked = []
        for (job_id, scope), its in of_job.items():
            asking = self._store.run(AWAIT_END, (job_id,), scope)
            asking.add_done_callback(partial(self._has_asked, its))
            asked.append(asking)
        return asked

    def _has_asked(self, waits: Sequence[EndWait], asking: asyncio.Future[list[Views]]) -> None:
        with suppress(Unavailable):  # it is asked again
            [views] = asking.result()
            for wait in waits if views else ():
                if self._remove(wait):
                    wait.future.set_result(views)

    def _has_begun(self, wait: EndWait, asking: asyncio.Future[list[Views]]) -> None:
        """Let the client's wait fail if its first call has."""
        if (error := asking.exception()) is not None and self._remove(wait):
            wait.future.set_exception(error)

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
        error = reading.exception()
        if wait.future.done():  # the client is gone
            return
        if error is not None:
            wait.future.set_exception(error)
        else:
            wait.future.set_result(reading.result())

    def _remove(self, wait: EndWait) -> bool:
        """Forget a wait; returns whether its client still waited."""
        waits = self._by_id.get(wait.id, set())
        if wait not in waits:
            return False
        waits.remove(wait)
        self.waiting -= 1
        if not waits:
            del self._by_id[wait.id]
        return not wait.future.done()
