"""An answer that depends on a call, whatever protocol carries it."""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Data = TypeVar("Data")


@dataclass(slots=True, eq=False)
class Later(Generic[Data]):
    """An answer that comes once a call has ended, in a callback: it needs no task.

    `read` makes it of the call's result, or raises the client's error. `leave` ends the call if its client is gone, and
    takes back what it gives away; None = the call changes nothing, or takes little time.
    """

    call: asyncio.Future[Any]
    read: Callable[[Any], Data]
    leave: Callable[[], object] | None = None

    def __await__(self) -> Generator[Any, None, Data]:
        """The answer, for a task whose cancellation means that the client is gone."""
        try:
            result = yield from self.call
        except asyncio.CancelledError:
            if self.leave is not None:
                self.leave()
            raise
        return self.read(result)
