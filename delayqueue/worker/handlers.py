"""Which functions handle which topics, and how a job runs through them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from delayqueue.answers.jobs import ReservedJob
from delayqueue.client import tracing
from delayqueue.client.several import Collected, several
from delayqueue.domain.handler import check_done, check_runs
from delayqueue.domain.message import message_of
from delayqueue.worker.arguments import Arguments, arguments_of, name_of, required
from delayqueue.worker.current import handling
from delayqueue.worker.policy import Policy
from delayqueue.worker.verdict import Bury, Finished, Hopeless, Retry, TimeLimit, Verdict

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

UNTOLD: Final = "(a message that could not be scrubbed)"


class Conditions(NamedTuple):
    """Under which a handler runs; an error of `bury_on`, or of none of `retry_on`, is not worth another attempt."""

    order: int = 0
    timeout_s: float | None = None
    bury_on: tuple[type[BaseException], ...] = ()
    retry_on: tuple[type[BaseException], ...] = (Exception,)

    def is_hopeless(self, error: BaseException) -> bool:
        """Whether another attempt would end like this one. Only errors of the handler itself can be such."""
        if isinstance(error, (Retry, Bury, TimeLimit)) or not isinstance(error, Exception):
            return False
        return isinstance(error, self.bury_on) or not isinstance(error, self.retry_on)


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
    handler: Handler
    arguments: Arguments
    conditions: Conditions


class Handlers:
    """The handlers of each topic, in order, the middlewares around them all, and the context that they share."""

    def __init__(self) -> None:
        self._of_topic: dict[str, list[_Entry]] = {}
        self._policies: dict[str, Policy] = {}
        self._middlewares: list[tuple[Callable[..., Awaitable[None]], bool]] = []
        self._lifespan: Lifespan | None = None
        self._scrubs: list[Callable[[str], str]] = []

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that have handlers."""
        return tuple(self._of_topic)

    def add(
        self,
        topic: str,
        handler: Handler,
        conditions: Conditions,
        arguments: Arguments | None = None,
    ) -> None:
        """Call `handler` for jobs of `topic`, with these `arguments`, or those that it asks for.

        Raises ValueError if the handler has an argument that no handler gets, or a yield.
        """
        try:
            check_runs(handler)
        except ValueError as error:
            raise ValueError(f"{name_of(handler)}: {error}") from None
        if arguments is None:
            arguments = arguments_of(handler)
        entries = self._of_topic.setdefault(topic, [])
        entries.append(_Entry(conditions.order, len(entries), handler, arguments, conditions))
        entries.sort(key=lambda entry: entry[:2])

    def set_policy(self, topic: str, policy: Policy) -> None:
        """Set what happens to failed jobs of `topic`. Raises ValueError if another handler has set something else."""
        if self._policies.setdefault(topic, policy) != policy:
            raise ValueError(f"{topic}: its handlers must agree on retry and max_attempts")

    def policy_of(self, topic: str) -> Policy:
        """What happens to failed jobs of `topic` without their own schedule."""
        return self._policies.get(topic, Policy())

    def wrap(self, middleware: Middleware) -> None:
        """Call `middleware` around the handlers of each job, the first one outermost."""
        self._middlewares.append((middleware, len(required(middleware)) > 2))

    def scrub(self, scrub: Callable[[str], str]) -> None:
        """Let `scrub` change the messages and tracebacks of verdicts."""
        self._scrubs.append(scrub)

    def scrubbed(self, verdict: Verdict) -> Verdict:
        """The verdict with what may be told of it."""
        if not self._scrubs:
            return verdict
        if isinstance(verdict, Finished):
            return replace(verdict, message=self._clean(verdict.message))
        message, calls = self._clean(verdict.message), self._clean(verdict.traceback)
        return replace(verdict, message=message, traceback=calls)

    def _clean(self, text: str) -> str:
        try:
            for scrub in self._scrubs:
                text = message_of(scrub(text)) if text else ""
        except Exception:
            log.exception("%s raised: the server is not told the message", name_of(scrub))
            return UNTOLD
        return text

    def live(self, lifespan: Lifespan) -> None:
        """Use what `lifespan` yields as the context. Raises ValueError if there is one already."""
        if self._lifespan is not None:
            raise ValueError(
                "lifespan: a worker has only one; let it yield everything that handlers need"
            )
        self._lifespan = lifespan

    def context(self) -> AbstractAsyncContextManager[Any]:
        """What the handlers share, from its start to its end; None without a lifespan."""
        return nullcontext() if self._lifespan is None else asynccontextmanager(self._lifespan)()

    async def run(self, job: ReservedJob, executor: Executor, context: Any) -> str:
        """Call the job's handlers one after the other; an exception ends it. Returns their messages."""
        messages: list[str] = []

        async def innermost(job: ReservedJob) -> None:
            for entry in self._of_topic[job.topic]:
                call = partial(entry.handler, *entry.arguments(job, context))
                try:
                    result = await executor.call(call, entry.conditions.timeout_s, f"job {job.id}")
                except BaseException as error:
                    if entry.conditions.is_hopeless(error):
                        raise Hopeless from error
                    raise
                check_done(result)
                if result is not None:
                    messages.append(message_of(result))

        course: Next = innermost
        for middleware, takes_context in reversed(self._middlewares):
            course = _around(middleware, course, (context,) if takes_context else ())
        with handling(job, context), tracing.processing(job, no_failure=Retry):
            await course(job)
        return "; ".join(messages)


def _around(
    middleware: Callable[..., Awaitable[None]], course: Next, more: tuple[Any, ...]
) -> Next:
    return lambda job: middleware(job, course, *more)
