"""Helpers for tasks: ending them, dividing work, taking turns, leaving gaps, sharing results."""

import asyncio
import math
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any, Generic, NamedTuple, Self, TypeVar

AGAIN_S = 0.2
GAP_S = 0.001  # between two calls of a request that changes many jobs
TURN_S = 0.002  # after which a busy task lets others go on

Item = TypeVar("Item")
Result = TypeVar("Result")


async def cancel_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel until all have ended: a cancellation can get lost while redis-py connects (seen when a port is taken).

    If this is cancelled, it still waits: a task left behind here could lose its next cancellation as well.
    """
    left = set(tasks)
    cancelled = False
    while left:
        for task in left:
            task.cancel()
        try:
            await asyncio.wait(left, timeout=AGAIN_S)
        except asyncio.CancelledError:
            cancelled = True
        left = {task for task in left if not task.done()}
    if cancelled:
        raise asyncio.CancelledError


def read_error(task: asyncio.Future[Any]) -> None:
    """Read a task's error, which nobody else may do: asyncio would log that."""
    if not task.cancelled():
        task.exception()


class TaskGroup:
    """Tasks that end together: a block `async with` them cancels all at its end, until they have ended.

    asyncio's own TaskGroup cancels once, and that can get lost (cancel_all). If a task fails, failed() raises its
    error, and so does the end of the block, unless the block itself failed.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended = False

    def create_task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task. Raises RuntimeError if the block has ended."""
        if self._ended:
            work.close()
            raise RuntimeError("the group has ended")
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    async def failed(self, limit_s: float | None = None) -> None:
        """Wait until a task fails, but at most `limit_s`; raises its error."""
        await asyncio.wait([self._failure], timeout=limit_s)
        if self._failure.done():
            self._failure.result()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._failure.done():
            self._failure.set_exception(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._ended = True
        try:
            await cancel_all(self._tasks)
        finally:
            failure = self._failure.exception() if self._failure.done() else None
        if failure is not None and error is None:
            raise failure


@asynccontextmanager
async def at_most(limit_s: float) -> AsyncIterator[None]:
    """Leave the block after `limit_s`, whatever it waits for. It loses no cancellation, as wait_for() of 3.11 can."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            yield


@asynccontextmanager
async def left_when(event: asyncio.Event) -> AsyncIterator[None]:
    """Leave the block as soon as the event is set, whatever it waits for."""
    limit = asyncio.timeout(None)

    async def follow() -> None:
        await event.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    try:
        async with limit:
            following = asyncio.create_task(follow(), name="left when")
            try:
                yield
            finally:
                following.cancel()
    except TimeoutError:
        if not limit.expired():
            raise


def is_cancelled() -> bool:
    """Whether the running task has been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def paced() -> AsyncIterator[None]:
    """Turns without end, with a pause of GAP_S between two: the store serves others meanwhile."""
    while True:
        yield
        await asyncio.sleep(GAP_S)


def batched(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items, `size` at a time, as itertools.batched() of Python 3.12 gives them, but as they are sliced."""
    return (items[at : at + size] for at in range(0, len(items), size))


async def by_turns(items: Iterable[Item]) -> AsyncIterator[Item]:
    """The items; the loop's other work gets its turn in between, each TURN_S."""
    until_s = monotonic() + TURN_S
    for item in items:
        yield item
        if monotonic() >= until_s:
            await asyncio.sleep(0)
            until_s = monotonic() + TURN_S


class Tasks:
    """Tasks of one kind that end by themselves."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start a task for the work."""
        task = asyncio.create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What the work returns or raises. If the caller is cancelled, the work goes on."""
        task = self.start(work)
        task.add_done_callback(read_error)  # nobody may be left to do so
        await asyncio.wait([task])
        return task.result()

    async def cancel(self) -> None:
        """Cancel all tasks, until they have ended."""
        await cancel_all(self._tasks)

    async def ended(self) -> None:
        """Wait until all tasks have ended, including those that start meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)


class SingleFlight(Generic[Result]):
    """At most one piece of work at a time for each key: callers that want its result meanwhile await the same one.

    Work that takes longer than `shared_s` is left to itself, and the next caller starts again.
    """

    def __init__(self, shared_s: float = math.inf) -> None:
        self._shared_s = shared_s
        self._flights: dict[Hashable, _Flight] = {}

    async def do(self, key: Hashable, work: Callable[[], Awaitable[Result]]) -> Result:
        """What the work returns or raises. If a caller is cancelled, the work goes on for the others."""
        now_s = asyncio.get_running_loop().time()
        flight = self._flights.get(key)
        if flight is None or flight.result.done() or flight.began_s < now_s - self._shared_s:
            flight = self._flights[key] = _Flight(now_s, asyncio.ensure_future(work()))
            flight.result.add_done_callback(partial(self._forget, key))
        result: Result = await asyncio.shield(flight.result)
        return result

    async def do_anew(self, key: Hashable, work: Callable[[], Awaitable[Result]]) -> Result:
        """What work returns or raises that begins after this call, for callers that an earlier result would mislead."""
        if flight := self._flights.get(key):
            await asyncio.wait([flight.result])
        return await self.do(key, work)

    def _forget(self, key: Hashable, result: asyncio.Future[Any]) -> None:
        read_error(result)  # nobody else may be left
        if key in self._flights and self._flights[key].result is result:
            del self._flights[key]


class _Flight(NamedTuple):
    began_s: float  # loop time
    result: asyncio.Future[Any]
