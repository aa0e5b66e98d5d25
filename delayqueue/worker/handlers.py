"""Which functions handle which topics, and how a job runs through them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from delayqueue.answers.jobs import ReservedJob
from delayqueue.client import tracing
from delayqueue.client.several import Collected, several
from delayqueue.domain import push_rules
from delayqueue.domain.text import clean, message_of, text_of
from delayqueue.worker.arguments import Arguments, arguments_of, check_call, name_of, required
from delayqueue.worker.current import handling
from delayqueue.worker.handled_job import HandledJob, HandlerResult, Tell, ignore_progress
from delayqueue.worker.policy import Policy
from delayqueue.worker.verdict import (
    Buried,
    Bury,
    Finished,
    Released,
    Retry,
    TimeLimit,
    Verdict,
    verdict_of,
    verdict_of_group,
    verdict_of_several,
)

if TYPE_CHECKING:
    from delayqueue.worker.executor import Executor

Handler: TypeAlias = Callable[..., Any]
Next: TypeAlias = Callable[[ReservedJob], Awaitable[None]]
Middleware: TypeAlias = (
    Callable[[ReservedJob, Next], Awaitable[None]]
    | Callable[[ReservedJob, Next, Any], Awaitable[None]]
)
Lifespan: TypeAlias = Callable[[], AsyncGenerator[Any, None]]
Errors: TypeAlias = type[Exception] | Collected[type[Exception]]
H = TypeVar("H", bound=Handler)
M = TypeVar("M", bound=Middleware)
L = TypeVar("L", bound=Lifespan)
S = TypeVar("S", bound=Callable[[str], str])


log = logging.getLogger(__name__)

LAZY: Final = (partial, map, filter, zip)  # results that nothing has computed yet
UNTOLD: Final = "(a message that could not be scrubbed)"


class Conditions(NamedTuple):
    """Under which a handler runs; an error of `bury_on`, or of none of `retry_on`, is not worth another attempt.

    `stop_on_failure`: the topic's handlers after it do not run if it fails.
    """

    order: int = 0
    timeout_s: float | None = None
    bury_on: tuple[type[BaseException], ...] = ()
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    stop_on_failure: bool = True

    def verdict_on(self, error: BaseException, *groups: BaseException) -> Released | Buried:
        """What an error of a handler means, by itself or as a member of groups."""
        if isinstance(error, BaseExceptionGroup):
            return verdict_of_group(error, lambda one: self.verdict_on(one, error, *groups))
        return verdict_of(error, is_hopeless=self._is_hopeless(error, groups))

    def _is_hopeless(self, error: BaseException, groups: Sequence[BaseException]) -> bool:
        """Whether another attempt would end like this one. A class of groups may be named, too."""
        if isinstance(error, (Retry, Bury, TimeLimit)) or not isinstance(error, Exception):
            return False
        raised = (error, *groups)
        return any(isinstance(one, self.bury_on) for one in raised) or not any(
            isinstance(one, self.retry_on) for one in raised
        )


def classes_of(name: str, errors: Errors) -> tuple[type[BaseException], ...]:
    """The classes that the argument `name` lists. Raises TypeError if it lists something else."""
    classes = (errors,) if isinstance(errors, type) else tuple(several(name, errors))
    for one in classes:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise TypeError(f"{name}: {one!r}: must be an exception class, such as ValueError")
    return classes


class _Entry(NamedTuple):
    order: int
    number: int  # of its registration, which decides between equal orders
    name: str  # that no other handler of the topic has
    handler: Handler
    arguments: Arguments
    conditions: Conditions


class Handlers:
    """The handlers of each topic, in order, the middlewares around them all, and the context that they share."""

    def __init__(self) -> None:
        self._of_topic: dict[str, list[_Entry]] = {}
        self._tasks: set[str] = set()  # their topics
        self._policies: dict[str, Policy] = {}
        self._middlewares: list[tuple[Callable[..., Awaitable[None]], bool]] = []
        self._lifespan: Lifespan | None = None
        self._scrubs: list[Callable[[str], str]] = []

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that have handlers."""
        return tuple(self._of_topic)

    def checked_topics(self, topics: Iterable[str], *, is_task: bool = False) -> list[str]:
        """The topics without white space around them, as their jobs come from the server.

        Raises ValueError or TypeError unless they can get one more handler, or the function of a task.
        """
        found = [push_rules.topic("topic", topic) for topic in topics]
        for place, topic in enumerate(found):
            if topic in found[:place]:
                raise ValueError(f"topic {topic}: named twice")
            if topic in self._tasks or (is_task and topic in self._of_topic):
                raise ValueError(f"{topic}: a task has its topic for itself")
        return found

    def add(
        self,
        topic: str,
        handler: Handler,
        conditions: Conditions,
        arguments: Arguments | None = None,
    ) -> None:
        """Call `handler` for jobs of `topic`, with these `arguments` of a task, or those that it asks for.

        Raises ValueError if the handler has an argument that no handler gets, or a yield.
        """
        try:
            check_runs(handler)
        except ValueError as error:
            raise ValueError(f"{name_of(handler)}: {error}") from None
        if arguments is None:
            arguments = arguments_of(handler)
        else:
            self._tasks.add(topic)
        entries = self._of_topic.setdefault(topic, [])
        name = _unique(_short_name(handler), {entry.name for entry in entries})
        entries.append(_Entry(conditions.order, len(entries), name, handler, arguments, conditions))
        entries.sort(key=lambda entry: entry[:2])

    def set_policy(self, topic: str, policy: Policy) -> None:
        """Set what happens to failed jobs of `topic`. Raises ValueError if another handler has set something else."""
        if self._policies.setdefault(topic, policy) != policy:
            raise ValueError(f"{topic}: its handlers must agree on retry and max_attempts")

    def policy_of(self, topic: str) -> Policy:
        """What happens to failed jobs of `topic` without their own schedule."""
        return self._policies.get(topic, Policy())

    def add_middleware(self, middleware: Middleware) -> None:
        """Call `middleware` around the handlers of each job, the first one outermost.

        Raises ValueError if it does not take a job and what comes next.
        """
        takes_context = len(required(middleware)) > 2
        check_call(middleware, 2 + takes_context)
        self._middlewares.append((middleware, takes_context))

    def add_scrub(self, scrub: Callable[[str], str]) -> None:
        """Let `scrub` change the messages and tracebacks before they are sent to the server."""
        self._scrubs.append(scrub)

    def scrubbed(self, verdict: Verdict) -> Verdict:
        """The verdict with its message and traceback scrubbed."""
        if not self._scrubs:
            return verdict
        if isinstance(verdict, Finished):
            return replace(verdict, message=self.scrubbed_text(verdict.message))
        message, calls = self.scrubbed_text(verdict.message), self.scrubbed_text(verdict.traceback)
        return replace(verdict, message=message, traceback=calls)

    def scrubbed_text(self, text: str) -> str:
        """The text as the server may have it."""
        try:
            for scrub in self._scrubs:
                text = message_of(scrub(text)) if text else ""
        except Exception:
            log.exception("%s raised: the server is not told the message", name_of(scrub))
            return UNTOLD
        return text

    def set_lifespan(self, lifespan: Lifespan) -> None:
        """Use what `lifespan` yields as the context. Raises ValueError if there is one already."""
        if self._lifespan is not None:
            raise ValueError(
                "lifespan: a worker has only one; let it yield everything that handlers need"
            )
        self._lifespan = lifespan

    def context(self) -> AbstractAsyncContextManager[Any]:
        """What the handlers share, from its start to its end; None without a lifespan."""
        return nullcontext() if self._lifespan is None else asynccontextmanager(self._lifespan)()

    async def run(
        self, job: ReservedJob, executor: Executor, context: Any, tell: Tell = ignore_progress
    ) -> tuple[Verdict, BaseException | None]:
        """Call the job's handlers one after the other; `tell` gets their progress.

        Returns the verdict, and what the handlers or a middleware have raised, if it is a failure.
        """
        calls = _HandlerRun(self._of_topic[job.topic], executor, context, tell)
        call_next: Next = calls.run
        for middleware, takes_context in reversed(self._middlewares):
            call_next = _around(middleware, call_next, (context,) if takes_context else ())
        job = HandledJob.of(job, calls.results, tell)
        try:
            with handling(job, context), tracing.processing(job, no_failure=Retry):
                await call_next(job)
        except BaseException as error:  # other people's code: whatever it raises
            return calls.verdict_on(error), error
        return Finished("; ".join(calls.messages)), None


