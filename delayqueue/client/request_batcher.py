"""Joins pushes, or finishes, of one moment into one request, as the server joins them into one script call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import Code, QueueError, TooMany, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from delayqueue.client.api_request import ApiRequest

T = TypeVar("T")
Key: TypeAlias = tuple[str, str | None]

MAX_CHARS: Final = 1024 * 1024  # of bodies in a batch


@dataclass(slots=True)
class _Batch:
    """Requests that are sent as one; `codes`: one for each, none if the request as a whole was refused."""

    first: ApiRequest[Any]
    requests: list[dict[str, Any]] = field(default_factory=list)
    chars: int = 0
    waiting: int = 0
    codes: asyncio.Task[list[int]] | None = None

    def has_room(self, chars: int) -> bool:
        """Whether one more job fits."""
        return len(self.requests) < MAX_BATCH and self.chars + chars <= MAX_CHARS

    def leave(self) -> None:
        """Note that a caller no longer waits; a request for which nobody waits is given up."""
        self.waiting -= 1
        if self.codes is not None and not self.waiting:
            self.codes.cancel()


class RequestBatcher:
    """Sends requests of one turn of the event loop together, if they join. `send` makes a request.

    No request waits for others: a single one is sent alone, and one that hangs does not delay later ones.
    """

    def __init__(self, send: Callable[[ApiRequest[Any]], Awaitable[Any]]) -> None:
        self._send = send
        self._open: dict[Key, _Batch] = {}

    async def send(self, request: ApiRequest[T]) -> T:
        """Send a request; the result and the errors are the same as if it were sent alone."""
        key = request.path, request.json.get("message")  # it is that of all jobs of a request
        chars = len(request.json.get("body", ""))
        batch = self._open.get(key)
        if batch is None or not batch.has_room(chars):
            batch = self._open[key] = _Batch(request)
        place = len(batch.requests)
        batch.requests.append(request.json)
        batch.chars += chars
        batch.waiting += 1
        try:
            try:
                await asyncio.sleep(0)
            finally:  # even if this one is cancelled: the others must be sent
                self._close(key, batch)
            if batch.codes is not None:
                # cancelling one request must not cancel the others
                codes = await asyncio.shield(batch.codes)
                if codes and codes[place] == Code.OK:
                    return request.read(None)
        finally:
            batch.leave()
        result: T = await self._send(request)  # sent alone, or sent again to get its own error
        return result

    def _close(self, key: Key, batch: _Batch) -> None:
        if self._open.get(key) is batch:
            del self._open[key]
        if len(batch.requests) > 1 and batch.codes is None:
            batch.codes = asyncio.create_task(self._send_all(batch), name="batch")

    async def _send_all(self, batch: _Batch) -> list[int]:
        """Send the requests as one. Returns a code for each, [] if a single job may have caused an error.

        Such a job is refused, or cannot be sent, since its request is no JSON. Raises an error that concerns them all.
        """
        request = batch.first
        json = request.join(batch.requests) if request.join else None
        codes_of = partial(_codes, len(batch.requests))
        try:
            codes: list[int] = await self._send(replace(request, json=json, read=codes_of))
        except (Unavailable, TooMany):
            raise
        except (QueueError, TypeError, ValueError):
            return []
        return codes


def _codes(count: int, data: Any) -> list[int]:
    codes = [one["code"] for one in data]
    if len(codes) != count:
        raise ValueError(f"{len(codes)} codes of {count} jobs")
    return codes
