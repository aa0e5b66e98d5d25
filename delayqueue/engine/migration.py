"""Brings jobs to the buckets where they belong, once the number of buckets has been changed.

From then on every verb acts in the bucket where an id belongs now. The verbs by id first fetch what may still stand in
its former bucket, so they find every job; all others are brought by `delay-queue rebalance` (rebalance.py). Both ways
are the same three steps, of which each can be repeated, by anybody:
1. the job leaves its bucket for a parcel (send_off.lua);
2. the parcel is taken in by the other bucket, once (take_in.lua);
3. it is dropped (confirm.lua).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from delayqueue.errors import Unavailable
from delayqueue.store.buckets import Buckets
from delayqueue.store.caller import LayoutChanged
from delayqueue.store.parcels import Parcel, Parcels
from delayqueue.store.store import Store
from delayqueue.store.types import Stir

log = logging.getLogger(__name__)

INTERVAL_S: Final = 1.0  # how long what a killed process left on its way can stay there
JOBS_PER_PARCEL: Final = 200  # about 3 ms of the store's time
MOST_PARCELS: Final = (
    100  # that one fetch may meet: others are sending between the same two buckets
)


class Migration:
    """Fetches jobs for verbs, and completes what others have begun. `stir(bucket, stir)` hears what arrived."""

    def __init__(self, store: Store, stir: Callable[[int, Stir], None]) -> None:
        """`store` must not be confined."""
        self._store = store
        self._parcels = Parcels(store)
        self._stir = stir

    @property
    def buckets(self) -> Buckets:
        """Where jobs belong."""
        return self._store.buckets

    async def follow(self, known: int) -> None:
        """Act by a later layout than the generation `known`. Unavailable where there is none."""
        if self.buckets.layout.generation == known:
            await self._store.follow_layout()
        if self.buckets.layout.generation == known:
            raise Unavailable

    async def fetch(self, bucket: int, ids: Sequence[str]) -> None:
        """Let all jobs of these ids, which belong to `bucket`, be there. Unavailable where the store fails."""
        astray = self.buckets.astray(bucket, ids)
        if astray:
            carried = (self.carry(former, bucket, lost) for former, lost in astray.items())
            await asyncio.gather(*carried)

    async def carry(self, source: int, target: int, ids: Sequence[str]) -> None:
        """Bring what there is of these ids in `source` to `target`, where they belong.

        Unavailable where the store fails, LayoutChanged where they belong elsewhere by now.
        """
        for at in range(0, len(ids), JOBS_PER_PARCEL):
            await self._carry(source, target, ids[at : at + JOBS_PER_PARCEL])

    async def forward(self) -> int:
        """Complete what others have begun; returns how many parcels were on their way."""
        found = 0
        for source in range(self.buckets.count):
            for target in await self._parcels.under_way(source):
                found += 1
                await self._carry(source, target, [])
        return found

    async def run(self) -> None:
        """While jobs move, forward what is left behind and look for the end, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            if not self.buckets.layout.moving:
                continue
            try:
                await self._store.follow_layout()
                await self.forward()
            except Unavailable:
                log.warning("jobs that move to other buckets wait for the store")

    async def _carry(self, source: int, target: int, ids: Sequence[str]) -> None:
        generation = self.buckets.layout.generation
        for _ in range(MOST_PARCELS):
            if self.buckets.layout.generation != generation:
                raise LayoutChanged  # `target` may be wrong by now
            parcel = await self._parcels.send_off(source, target, ids)
            self._stir(source, parcel.stir)
            if parcel.number == 0:
                return
            await self._deliver(source, target, parcel)
        raise Unavailable

    async def _deliver(self, source: int, target: int, parcel: Parcel) -> None:
        self._stir(target, await self._parcels.take_in(source, target, parcel))
        await self._parcels.confirm(source, target, parcel)