class _Failure(NamedTuple):
    name: str  # of the handler
    error: BaseException
    verdict: Released | Buried


class _HandlerRun:
    """The calls of a job's handlers, one after the other, and their results so far."""

    def __init__(
        self, entries: Sequence[_Entry], executor: Executor, context: Any, tell: Tell
    ) -> None:
        self._entries = entries
        self._executor = executor
        self._context = context
        self._tell = tell
        self.messages: list[str] = []
        self.results: dict[str, HandlerResult] = {}
        # what run() has raised, with its meaning: a middleware may raise the error of an earlier run
        self._raised: list[tuple[BaseException, Released | Buried]] = []

    def verdict_on(self, error: BaseException) -> Released | Buried:
        """What an error means that run() or a middleware has raised."""
        for raised, verdict in reversed(self._raised):
            if raised is error:
                return verdict
        if isinstance(error, BaseExceptionGroup):  # a middleware may put it into one
            return verdict_of_group(error, self.verdict_on)
        return verdict_of(error)

    async def run(self, job: ReservedJob) -> None:
        """Call the handlers, also once more for a middleware that tries them again.

        Raises what the one that failed has raised, or a group if several have failed.
        """
        self.messages.clear()  # of an earlier run
        self.results.clear()
        failed: list[_Failure] = []
        job = HandledJob.of(job, self.results, self._tell)  # a middleware may pass on another one
        for entry in self._entries:
            try:
                returned = await self._call(entry, job)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # other people's code: whatever it raises
                verdict = entry.conditions.verdict_on(error)
                failed.append(_Failure(entry.name, error, verdict))
                self.results[entry.name] = HandlerResult(False, verdict.message)
                if entry.conditions.stop_on_failure:
                    break
            else:
                text = "" if returned is None else text_of(returned)
                self.results[entry.name] = HandlerResult(True, text)
                if returned is not None:
                    self.messages.append(clean(text))
        if failed:
            raised = _raised_by(failed)
            self._raised += [(one.error, one.verdict) for one in failed]
            self._raised.append((raised, self._verdict(failed)))
            raise raised

    async def _call(self, entry: _Entry, job: ReservedJob) -> object:
        """What a handler returned. Raises what it raised, or TypeError if that is something that nothing runs."""
        call = partial(entry.handler, *entry.arguments(job, self._context))
        returned: object = await self._executor.call(
            call, entry.conditions.timeout_s, f"job {job.id}"
        )
        check_done(returned)
        return returned

    def _verdict(self, failed: Sequence[_Failure]) -> Released | Buried:
        if len(self._entries) == 1:
            return failed[0].verdict
        return verdict_of_several(
            [replace(verdict, message=f"{name}: {verdict.message}") for name, _, verdict in failed]
        )


