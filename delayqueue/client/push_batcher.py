"""Joins pushes of one moment into one array, as the server joins those of one moment into one script call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from delayqueue.client.calls import Call
from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import Code, QueueError, TooMany, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

MAX_CHARS: Final = 1024 * 1024  # of bodies in an array


@dataclass(slots=True)
class _Array:
    """`codes`: one for each job; empty if the array as a whole was refused. `traceparent`: that of the first call."""

    traceparent: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    chars: int = 0
    codes: asyncio.Future[list[int]] | None = None

    def has_room(self, chars: int) -> bool:
        """Whether one more job fits."""
        return len(self.requests) < MAX_BATCH and self.chars + chars <= MAX_CHARS


class PushBatcher:
    """Sends pushes of one turn of the event loop together. `send` makes a call.

    No push waits for others: a single one is sent alone, and one that hangs does not delay later ones.
    """

    def __init__(self, send: Callable[[Call[Any]], Awaitable[Any]]) -> None:
        self._send = send
        self._array: _Array | None = None
        self._sending: set[asyncio.Task[list[int]]] = set()

    async def send(self, call: Call[T]) -> T:
        """Send a call; the result and the errors are the same as if it were sent alone."""
        chars = len(call.request["body"])
        array = self._array
        if array is not None and array.has_room(chars):
            place = self._add(array, call, chars)
            await asyncio.sleep(0)  # until the call that opened the array has sent it
        else:
            array = self._array = _Array(call.traceparent)
            place = self._add(array, call, chars)
            try:
                await asyncio.sleep(0)
            finally:  # even if this one is cancelled: the others must be sent
                self._close(array)
        if array.codes is not None:
            # cancelling one call must not cancel the others
            codes = await asyncio.shield(array.codes)
            if codes and codes[place] == Code.OK:
                return call.read(None)
        result: T = await self._send(call)  # sent alone, or sent again to get its own error
        return result

    def _add(self, array: _Array, call: Call[Any], chars: int) -> int:
        array.requests.append(call.request)
        array.chars += chars
        return len(array.requests) - 1

    def _close(self, array: _Array) -> None:
        if self._array is array:
            self._array = None
        if len(array.requests) > 1:
            task = asyncio.create_task(self._send_all(array), name="push")
            self._sending.add(task)
            task.add_done_callback(self._done)
            array.codes = task

    def _done(self, task: asyncio.Task[list[int]]) -> None:
        self._sending.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be left to read it

    async def _send_all(self, array: _Array) -> list[int]:
        """The code of each. Raises an error that concerns them all; [] if a single job may have caused it."""
        codes_of = partial(_codes, len(array.requests))
        call = Call(
            "/push", array.requests, codes_of, repeatable=True, traceparent=array.traceparent
        )
        try:
            codes: list[int] = await self._send(call)
        except (Unavailable, TooMany):
            raise
        except QueueError:
            return []
        return codes


def _codes(count: int, data: Any) -> list[int]:
    codes = [one["code"] for one in data]
    if len(codes) != count:
        raise ValueError(f"{len(codes)} codes of {count} jobs")
    return codes
