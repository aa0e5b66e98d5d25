"""What a command's answer is, and how it is given later. No IO."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeAlias

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.errors import QueueError, TooMany, Unavailable

log = logging.getLogger(__name__)

BURIED: Final = b"BURIED\r\n"
DEADLINE_SOON: Final = b"DEADLINE_SOON\r\n"
DELETED: Final = b"DELETED\r\n"
DRAINING: Final = b"DRAINING\r\n"
INTERNAL_ERROR: Final = b"INTERNAL_ERROR\r\n"
KICKED: Final = b"KICKED\r\n"
NOT_FOUND: Final = b"NOT_FOUND\r\n"
NOT_IGNORED: Final = b"NOT_IGNORED\r\n"
PAUSED: Final = b"PAUSED\r\n"
RELEASED: Final = b"RELEASED\r\n"
TIMED_OUT: Final = b"TIMED_OUT\r\n"
TOUCHED: Final = b"TOUCHED\r\n"


class Closing(Exception):
    """The connection ends without an answer: its client quits, or the server is stopping."""


# A call under way. Functions that are made for each command take it by this name: an annotation asyncio.Future[Any]
# would be built at each command, at ten times the cost of the function.
Call: TypeAlias = asyncio.Future[Any]


class Pending(NamedTuple):
    """An answer that depends on a call.

    Once the call has ended, `read` makes the answer of it, or raises. `stop` ends the call early if nobody waits for it
    any more; None = it takes little time.
    """

    call: Awaitable[Any]
    read: Callable[[Call], "Answer"]
    stop: Callable[[], object] | None = None


# What a command comes to. A coroutine runs as a task.
Answer: TypeAlias = bytes | Pending | Coroutine[Any, Any, bytes]


def answer_to(error: Exception) -> bytes:
    """The answer to an error, which is logged if it is a bug."""
    if isinstance(error, (Unavailable, TooMany)):
        return OUT_OF_MEMORY
    if isinstance(error, QueueError):
        return NOT_FOUND
    log.error("command failed", exc_info=error)
    return INTERNAL_ERROR
