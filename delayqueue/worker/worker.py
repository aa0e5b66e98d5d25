"""Worker: functions that handle the jobs of topics."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Unpack, overload

from delayqueue import __version__
from delayqueue.client.aio import AsyncClient
from delayqueue.client.blocking import Client
from delayqueue.client.jobs import DEFAULT_TTR_S, retry_request
from delayqueue.client.made_once import made_once
from delayqueue.client.several import Several, several
from delayqueue.client.times import seconds
from delayqueue.tasks import cancel_all, left_when
from delayqueue.worker import program
from delayqueue.worker.figures import WorkerFigures
from delayqueue.worker.handlers import Conditions, Handlers, classes_of
from delayqueue.worker.policy import Policy
from delayqueue.worker.process_limits import ProcessLimits
from delayqueue.worker.task import Task
from delayqueue.worker.timetable import Times, declare
from delayqueue.worker.untaken import watch
from delayqueue.worker.worker_run import WorkerRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import EllipsisType

    from delayqueue.client.jobs import Retry
    from delayqueue.client.times import Seconds
    from delayqueue.worker.arguments import Arguments
    from delayqueue.worker.handlers import Errors, H, Handler, L, M, S
    from delayqueue.worker.task import GroupOf, R, Ts

DEFAULT_CONCURRENCY: Final = 10
DEFAULT_GRACE_S: Final = 30.0


class Worker:
    """Runs functions for the jobs of topics: `@worker.on("mail")` above them, then `worker.run()`.

    Plain functions run in threads, `async` ones in the loop, `concurrency` jobs at a time. A handler that returns has
    finished its job; one that raises has failed it, and the job is delivered again by its retry schedule, or by that of
    on(). Handlers can raise Retry and Bury to decide otherwise. `url` and `token` default to DELAYQUEUE_URL and
    DELAYQUEUE_TOKEN.

    The server shows each process of it as HOST:PID, or NAME@HOST:PID, with the `version` of your program. With
    `keep_tags`, jobs that tasks push from inside a handler have the tags of its job, too. `include` names modules that
    add handlers to it: they are imported when it starts.
    """

    def __init__(  # noqa: PLR0913  # one argument per property of a worker
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        name: str | None = None,
        version: str | None = None,
        keep_tags: bool = False,
        include: Several[str] = (),
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency {concurrency}: must be at least 1")
        self.handlers: Handlers = Handlers()
        self.url: str | None = url
        self.token: str | None = token
        self.concurrency: int = concurrency
        self.prune: bool = False  # remove schedules of tasks that this worker does not declare
        self.name: str | None = name
        self.version: str | None = version
        self.keep_tags: bool = keep_tags
        self.include: tuple[str, ...] = tuple(several("include", include))
        self.limits: ProcessLimits = ProcessLimits()
        self.figures: WorkerFigures = WorkerFigures()
        self.times: list[Times] = []

    def load(self) -> None:
        """Import the modules that `include` names, as a start does. Raises whatever they raise."""
        for module in self.include:
            import_module(module)

    @made_once
    def client(self) -> Client:
        """The client that the push() of tasks uses; set another one in tests, or before the first push."""
        return Client(self.url, token=self.token)

    @made_once
    def async_client(self) -> AsyncClient:
        """The client that the worker itself and the push_async() of tasks use."""
        return AsyncClient(self.url, token=self.token)

    def _described(self) -> dict[str, Any]:
        """The fields `worker` of this process's polls."""
        host, pid = socket.gethostname(), os.getpid()
        place = f"{host}:{pid}"
        return {
            "name": place if self.name is None else f"{self.name}@{place}",
            "version": __version__ if self.version is None else self.version,
            "host": host,
            "pid": pid,
            "concurrency": self.concurrency,
        }

    @overload
    def on(
        self,
        *topics: str,
        order: int = 0,
        retry: Retry | None = None,
        max_attempts: int | EllipsisType | None = ...,
        timeout: Seconds | None = None,
        bury_on: Errors = (),
        retry_on: Errors = Exception,
        stop_on_failure: bool = True,
    ) -> Callable[[H], H]: ...

    @overload
    def on(
        self,
        topic: str,
        handlers: Handler | Several[Handler],
        /,
        *,
        order: int = 0,
        retry: Retry | None = None,
        max_attempts: int | EllipsisType | None = ...,
        timeout: Seconds | None = None,
        bury_on: Errors = (),
        retry_on: Errors = Exception,
        stop_on_failure: bool = True,
    ) -> None: ...

    def on(  # noqa: PLR0913  # one argument per property of a handler
        self,
        *topics: Any,
        order: int = 0,
        retry: Retry | None = None,
        max_attempts: int | EllipsisType | None = ...,
        timeout: Seconds | None = None,
        bury_on: Errors = (),
        retry_on: Errors = Exception,
        stop_on_failure: bool = True,
    ) -> Any:
        """Call the decorated function with each ReservedJob of these topics, or with its body if annotated so.

        A second argument is the context, or the ReservedJob if annotated so. `on("paid", [invoice, ship, mail])` calls
        several functions in this order, without a decorator.

        A failed job without its own retry schedule is delivered again by `retry`, and is buried after `max_attempts`
        (None = never); the default is 20 attempts in about eight hours. After `timeout` the attempt has failed: an
        async function is cancelled, the thread of a plain one goes on. An error of `bury_on`, or of none of `retry_on`,
        buries the job at once.

        A topic may have several handlers: they run one after the other, the lowest `order` first, and find in
        `job.results` what those before them returned. If one fails, those after it do not run, unless
        `stop_on_failure` is false; the next attempt begins with the first handler, whether it has succeeded or not.
        """
        policy = _policy(retry, max_attempts)
        conditions = _conditions(order, timeout, bury_on, retry_on)._replace(
            stop_on_failure=stop_on_failure
        )
        names, handlers = _topics_and_handlers(topics)

        def decorate(handler: H) -> H:
            for topic in self.handlers.checked_topics(names):
                self._add(topic, handler, conditions, policy)
            return handler

        for handler in handlers:
            decorate(handler)
        return None if handlers else decorate

    def task(  # noqa: PLR0913  # one argument per property of a task
        self,
        topic: str,
        *,
        also: Several[str] = (),
        ttr: Seconds = DEFAULT_TTR_S,
        retry: Retry | None = None,
        max_attempts: int | EllipsisType | None = ...,
        timeout: Seconds | None = None,
        bury_on: Errors = (),
        retry_on: Errors = Exception,
        cron: str | None = None,
        every: Seconds | None = None,
        tz: str | None = None,
        group: GroupOf | None = None,
    ) -> Callable[[Callable[[Unpack[Ts]], R]], Task[R, Unpack[Ts]]]:
        """Make a Task of the decorated function: `close.push(order, delay="30m")` runs it in a worker.

        The function gets its own arguments; current_job() is the job. With `cron` (in `tz`) or `every`, the server
        pushes it by itself, from the start of the first worker on: the schedule on the server follows the code. Failed
        attempts are treated as by on(). `also` names topics that it had before, whose jobs still wait. `group` tells
        a job's group from those arguments that it names: `group=lambda order: order.customer`.
        """
        policy = _policy(retry, max_attempts)
        conditions = _conditions(0, timeout, bury_on, retry_on)
        former = tuple(several("also", also))
        times = _times(Times(topic, ttr, cron, every, tz))

        def decorate(function: Callable[[Unpack[Ts]], R]) -> Task[R, Unpack[Ts]]:
            name, *others = self.handlers.checked_topics([topic, *former], is_task=True)
            task = Task(self, name, function, ttr, tuple(others), group)
            if times is not None:
                if not task.parameters.are_optional:
                    raise ValueError(f"{topic}: a task with times is called without arguments")
                self.times.append(times._replace(topic=name, group=task.group_of({})))
            for each in task.topics:
                self._add(each, function, conditions, policy, task.parameters.arguments)
            return task

        return decorate

    def _add(
        self,
        topic: str,
        handler: Callable[..., Any],
        conditions: Conditions,
        policy: Policy,
        arguments: Arguments | None = None,
    ) -> None:
        self.handlers.add(topic, handler, conditions, arguments)
        if policy != Policy():
            self.handlers.set_policy(topic, policy)

    def middleware(self, middleware: M) -> M:
        """Call the decorated `async def around(job, next)` around each job's handlers; it awaits `next(job)`.

        With the context, too, if it takes three arguments.
        """
        self.handlers.add_middleware(middleware)
        return middleware

    def lifespan(self, lifespan: L) -> L:
        """Run the decorated async generator from before the first job to after the last one.

        What it yields is the context that handlers and middlewares get.
        """
        self.handlers.set_lifespan(lifespan)
        return lifespan

    def scrub(self, scrub: S) -> S:
        """Call the decorated function with each message, and each traceback, before the server is told it.

        It returns what to tell instead. If it raises, the server is told only that. Several are called in their order.
        """
        self.handlers.add_scrub(scrub)
        return scrub

    def run(self, *, grace: Seconds = DEFAULT_GRACE_S) -> None:
        """Work until SIGTERM or SIGINT. Then take no more jobs, and give running ones `grace` to finish.

        A second SIGINT ends the program at once.
        """
        program.run(lambda stop: self.work(stop, grace=grace), seconds(grace))

    async def work(self, stop: asyncio.Event, *, grace: Seconds = DEFAULT_GRACE_S) -> None:
        """Work until `stop` is set, for programs with their own loop; otherwise like run().

        If it is cancelled, it ends at once: the jobs in hand are delivered again.
        """
        self.load()
        if not self.handlers.topics:
            raise ValueError("this worker has no handlers: decorate a function with on() or task()")
        async with (
            self.figures.beating(),
            self.async_client as client,
            AsyncExitStack() as lifespan,
        ):
            async with left_when(stop):
                context = await lifespan.enter_async_context(self.handlers.context())
            if stop.is_set():
                return
            run = WorkerRun(
                self.handlers,
                client,
                self._described(),
                context,
                figures=self.figures,
                limits=self.limits,
            )
            beside = [
                asyncio.create_task(declare(client, self.times, prune=self.prune), name="declare"),
                asyncio.create_task(watch(client, self.handlers.topics), name="watch"),
            ]
            try:
                await run.work(stop, grace)
                stop.set()  # a limit, too, is the beginning of the end
            finally:
                await cancel_all(beside)


