"""Worker: functions that handle the jobs of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delayqueue.client.aio import AsyncClient
from delayqueue.client.jobs import seconds
from delayqueue.worker import program
from delayqueue.worker.handlers import Handlers
from delayqueue.worker.policy import Policy
from delayqueue.worker.worker_run import WorkerRun

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import EllipsisType

    from delayqueue.client.jobs import Retry, Seconds
    from delayqueue.worker.handlers import H, L, M

DEFAULT_CONCURRENCY: Final = 10
DEFAULT_GRACE_S: Final = 30.0


class Worker:
    """Runs functions for the jobs of topics: `@worker.on("mail")` above them, then `worker.run()`.

    Plain functions run in threads, `async` ones in the loop, `concurrency` jobs at a time. A handler that returns has
    finished its job; one that raises has failed it, and the job is delivered again by its retry schedule, or by that of
    on(). Handlers can raise Retry and Bury to decide otherwise. `url` and `token` default to DELAYQUEUE_URL and
    DELAYQUEUE_TOKEN.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency {concurrency}: must be at least 1")
        self.handlers: Handlers = Handlers()
        self.url: str | None = url
        self.token: str | None = token
        self.concurrency: int = concurrency

    def on(
        self,
        *topics: str,
        order: int = 0,
        retry: Retry | None = None,
        max_attempts: int | EllipsisType | None = ...,
        timeout: Seconds | None = None,
    ) -> Callable[[H], H]:
        """Call the decorated function with each ReservedJob of these topics, or with its body if annotated so.

        A second argument is the context, or the ReservedJob if annotated so.

        A failed job without its own retry schedule is delivered again by `retry`, and is buried after `max_attempts`
        (None = never); the default is 20 attempts in about eight hours. After `timeout` the attempt has failed: an
        async function is cancelled, the thread of a plain one goes on.

        A topic may have several handlers: they run one after the other, the lowest `order` first; if one raises, those
        after it do not run, and the next attempt begins with the first.
        """
        if not topics:
            raise ValueError("on: name a topic")
        policy = Policy(retry, max_attempts)
        policy.check()
        timeout_s = None if timeout is None else seconds(timeout)
        if timeout_s is not None and not timeout_s > 0:
            raise ValueError(f"timeout {timeout_s}: must be more than 0 seconds")

        def decorate(handler: H) -> H:
            for topic in topics:
                self.handlers.add(topic, order, handler, timeout_s)
                if policy != Policy():
                    self.handlers.set_policy(topic, policy)
            return handler

        return decorate

    def middleware(self, middleware: M) -> M:
        """Call the decorated `async def around(job, next)` around each job's handlers; it awaits `next(job)`.

        With the context, too, if it takes three arguments.
        """
        self.handlers.wrap(middleware)
        return middleware

    def lifespan(self, lifespan: L) -> L:
        """Run the decorated async generator from before the first job to after the last one.

        What it yields is the context that handlers and middlewares get.
        """
        self.handlers.live(lifespan)
        return lifespan

    def run(self, *, grace: Seconds = DEFAULT_GRACE_S) -> None:
        """Work until SIGTERM or SIGINT. Then take no more jobs, and give running ones `grace` to finish.

        A second SIGINT ends the program at once.
        """
        program.run(lambda stop: self.work(stop, grace=grace), seconds(grace))

    async def work(self, stop: asyncio.Event, *, grace: Seconds = DEFAULT_GRACE_S) -> None:
        """Work until `stop` is set, for programs with their own loop; otherwise like run().

        If it is cancelled, it ends at once: the jobs in hand are delivered again.
        """
        if not self.handlers.topics:
            raise ValueError("this worker has no handlers: decorate a function with on()")
        async with (
            AsyncClient(self.url, token=self.token) as client,
            self.handlers.context() as context,
        ):
            await WorkerRun(self.handlers, client, self.concurrency, context).work(stop, grace)
