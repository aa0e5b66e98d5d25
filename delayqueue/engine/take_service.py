"""Takes jobs out of the queue for a client, and puts them back if the client is gone before they can have arrived."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from delayqueue.engine.undo import undo
from delayqueue.errors import Unavailable
from delayqueue.store.paging import take
from delayqueue.store.store import Store
from delayqueue.store.types import Range, Taken
from delayqueue.store.verbs import RESTORE
from delayqueue.tasks import Tasks

log = logging.getLogger(__name__)


class TakeService:
    """Takes jobs: the client gets all of them, or nothing is taken."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._restoring = Tasks("restore")
        self._closing = asyncio.Event()

    async def take(self, topic: str, due: Range, most: int) -> list[Taken]:
        """Remove and return the first jobs of a range, up to `most` and MAX_ANSWER_BYTES; each goes to one caller only.

        If the store fails, returns what was taken before; raises Unavailable if that is nothing. A cancelled caller
        takes nothing.
        """
        work = asyncio.create_task(take(self._store, topic, due, most), name="take")
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._restoring.start(self._undo(work))
            raise

    def restore(self, jobs: Sequence[Taken]) -> None:
        """Undo takes whose client is gone, in the background."""
        self._restoring.start(self._restore(jobs))

    async def close(self) -> None:
        """Wait until all jobs are put back; those that the store has refused are tried once more, at once."""
        self._closing.set()
        await self._restoring.ended()

    async def _undo(self, work: asyncio.Task[list[Taken]]) -> None:
        with suppress(Unavailable):
            await self._restore(await work)

    async def _restore(self, jobs: Sequence[Taken]) -> None:
        if lost := await undo(self._store, RESTORE, jobs, self._closing):
            log.error(
                "%d jobs are lost: their client was gone, and the store was unavailable", lost
            )
