"""What a command's answer is, and how it is given later. No IO."""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.errors import QueueError, TooMany, Unavailable
from delayqueue.net.later import Later

log = logging.getLogger(__name__)

# those that several commands give
DELETED: Final = b"DELETED\r\n"
NOT_FOUND: Final = b"NOT_FOUND\r\n"
TIMED_OUT: Final = b"TIMED_OUT\r\n"


class Closing(Exception):
    """The connection ends without an answer: its client quits, or the server is stopping."""


def answer_to(error: Exception) -> bytes:
    """The answer to an error, which is logged if it is a bug."""
    if isinstance(error, (Unavailable, TooMany)):
        return OUT_OF_MEMORY
    if isinstance(error, QueueError):
        return NOT_FOUND
    log.error("command failed", exc_info=error)
    return b"INTERNAL_ERROR\r\n"


@dataclass(slots=True, eq=False)
class Pending(Later["Answer"]):
    """An answer that comes later. `failed` makes it of an error of the call, or of `read`."""

    failed: Callable[[Exception], bytes] = answer_to


# What a command comes to. A coroutine runs as a task.
Answer: TypeAlias = bytes | Pending | Coroutine[Any, Any, bytes]
