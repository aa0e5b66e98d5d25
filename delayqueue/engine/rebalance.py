"""Changes the number of buckets while servers work, and brings every job to its own: `delay-queue rebalance`."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from delayqueue.config import StartupError
from delayqueue.engine.migration import Migration
from delayqueue.errors import Unavailable
from delayqueue.limit import Limit
from delayqueue.store.caller import LayoutChanged
from delayqueue.store.layout import AnotherChange
from delayqueue.store.parcels import Parcels
from delayqueue.store.store import Store

KINDS: Final = ("job", "ended")
FIRST: Final = 0  # the bucket whose settings of topics the others take over
PATIENCE_S: Final = 60.0  # for a store that is away; a failover takes seconds
RETRY_S: Final = 0.5

T = TypeVar("T")


@dataclass
class Progress:
    """How far it is: in bucket number `bucket`, counted from 1, of so many."""

    bucket: int = 0
    buckets: int = 0
    looked: int = 0  # jobs and kept results of this bucket
    total: int = 0  # there were so many


class Rebalance:
    """One change. It can be stopped at any point, and be run again then, also by several at once.

    Its methods raise Unavailable where the store is away for longer than PATIENCE_S.
    """

    def __init__(self, store: Store, size: int) -> None:
        """`size` is the number of buckets that there shall be. `store` must not be confined."""
        self._store = store
        self._size = size
        self._parcels = Parcels(store)
        self._migration = Migration(store, lambda _bucket, _stir: None)
        self.moved = 0  # jobs and kept results
        self.progress = Progress()

    async def run(self) -> None:
        """Go through all of it. StartupError where it cannot be begun, AnotherChange where somebody was faster."""
        await self.begin()
        layout = self._store.buckets.layout
        buckets = layout.former_size if layout.moving else layout.size
        for bucket in range(buckets):
            self.progress = Progress(bucket + 1, buckets)
            for kind in KINDS:
                await self._empty(bucket, kind)
        while await self._patiently(self._migration.forward):
            pass
        await self._patiently(self._store.end_move)
        await self._apportion()

    async def begin(self) -> None:
        """Let jobs belong to their new buckets from now on; every verb finds them. Errors as `run`."""
        layout = self._store.buckets.layout
        if layout.moving and layout.size != self._size:
            raise StartupError(
                f"the jobs are on their way to {layout.size} buckets: "
                f"run `delay-queue rebalance --buckets {layout.size}` to its end first"
            )
        if layout.size != self._size:
            await self._check_limits()
            await self._store.begin_move(self._size)
        await self._apportion()

    async def _check_limits(self) -> None:
        for topic, each in (await self._settings()).items():
            most = Limit.read(each.get("limit", {})).concurrency
            if most is not None and most < self._size:
                raise StartupError(
                    f"the topic {topic!r} has a concurrency of {most}: each of {self._size} buckets needs 1"
                )

    async def _apportion(self) -> None:
        """Let topics be set everywhere as they are in the first bucket, each with its share of the limits."""
        settings: dict[str, Any] | None = None
        while settings != (settings := await self._settings()):
            for topic, each in settings.items():
                written = json.dumps(each)
                for bucket in range(self._store.buckets.count):
                    await self._patiently(partial(self._parcels.apportion, topic, written, bucket))

    async def _settings(self) -> dict[str, Any]:
        return await self._patiently(partial(self._store.topic_settings, FIRST))

    async def _empty(self, bucket: int, kind: str) -> None:
        """Bring away what does not belong to this bucket."""
        cursor = "0"
        while True:
            page = await self._patiently(partial(self._parcels.ids, bucket, kind, cursor))
            if cursor == "0":
                self.progress.total += page.total
            targets: dict[int, list[str]] = {}
            for job_id in page.ids:
                targets.setdefault(self._store.buckets.of(job_id), []).append(job_id)
            targets.pop(bucket, None)
            for target, ids in targets.items():
                await self._patiently(partial(self._migration.carry, bucket, target, ids))
                self.moved += len(ids)
            self.progress.looked += len(page.ids)
            cursor = page.cursor
            if cursor == "0":
                return

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it; while the store is away, try again. Everything here may be done twice."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                return await work()
            except LayoutChanged:
                raise AnotherChange from None
            except Unavailable:
                if loop.time() > until:
                    raise
                await asyncio.sleep(RETRY_S)
