"""Python handlers: loading them from where the config file says, and calling them."""

import asyncio
import importlib
import inspect
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from delayqueue.config import StartupError
from delayqueue.delivery.outcome import Outcome
from delayqueue.delivery.threads import in_thread
from delayqueue.job import Reserved
from delayqueue.log import one_line
from delayqueue.sections import Declared

Handler = Callable[[Reserved], Any]


def load_all(subscribers: Iterable[Declared]) -> dict[str, Handler]:
    """The handlers that a config file names, by "package.module:callable". StartupError where one is none."""
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
    """The callable at "package.module:callable". ValueError says what is wrong with it."""
    module, _, name = spec.partition(":")
    try:
        found = attrgetter(name)(importlib.import_module(module))
    except Exception as error:
        raise ValueError(f"cannot be imported: {said_by(error)}") from error
    if not callable(found):
        raise ValueError(f"is a {type(found).__name__} and cannot be called")  # noqa: TRY004  # of text
    handler: Handler = found
    return handler


async def call(handler: Handler, job: Reserved, timeout_ms: int) -> Outcome:
    """Call a handler with a job; an exception is a failure. What it returns is the message.

    A plain function runs in a thread, which nothing can stop: the timeout is for async ones.
    """
    try:
        if _is_async(handler):
            async with asyncio.timeout(timeout_ms / 1000):
                said = await handler(job)
        else:
            said = await in_thread(lambda: handler(job), f"handler of {job.topic}")
    except TimeoutError as error:
        return Outcome(False, said_by(error) if str(error) else f"timeout: {timeout_ms / 1000:g} s")
    except (Exception, SystemExit) as error:  # it is somebody else's code: whatever it raises
        return Outcome(False, said_by(error))
    return Outcome(True, "" if said is None else str(said))


def said_by(error: BaseException) -> str:
    """An exception as a message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  # an object whose __call__ is async
    )
