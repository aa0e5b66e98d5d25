"""Changes the number of buckets while servers work, and moves every job to its bucket: `delay-queue rebalance`."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from delayqueue.config.startup import StartupError
from delayqueue.domain.limit import Limit
from delayqueue.errors import Invalid, Unavailable
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.following import AnotherChange
from delayqueue.store.bucket.limits import FIRST, Limits
from delayqueue.store.bucket.migration import Migration
from delayqueue.store.bucket.recovery import LayoutChanged
from delayqueue.store.bucket.transfers import Transfers
from delayqueue.store.topics import check_concurrency

KINDS: Final = ("job", "ended")
OWN: Final = ""  # instead of settings: those that the bucket has
PATIENCE_S: Final = 60.0  # for a store that is unavailable; a failover takes seconds
RETRY_S: Final = 0.5

T = TypeVar("T")


@dataclass
class Progress:
    """How far it is: in bucket number `bucket`, counted from 1, of `buckets`."""

    bucket: int = 0
    buckets: int = 0
    looked: int = 0  # jobs and kept results of this bucket
    total: int = 0  # as counted at the start


class Rebalance:
    """One change. It can be stopped at any point and run again, also by several processes at once.

    Its methods raise Unavailable if the store is unavailable for longer than PATIENCE_S, StartupError if the change
    cannot begin, AnotherChange if somebody else has changed the number of buckets meanwhile.
    """

    def __init__(self, store: BucketStore, size: int) -> None:
        """`size` is the new number of buckets."""
        self._store = store
        self._size = size
        self._transfers = Transfers(store)
        self._limits = Limits(store)
        self._migration = Migration(store, lambda _bucket, _change: None)
        self._generation = store.buckets.layout.generation  # of the layout that this change makes
        self.moved = 0  # jobs and kept results
        self.progress = Progress()

    async def run(self) -> None:
        """Do everything."""
        await self.begin()
        layout = self._store.buckets.layout
        self._store.buckets.know(max(layout.size, *layout.former_sizes, 0))
        moved = -1
        while moved != self.moved:  # a failover in between can have brought jobs back
            moved = self.moved
            for bucket in range(len(self._store.buckets.keys)):
                self.progress = Progress(bucket + 1, len(self._store.buckets.keys))
                for kind in KINDS:
                    await self._empty(bucket, kind)
            while await self._patiently(self._migration.forward):
                pass
        await self._split_limits(range(self._size), self._size)
        await self._patiently(partial(self._store.end_move, layout))
        await self._split_limits(range(self._size), self._size)

    async def begin(self) -> None:
        """Assign jobs to their new buckets from now on; every verb finds them."""
        layout = self._store.buckets.layout
        if layout.moving and layout.size != self._size:
            raise StartupError(
                f"jobs are being moved to {layout.size} buckets: "
                f"run `delay-queue rebalance --buckets {layout.size}` to the end first"
            )
        if layout.size != self._size:
            await self._check_limits()
            most = max(layout.size, self._size)
            self._store.buckets.know(most)
            await self._split_limits(range(layout.size, most), most)
            await self._store.begin_move(self._size)
            self._generation = self._store.buckets.layout.generation
        count = self._store.buckets.count
        await self._split_limits(range(count), count)

    async def _check_limits(self) -> None:
        for topic, each in (await self._settings(FIRST)).items():
            try:
                check_concurrency(Limit.read(each.get("limit", {})).concurrency, self._size)
            except Invalid as error:
                raise StartupError(f"the topic {topic!r}: {error}") from None

    async def _split_limits(self, buckets: range, count: int) -> None:
        """Give topics the first bucket's settings in these buckets, each with its share (1/`count`) of the limits.

        Repeats until the settings have not changed meanwhile: a change of settings begins at the first bucket.
        """
        written: dict[str, Any] = {}
        settings = await self._settings(FIRST)
        while True:
            for bucket in buckets:
                theirs = {} if bucket == FIRST else await self._settings(bucket)
                for topic in settings.keys() | theirs.keys() | written.keys():
                    wanted = OWN if bucket == FIRST else json.dumps(settings.get(topic, {}))
                    set_it = partial(self._limits.split_limits, bucket, topic, wanted, count)
                    await self._patiently(set_it)
            written, settings = settings, await self._settings(FIRST)
            if settings == written:
                return

    async def _settings(self, bucket: int) -> dict[str, Any]:
        """The settings of topics, without the bucket's share."""
        settings = await self._patiently(partial(self._store.topic_settings, bucket))
        for each in settings.values():
            each.get("limit", {}).pop("share", None)
        return settings

    async def _empty(self, bucket: int, kind: str) -> None:
        """Move everything away that does not belong to this bucket."""
        cursor, process = "0", b""
        while True:
            page = await self._patiently(partial(self._transfers.ids, bucket, kind, cursor))
            if cursor == "0":
                process = page.process
                self.progress.total += page.total
            elif page.process != process:  # another store: its cursor is meaningless here
                cursor = "0"
                continue
            await self._bring_away(bucket, page.ids)
            self.progress.looked += len(page.ids)
            cursor = page.cursor
            if cursor == "0":
                return

    async def _bring_away(self, bucket: int, ids: list[str]) -> None:
        targets: dict[int, list[str]] = {}
        for job_id in ids:
            targets.setdefault(self._store.buckets.of(job_id), []).append(job_id)
        targets.pop(bucket, None)
        for target, astray in targets.items():
            work = partial(self._migration.carry, bucket, target, astray, self._generation)
            await self._patiently(work)
            self.moved += len(astray)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it, and retry while the store is unavailable. Everything here is idempotent."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                result = await work()
            except LayoutChanged:
                raise AnotherChange from None
            except Unavailable:
                if loop.time() > until:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            if self._store.buckets.layout.generation != self._generation:
                raise AnotherChange
            return result
