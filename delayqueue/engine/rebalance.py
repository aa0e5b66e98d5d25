"""Changes the number of buckets while servers work, and brings every job to its own: `delay-queue rebalance`."""

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
from delayqueue.store.bucket.caller import LayoutChanged
from delayqueue.store.bucket.layout import AnotherChange
from delayqueue.store.bucket.limits import FIRST, Limits
from delayqueue.store.bucket.migration import Migration
from delayqueue.store.bucket.transfers import Transfers
from delayqueue.store.topics import check_concurrency

KINDS: Final = ("job", "ended")
OWN: Final = ""  # in place of settings: those that the bucket has
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

    Its methods raise Unavailable if the store is away for longer than PATIENCE_S, StartupError if it cannot be
    begun, AnotherChange if somebody else has changed the number of buckets meanwhile.
    """

    def __init__(self, store: BucketStore, size: int) -> None:
        """`size` is the number of buckets that there shall be."""
        self._store = store
        self._size = size
        self._transfers = Transfers(store)
        self._limits = Limits(store)
        self._migration = Migration(store, lambda _bucket, _change: None)
        self._generation = store.buckets.layout.generation  # what all of this is about
        self.moved = 0  # jobs and kept results
        self.progress = Progress()

    async def run(self) -> None:
        """Go through all of it."""
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
        """Let jobs belong to their new buckets from now on; every verb finds them."""
        layout = self._store.buckets.layout
        if layout.moving and layout.size != self._size:
            raise StartupError(
                f"the jobs are on their way to {layout.size} buckets: "
                f"run `delay-queue rebalance --buckets {layout.size}` to its end first"
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
        """Let topics be set in these buckets as in the first one, each with its share, one of `count`, of the limits.

        Until nobody has changed anything meanwhile: who sets a topic begins with the first bucket.
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
        """What is set for topics, without the bucket's share of it."""
        settings = await self._patiently(partial(self._store.topic_settings, bucket))
        for each in settings.values():
            each.get("limit", {}).pop("share", None)
        return settings

    async def _empty(self, bucket: int, kind: str) -> None:
        """Bring away what does not belong to this bucket."""
        cursor, process = "0", b""
        while True:
            page = await self._patiently(partial(self._transfers.ids, bucket, kind, cursor))
            if cursor == "0":
                process = page.process
                self.progress.total += page.total
            elif page.process != process:  # of another store: the cursor meant nothing to it
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
        """Do it; while the store is away, try again. Everything here may be done twice."""
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