def _policy(retry: Retry | None, max_attempts: int | EllipsisType | None) -> Policy:
    policy = Policy(None if retry is None else retry_request(retry), max_attempts)
    policy.check()
    return policy


def _topics_and_handlers(given: Sequence[Any]) -> tuple[Sequence[str], Sequence[Handler]]:
    """The topics and the handlers that on() is given. Raises ValueError if there are none, TypeError for others."""
    if given and not isinstance(given[-1], str):
        *topics, last = given
        handlers: list[Handler] = [last] if callable(last) else several("handlers", last)
        if not handlers:
            raise ValueError("on: name a handler")
        for one in handlers:
            if not callable(one):
                raise TypeError(f"on: {one!r}: must be a function; write topics one by one")
    else:
        topics, handlers = [*given], []
    if not topics:
        raise ValueError("on: name a topic")
    return topics, handlers


def _times(times: Times) -> Times | None:
    """None if the task has none. Raises ValueError if they are not right."""
    if times.cron is times.every is times.tz is None:
        return None
    try:
        times.check()
    except ValueError as error:
        raise ValueError(f"{times.topic}: {error}") from None
    return times


def _conditions(
    order: int, timeout: Seconds | None, bury_on: Errors, retry_on: Errors
) -> Conditions:
    timeout_s = None if timeout is None else seconds(timeout)
    if timeout_s is not None and not timeout_s > 0:
        raise ValueError(f"timeout {timeout_s}: must be more than 0 seconds")
    errors = classes_of("bury_on", bury_on), classes_of("retry_on", retry_on)
    return Conditions(order, timeout_s, *errors)
