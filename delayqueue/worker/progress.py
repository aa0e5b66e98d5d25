"""Tells the server how far a job is, while its handlers run."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from delayqueue.client.api_request import TransportError
from delayqueue.errors import NoSuchJob, QueueError, StaleReceipt
from delayqueue.tasks import at_most

if TYPE_CHECKING:
    from collections.abc import Callable

    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.client.aio import AsyncClient

log = logging.getLogger(__name__)

PAUSE_S: Final = 0.5  # between two calls; the page asks every two seconds
LEAVE_S: Final = 1.0  # for the last word, before the end of the job is reported


class ProgressReporter:
    """Tells how far a job is: the last word, one call at a time, and a failure only in the log.

    `scrub` returns what may be told of a message.
    """

    def __init__(self, client: AsyncClient, job: ReservedJob, scrub: Callable[[str], str]) -> None:
        self._client = client
        self._job = job
        self._scrub = scrub
        self._loop = asyncio.get_running_loop()
        self._is_used = False
        self._unsent: tuple[float | None, str | None] | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    def report(self, percent: float | None, message: str | None) -> None:
        """Note what to tell, from any thread; does not wait."""
        self._is_used = True
        with suppress(RuntimeError):  # the loop is closed: the thread was given up
            self._loop.call_soon_threadsafe(self._note, percent, message)

    def _note(self, percent: float | None, message: str | None) -> None:
        if self._ending.is_set():
            return
        if percent is None and self._unsent is not None:
            percent = self._unsent[0]
        self._unsent = percent, message
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._send(), name=f"progress of {self._job.id}")

    async def _send(self) -> None:
        while self._unsent is not None:
            (percent, message), self._unsent = self._unsent, None
            try:
                text = self._scrub(message) if message else None
                await self._client.touch(self._job, progress=percent, message=text)
            except (StaleReceipt, NoSuchJob):
                return  # the lease says so
            except (QueueError, TransportError, ValueError, TypeError) as error:
                log.warning("job %s: cannot tell its progress: %s", self._job.id, error)
            async with at_most(PAUSE_S):
                await self._ending.wait()
        self._reporting = None

    async def end(self) -> None:
        """Tell the last word, so that a job that failed shows where it stood; then nothing any more."""
        if not self._is_used:
            return
        await asyncio.sleep(0)  # what the handler has said comes first
        self._ending.set()
        if self._reporting is not None:
            await asyncio.wait([self._reporting], timeout=LEAVE_S)

    def drop(self) -> None:
        """Tell nothing any more."""
        self._ending.set()
        if self._reporting is not None:
            self._reporting.cancel()
