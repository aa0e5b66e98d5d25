"""Moves jobs to the buckets where they belong, after the number of buckets was changed.

From then on every verb acts in the bucket where an id belongs now. Verbs by id first fetch what may still be in its
former bucket, so they find every job; all others are moved by `delay-queue rebalance`. Both take the same three steps,
each of which anybody can repeat:

- 1. The job leaves its bucket for a transfer (export.lua).
- 2. The other bucket imports the transfer, once (import.lua).
- 3. The transfer is dropped (confirm.lua).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.buckets import Buckets
from delayqueue.store.bucket.recovery import LayoutChanged
from delayqueue.store.bucket.transfers import Transfers
from delayqueue.store.types import Change

log = logging.getLogger(__name__)

INTERVAL_S: Final = 1.0  # how long transfers of a killed process can be left where they are
# about 3 ms of the store's time, 8 if they have tags, expire and are retained
JOBS_PER_TRANSFER: Final = 200
# of other processes between the same two buckets, that one fetch may meet
MOST_TRANSFERS: Final = 100


class Migration:
    """Fetches jobs for verbs, and completes what others have begun. `notify(bucket, change)` is called on arrivals."""

    def __init__(self, store: BucketStore, notify: Callable[[int, Change], None]) -> None:
        self._store = store
        self._transfers = Transfers(store)
        self._notify = notify

    @property
    def buckets(self) -> Buckets:
        """Where jobs belong."""
        return self._store.buckets

    async def follow(self, known: int) -> None:
        """Use a layout later than the generation `known`. Raises Unavailable if there is none."""
        await self._store.follow_layout(known)

    async def fetch(self, bucket: int, ids: Sequence[str]) -> set[str]:
        """Bring all jobs with these ids to `bucket`, where they belong; returns the ids that cannot be reached.

        Raises LayoutChanged if they belong elsewhere by now.
        """
        generation, lost = self.buckets.layout.generation, set[str]()

        async def bring(source: int, mine: Sequence[str]) -> None:
            try:
                await self.carry(source, bucket, mine, generation)
            except LayoutChanged:
                raise
            except Unavailable:
                lost.update(mine)

        astray = self.buckets.astray(bucket, ids)
        await asyncio.gather(*(bring(source, mine) for source, mine in astray.items()))
        return lost

    async def carry(self, source: int, target: int, ids: Sequence[str], generation: int) -> None:
        """Move the jobs with these ids from `source` to `target`, where they belong by the layout of `generation`.

        Raises Unavailable if the store fails, LayoutChanged if another layout is in use by now.
        """
        for at in range(0, len(ids), JOBS_PER_TRANSFER):
            piece = ids[at : at + JOBS_PER_TRANSFER]
            for _ in range(MOST_TRANSFERS + len(piece)):
                if self.buckets.layout.generation != generation:
                    raise LayoutChanged
                if not await self._carry_once(source, target, piece):
                    break
            else:
                raise Unavailable

    async def forward(self) -> int:
        """Complete what others have begun; returns the number of transfers. Raises Unavailable if one remains."""
        found, failed = 0, False
        for source in range(len(self.buckets.keys)):
            try:
                for target in await self._transfers.under_way(source):
                    found += await self._carry_once(source, target, [])
            except LayoutChanged:
                raise
            except Unavailable:
                failed = True  # other transfers go on
        if failed:
            raise Unavailable
        return found

    async def run(self) -> None:
        """While jobs move, complete what was left behind, and check whether the move is over, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            if not self.buckets.layout.moving:
                continue
            try:
                await self._store.follow_layout()
                await self.forward()
            except Unavailable:
                log.warning("jobs that move to other buckets wait for the store")

    async def _carry_once(self, source: int, target: int, ids: Sequence[str]) -> bool:
        """Move one transfer; returns False if there was none."""
        transfer = await self._transfers.export(source, target, ids)
        self._notify(source, transfer.change)
        if transfer.number == 0:
            return False
        self._notify(target, await self._transfers.import_(source, target, transfer))
        await self._transfers.confirm(source, target, transfer)
        return True