def _raised_by(failed: Sequence[_Failure]) -> BaseException:
    errors = [one.error for one in failed]
    names = ", ".join(one.name for one in failed)
    return errors[0] if len(errors) == 1 else BaseExceptionGroup(f"failed: {names}", errors)


def _short_name(handler: Handler) -> str:
    function = handler.func if isinstance(handler, partial) else handler
    return getattr(function, "__name__", type(function).__name__)


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if it is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


def _around(
    middleware: Callable[..., Awaitable[None]], call_next: Next, more: tuple[Any, ...]
) -> Next:
    return lambda job: middleware(job, call_next, *more)


def check_runs(handler: Callable[..., Any]) -> None:
    """Raises ValueError if a call of the handler would run nothing of it, because it has a `yield`."""
    call = getattr(type(handler), "__call__", None)  # noqa: B004  # of an object
    if any(map(_is_generator_function, (handler, call))):
        raise ValueError("has a yield: a call would make a generator and run nothing; use return")


def check_done(returned: object) -> None:
    """Raises TypeError if a handler returned something that still has to be run, as a generator or a function."""
    is_lazy = isinstance(returned, LAZY) or any(
        is_one(returned)
        for is_one in (
            inspect.isgenerator,
            inspect.isasyncgen,
            inspect.isawaitable,
            inspect.isroutine,
        )
    )
    if not is_lazy:
        return
    if inspect.iscoroutine(returned):
        returned.close()  # otherwise Python warns that it was never awaited
    raise TypeError(f"it returned a {type(returned).__name__}, which nothing runs")


def _is_generator_function(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
