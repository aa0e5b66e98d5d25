"""The store: one method per verb, for jobs of any bucket. The rest of the program sees nothing else of Redis.

The router brings each job to its bucket; `by_bucket` is the store one bucket at a time, for the parts that work on
buckets: the timers, the polls, the scrubber, and what changes the number of buckets.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Final

from delayqueue.config.values import Address
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import Job, JobView
from delayqueue.errors import Code, Text, Unavailable
from delayqueue.store.bucket.announcements import Announcements
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.migration import Migration
from delayqueue.store.bucket.ranges import Ranges
from delayqueue.store.bucket.recovery import LayoutChanged
from delayqueue.store.bucket.registry import Registry
from delayqueue.store.bucket.results import Results
from delayqueue.store.bucket.slot_store import SlotStore
from delayqueue.store.looking import Looking
from delayqueue.store.lookup import Lookup
from delayqueue.store.router import Call, Item, Result, Router
from delayqueue.store.servers.health import health
from delayqueue.store.servers.replication import Replicas
from delayqueue.store.takes import Takes
from delayqueue.store.types import (
    NO_CHANGE,
    Burial,
    Change,
    Ending,
    Health,
    Kick,
    Moved,
    Postponement,
    Range,
    Recording,
    Release,
    Requeue,
    Reschedule,
    Reservation,
    Settlement,
    Taken,
    Touch,
)

log = logging.getLogger(__name__)

QuietCall = Callable[[int, list[Item], Scope], Awaitable[Sequence[Result]]]

LOST: Final = int(Code.UNAVAILABLE)  # of jobs whose bucket does not answer while others do


class Store:
    """Every method raises Unavailable if the store does not answer or refuses.

    If only some buckets do not answer, verbs that return a code for each job give their jobs UNAVAILABLE. `scope` are
    the topics that a client may reach: jobs of other topics do not exist for it.
    """

    def __init__(self, by_bucket: BucketStore) -> None:
        self.by_bucket = by_bucket
        self.buckets = by_bucket.buckets
        self.metrics = by_bucket.metrics
        self._shards, self._durability = by_bucket.shards, by_bucket.durability
        self._listeners: list[Callable[[int, Change], None]] = []
        self.migration = Migration(by_bucket, self.notify)
        results, self._ranges = Results(by_bucket), Ranges(by_bucket)
        self._push = self._router("push", by_bucket.push, LOST, lambda job: len(job.body))
        self._finish = self._router("finish", by_bucket.finish, LOST)
        self._delete = self._router("delete", by_bucket.delete, LOST)
        self._bury = self._router("bury", by_bucket.bury)
        self._reserve = self._router("reserve", by_bucket.reserve)
        self._release = self._router("release", by_bucket.release)
        self._touch = self._quiet_router("touch", by_bucket.touch)
        self._record = self._quiet_router("record", results.record)
        self._postpone = self._router("postpone", results.postpone)
        self._reschedule = self._router("reschedule", by_bucket.reschedule, Moved(LOST, None))
        self._kick = self._router("kick", by_bucket.kick, LOST, lambda one: len(one.body or ""))
        self._settle = self._quiet_router("settle", by_bucket.settle)
        self._requeue = self._router("requeue", self._requeue_in, lost=True)
        self._restore = self._router(
            "restore", self._restore_in, lost=True, bytes_of=lambda job: len(job.record)
        )
        self._lookup = Lookup(
            self._quiet_router("weigh", by_bucket.weigh), self._quiet_router("get", by_bucket.get)
        )
        self.moving_by = asyncio.Lock()  # for the call that remembers each job that it has moved
        self.looking = Looking(by_bucket)
        self.registry = Registry(by_bucket, self.migration, self.notify)
        self.slots = SlotStore(by_bucket)
        self._takes = Takes(by_bucket)

    def on_change(self, listener: Callable[[int, Change], None]) -> None:
        """Call `listener(bucket, change)` whenever a call has made jobs ready, or due earlier."""
        self._listeners.append(listener)

    def notify(self, bucket: int, change: Change) -> None:
        """Tell the listeners."""
        for listener in self._listeners:
            listener(bucket, change)

    def push(
        self, jobs: Sequence[Job], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[int]]:
        """Add or replace jobs. Returns a code for each."""
        return self._push.run(jobs, scope)

    def finish(
        self, endings: Sequence[Ending], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[int]]:
        """End jobs whose work is done. Returns a code for each."""
        return self._finish.run(endings, scope)

    def delete(
        self, endings: Sequence[Ending], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[int]]:
        """End jobs that are no longer wanted. Returns a code for each."""
        return self._delete.run(endings, scope)

    def bury(
        self, burials: Sequence[Burial], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[int]]:
        """Bury jobs. Returns a code for each."""
        return self._bury.run(burials, scope)

    def reserve(
        self, ids: Sequence[str], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[Reservation]]:
        """Reserve jobs that are not reserved, in any other state."""
        return self._reserve.run(ids, scope)

    def release(
        self, releases: Sequence[Release], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[Moved]]:
        """Give reserved jobs back. Returns the new due time of each, None if it was buried or has expired."""
        return self._release.run(releases, scope)

    def touch(
        self, touches: Sequence[Touch], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[Moved]]:
        """Extend reservations. Returns the new deadline of each."""
        return self._touch.run(touches, scope)

    def record(self, recordings: Sequence[Recording]) -> Coroutine[None, None, list[int]]:
        """Record subscribers' results for jobs that are reserved for them. Returns a code for each."""
        return self._record.run(recordings)

    def postpone(self, postponements: Sequence[Postponement]) -> Coroutine[None, None, list[Moved]]:
        """Give reserved jobs back until a subscriber may be called again.

        Returns the due time of each, None if it was buried.
        """
        return self._postpone.run(postponements)

    def reschedule(
        self, reschedules: Sequence[Reschedule], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[Moved]]:
        """Give jobs that are not reserved a new due time, a new priority, or both."""
        return self._reschedule.run(reschedules, scope)

    def kick(
        self, kicks: Sequence[Kick], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[int]]:
        """Make buried or delayed jobs ready now. Returns a code for each."""
        return self._kick.run(kicks, scope)

    def get(
        self, ids: Sequence[str], scope: Scope = EVERYWHERE
    ) -> Coroutine[None, None, list[JobView | None]]:
        """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
        return self._lookup.get(ids, scope)

    def settle(self, settlements: Sequence[Settlement]) -> Coroutine[None, None, list[int]]:
        """Give staged jobs their due times, or drop them. Returns a code for each."""
        return self._settle.run(settlements)

    def take(self, topic: str, due: Range, most: int) -> Coroutine[None, None, list[Taken]]:
        """Remove and return the first jobs of a range, up to `most` and MAX_ANSWER_BYTES; each goes to one caller only.

        If the store fails, returns what was taken before.
        """
        return self._takes.take(topic, due, most)

    def requeue(self, returns: Sequence[Requeue]) -> Coroutine[None, None, list[bool]]:
        """Undo reservations: back to the head of the list, or where `reserve` found them, without counting the attempt.

        Returns whether each is lost.
        """
        return self._requeue.run(returns)

    def restore(self, jobs: Sequence[Taken]) -> Coroutine[None, None, list[bool]]:
        """Undo takes; a job that was pushed with the same id since stays. Returns whether each is lost."""
        return self._restore.run(jobs)

    async def health(self) -> Health:
        """The servers' figures; servers that do not answer are left out, unless none does."""
        found = await health(self._shards)
        warnings = self.warnings
        return found._replace(
            durable=found.durable and not warnings, warnings=[*found.warnings, *warnings]
        )

    @property
    def replicas(self) -> Replicas | None:
        """What calls wait for, with `durability = replica`."""
        return self._durability.replicas

    @property
    def warnings(self) -> Sequence[Text]:
        """Why a failover could lose an acknowledged job right now, if `durability` should prevent that."""
        return self.replicas.warnings if self.replicas else ()

    def servers(self) -> Collection[Address]:
        """The addresses of the servers that hold buckets."""
        return self._shards.servers().keys()

    def beside(self, bucket: int) -> list[int]:
        """The buckets on the same server, including this one."""
        keys = self.buckets.keys[: self.buckets.count]
        groups = self._shards.groups(each.tag for each in keys).values()
        tags = next((group for group in groups if keys[bucket].tag in group), [keys[bucket].tag])
        return [number for number, each in enumerate(keys) if each.tag in tags]

    async def listen(
        self, heard: Callable[[int, str, int], None], subscribed: Callable[[int], None]
    ) -> None:
        """Call `heard` with what other processes made ready, endlessly; see Announcements.listen."""
        await Announcements(self._shards, self.buckets, self.by_bucket.caller.sender).listen(
            heard, subscribed
        )

    async def _requeue_in(
        self, bucket: int, returns: list[Requeue], _scope: Scope
    ) -> tuple[list[bool], Change]:
        left = len(returns)
        try:
            while left:
                looked, change = await self.by_bucket.requeue(bucket, returns[:left])
                left -= looked
                self.notify(bucket, change)
        except LayoutChanged:
            raise
        except Unavailable as error:
            log.debug("cannot put jobs back: %s", error)
        return [place < left for place in range(len(returns))], NO_CHANGE

    async def _restore_in(
        self, bucket: int, jobs: list[Taken], _scope: Scope
    ) -> tuple[list[bool], Change]:
        try:
            change = await self._ranges.restore(bucket, jobs)
        except LayoutChanged:
            raise
        except Unavailable:
            return [True] * len(jobs), NO_CHANGE
        return [False] * len(jobs), change

    def _router(
        self,
        name: str,
        call: Call[Item, Result],
        lost: Result | None = None,
        bytes_of: Callable[[Item], int] | None = None,
    ) -> Router[Item, Result]:
        return Router(name, call, self.migration, self.notify, lost, bytes_of)

    def _quiet_router(self, name: str, call: QuietCall[Item, Result]) -> Router[Item, Result]:
        """A router for a verb that makes nothing ready or due."""

        async def run(
            bucket: int, items: list[Item], scope: Scope
        ) -> tuple[Sequence[Result], Change]:
            return await call(bucket, items, scope), NO_CHANGE

        return Router(name, run, self.migration, self.notify)
