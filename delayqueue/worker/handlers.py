"""Which functions handle the jobs of which topic, and how a job runs through them."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from delayqueue.client.jobs import ReservedJob
from delayqueue.domain.job import MAX_POP_TOPICS

if TYPE_CHECKING:
    from delayqueue.threads import Threads

Handler: TypeAlias = Callable[[ReservedJob], Any]
Next: TypeAlias = Callable[[ReservedJob], Awaitable[None]]
Middleware: TypeAlias = Callable[[ReservedJob, Next], Awaitable[None]]
H = TypeVar("H", bound=Handler)
M = TypeVar("M", bound=Middleware)


class _Entry(NamedTuple):
    order: int
    number: int  # of its registration, which decides between the same orders
    handler: Handler


class Handlers:
    """The handlers of each topic, in their order, and the middlewares around all of them."""

    def __init__(self) -> None:
        self._of_topic: dict[str, list[_Entry]] = {}
        self._middlewares: list[Middleware] = []

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that have handlers."""
        return tuple(self._of_topic)

    def add(self, topic: str, order: int, handler: Handler) -> None:
        """Have `handler` called for jobs of `topic`; the least `order` first.

        Raises ValueError if there are too many topics.
        """
        entries = self._of_topic.setdefault(topic, [])
        if len(self._of_topic) > MAX_POP_TOPICS:
            raise ValueError(f"{topic}: a worker can wait for {MAX_POP_TOPICS} topics; use another")
        entries.append(_Entry(order, len(entries), handler))
        entries.sort()

    def wrap(self, middleware: Middleware) -> None:
        """Have `middleware` called around the handlers of each job, the first one outermost."""
        self._middlewares.append(middleware)

    async def run(self, job: ReservedJob, threads: Threads) -> None:
        """Call the job's handlers one after the other; what one raises ends it. Plain functions run in `threads`."""

        async def innermost(job: ReservedJob) -> None:
            for entry in self._of_topic[job.topic]:
                await _call(entry.handler, job, threads)

        course: Next = innermost
        for middleware in reversed(self._middlewares):
            course = _around(middleware, course)
        await course(job)


def _around(middleware: Middleware, course: Next) -> Next:
    return lambda job: middleware(job, course)


async def _call(handler: Handler, job: ReservedJob, threads: Threads) -> None:
    if inspect.iscoroutinefunction(handler):
        await handler(job)
        return
    context = contextvars.copy_context()  # what middlewares have set, such as a trace
    result = await threads.run(lambda: context.run(handler, job))
    if inspect.isawaitable(result):  # a callable object may be asynchronous without looking so
        await result
