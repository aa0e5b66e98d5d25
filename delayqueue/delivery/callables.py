"""Python handlers: loading them as the config file says, and calling them, whatever they do."""

import asyncio
import importlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

from delayqueue.config.sections import Declared
from delayqueue.config.startup import StartupError
from delayqueue.delivery.outcome import RESULT_BYTES, TOO_LONG, CallOutcome, Event
from delayqueue.delivery.side_loop import SideLoop
from delayqueue.domain.handler import check_done, check_runs
from delayqueue.domain.message import error_message, text_of
from delayqueue.domain.subscriber import Subscriber
from delayqueue.log import one_line
from delayqueue.threads import Threads

log = logging.getLogger(__name__)

Handler = Callable[[Event], Any]


def load_all(subscribers: Iterable[Declared[Subscriber]]) -> dict[str, Handler]:
    """The handlers that a config file names, by "package.module:callable". Raises StartupError if one is invalid."""
    handlers = {}
    for where, subscriber in subscribers:
        if subscriber.handler:
            try:
                handlers[subscriber.handler] = load(subscriber.handler)
            except ValueError as error:
                reason = one_line(str(error))
                raise StartupError(f"{where}: handler = {subscriber.handler}: {reason}") from None
    return handlers


def load(spec: str) -> Handler:
    """The callable at "package.module:callable". Raises ValueError, which says what is wrong, if there is none."""
    module, _, name = spec.partition(":")
    try:
        found = attrgetter(name)(importlib.import_module(module))
    except BaseException as error:  # a module may do anything, for example exit
        raise ValueError(f"cannot be imported: {error_message(error)}") from error
    if not callable(found):
        raise ValueError(f"is a {type(found).__name__} and cannot be called")  # noqa: TRY004  # of text
    check_runs(found)
    handler: Handler = found
    return handler


class PythonHandlers:
    """Calls handlers outside the server's loop: plain functions in threads, async ones in a loop of their own.

    They are other people's code. Whatever a handler raises, returns or does not finish only affects the outcome of its
    call. `handlers` are known by "package.module:callable".
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._threads = Threads("handlers")
        self._side_loop = SideLoop("loop of handlers")
        self._places: dict[Subscriber, asyncio.Semaphore] = {}

    def knows(self, subscriber: Subscriber) -> bool:
        """Whether the subscriber's handler is one of these."""
        return subscriber.handler in self._handlers

    async def call(self, subscriber: Subscriber, job: Event) -> CallOutcome:
        """Call a subscriber's handler; an exception is a failure, the return value is the message.

        At its timeout it has failed. Nothing can stop a plain function, so one that hangs keeps its place among the
        `concurrency` of its subscriber until it ends. An async one whose loop is blocked for all of that time has not
        been called.
        """
        timeout_s = subscriber.timeout_ms / 1000
        call = _HandlerCall(subscriber.handler, self._handlers[subscriber.handler], job)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._call(subscriber, call)
        except TimeoutError:
            if call.waits_for_loop:
                blocking = self._side_loop.current
                log.warning(
                    "%s was not called for %g s: %s blocks the loop of async handlers",
                    *(subscriber.name, timeout_s, blocking or "another handler"),
                )
            return CallOutcome(False, f"timeout: {timeout_s:g} s", called=not call.waits_for_loop)

    async def _call(self, subscriber: Subscriber, call: "_HandlerCall") -> CallOutcome:
        loop = asyncio.get_running_loop()
        place = self._places.setdefault(subscriber, asyncio.Semaphore(subscriber.concurrency))
        await place.acquire()
        is_held = True

        def release() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                place.release()

        def leave() -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(release)

        call.leave = leave
        try:
            if not call.is_async and (outcome := await self._in_thread(call)):
                return outcome
            call.waits_for_loop = call.is_async  # otherwise its first part has run in the thread
            return await self._side_loop.run(call.asynchronous())
        except asyncio.CancelledError:
            if call.waits_for_loop:
                call.abandon()
                leave()
            raise
        except RuntimeError as error:  # no thread can be started
            leave()
            return _failed(error)

    async def _in_thread(self, call: "_HandlerCall") -> CallOutcome | None:
        try:
            return await self._threads.run(call.plain)
        except asyncio.CancelledError:
            call.abandon()
            raise


class _HandlerCall:
    """One call of a handler. It raises nothing; at its end it calls `leave`, in any thread, possibly twice."""

    def __init__(self, name: str, handler: Handler, job: Event) -> None:
        self._name = name
        self._handler = handler
        self._job = job
        self.leave: Callable[[], None] = lambda: None
        self.waits_for_loop = False
        self._awaitable: Awaitable[Any] | None = None
        self._is_abandoned = False

    @property
    def is_async(self) -> bool:
        """Whether the handler is known to be async before it is called."""
        return inspect.iscoroutinefunction(self._handler) or inspect.iscoroutinefunction(
            getattr(self._handler, "__call__", None)  # noqa: B004  # an object whose __call__ is async
        )

    def plain(self) -> CallOutcome | None:
        """Call the handler; None if it turned out to be async and must still be awaited."""
        try:
            said = self._handler(self._job)
            if inspect.isawaitable(said):
                self._awaitable = said
                if self._is_abandoned:
                    self._drop()
                return None
            outcome = _succeeded(said)
        except BaseException as error:
            outcome = _failed(error)
        self.leave()
        return outcome

    async def asynchronous(self) -> CallOutcome:
        """Await the handler."""
        self.waits_for_loop = False
        # a task that is cancelled before it begins takes its first step all the same
        if self._is_abandoned:
            raise asyncio.CancelledError
        if (task := asyncio.current_task()) is not None:
            task.set_name(self._name)
        try:
            return _succeeded(await (self._awaitable or self._handler(self._job)))
        except BaseException as error:
            return _failed(error)
        finally:
            self.leave()

    def abandon(self) -> None:
        """Nobody waits for the call any longer: it is not begun, and nobody will await what the handler returns."""
        self._is_abandoned = True
        if self._awaitable is not None:
            self._drop()

    def _drop(self) -> None:
        if inspect.iscoroutine(self._awaitable):
            self._awaitable.close()  # otherwise Python warns that it was never awaited
        self.leave()


def _succeeded(said: object) -> CallOutcome:
    check_done(said)
    text = "" if said is None else text_of(said)
    written = text.encode()
    if len(written) <= RESULT_BYTES:
        return CallOutcome(True, text)
    return CallOutcome(True, written[:RESULT_BYTES].decode("utf-8", "ignore"), lacks=TOO_LONG)


def _failed(error: BaseException) -> CallOutcome:
    return CallOutcome(False, error_message(error), error=error)
