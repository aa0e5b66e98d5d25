"""Calls of one moment that go as one array, as the server joins those of one moment into a script."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
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
    """`codes`: what became of each; none where the array as such was refused."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    chars: int = 0
    codes: asyncio.Future[list[int]] | None = None

    def has_room(self, chars: int) -> bool:
        """Whether one more can go with these."""
        return len(self.requests) < MAX_BATCH and self.chars + chars <= MAX_CHARS


class Joining:
    """Pushes that are made in the same turn of the loop go together. `send` makes a call.

    Nobody waits for others: one that is made alone is sent alone, and one that hangs holds up no later one.
    """

    def __init__(self, send: Callable[[Call[Any]], Awaitable[Any]]) -> None:
        self._send = send
        self._array: _Array | None = None
        self._sending: set[asyncio.Task[list[int]]] = set()

    async def send(self, call: Call[T]) -> T:
        """As if it were sent alone, and raises the same."""
        chars = len(call.request["body"])
        array = self._array
        if array is not None and array.has_room(chars):
            place = self._add(array, call, chars)
            await asyncio.sleep(0)  # until the one that began it has sent it
        else:
            array = self._array = _Array()
            place = self._add(array, call, chars)
            try:
                await asyncio.sleep(0)
            finally:  # also if this one is cancelled: the others go all the same
                self._close(array)
        if array.codes is not None:
            # one that is cancelled must not take the others along
            codes = await asyncio.shield(array.codes)
            if codes and codes[place] == Code.OK:
                return call.read(None)
        result: T = await self._send(call)  # alone; or the answer says what is wrong
        return result

    def _add(self, array: _Array, call: Call[Any], chars: int) -> int:
        array.requests.append(call.request)
        array.chars += chars
        return len(array.requests) - 1

    def _close(self, array: _Array) -> None:
        if self._array is array:
            self._array = None
        if len(array.requests) > 1:
            task = asyncio.create_task(self._send_all(array.requests), name="push")
            self._sending.add(task)
            task.add_done_callback(self._done)
            array.codes = task

    def _done(self, task: asyncio.Task[list[int]]) -> None:
        self._sending.discard(task)
        if not task.cancelled():
            task.exception()  # all callers may be gone

    async def _send_all(self, requests: list[dict[str, Any]]) -> list[int]:
        """The code of each. Raises what would be raised of each alone; [] if only one may be to blame."""
        try:
            codes: list[int] = await self._send(Call("/push", requests, _codes, repeatable=True))
        except (Unavailable, TooMany):
            raise
        except QueueError:
            return []
        return codes


def _codes(data: Any) -> list[int]:
    return [one["code"] for one in data]
