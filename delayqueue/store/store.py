"""The store: runs the verbs (verbs.py) for jobs of any bucket. The rest of the program sees nothing else of Redis.

`by_bucket` is the store one bucket at a time, for the parts that work on buckets: the timers, the polls, the scrubber,
and what changes the number of buckets.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final

from redis.asyncio import Redis

from delayqueue.config.values import Address
from delayqueue.domain.receipt import nonces
from delayqueue.errors import Text, Unavailable
from delayqueue.store.bucket.announcements import Announcements
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.registry import Registry
from delayqueue.store.bucket.slot_store import SlotStore
from delayqueue.store.census import Census
from delayqueue.store.router import Router
from delayqueue.store.servers.health import health
from delayqueue.store.servers.replication import Replicas
from delayqueue.store.types import Change, Health
from delayqueue.tasks import SingleFlight

log = logging.getLogger(__name__)

PING_S: Final = 1.0  # a server that takes longer to answer a PING is of little use


class Store:
    """Whatever asks the store raises Unavailable if it does not answer or refuses. `run` and `run_then`: see Router."""

    def __init__(self, by_bucket: BucketStore) -> None:
        self.by_bucket = by_bucket
        self.buckets = by_bucket.buckets
        self.metrics = by_bucket.metrics
        self._shards, self._durability = by_bucket.shards, by_bucket.durability
        self._on_ready: list[Callable[[int, str, int], None]] = []
        self._on_due: list[Callable[[int, int], None]] = []
        router = Router(by_bucket, self.notify)
        self.run, self.run_then = router.run, router.run_then
        self.nonces: Final = nonces()  # for RESERVE
        self.moving_by = asyncio.Lock()  # for the call that remembers each job that it has moved
        self._pings = SingleFlight[object](PING_S)
        self.registry = Registry(by_bucket, self.notify)
        self.slots = SlotStore(by_bucket)
        self.census = Census(by_bucket)

    def on_ready(self, listener: Callable[[int, str, int], None]) -> None:
        """Call `listener(bucket, topic, count)` whenever a call has made jobs ready."""
        self._on_ready.append(listener)

    def on_due(self, listener: Callable[[int, int], None]) -> None:
        """Call `listener(bucket, in_ms)` if something that a call has set is due within a second: in that many ms."""
        self._on_due.append(listener)

    def notify(self, bucket: int, change: Change) -> None:
        """Tell the listeners what a call has changed."""
        if change.next_due_ms is not None:
            for due in self._on_due:
                due(bucket, change.next_due_ms)
        for topic, count in change.ready:
            for ready in self._on_ready:
                ready(bucket, topic, count)

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

    async def away(self) -> set[int]:
        """The buckets whose server does not answer: not to the last call, or not to a PING now.

        Whoever asks meanwhile gets the same answer, so a flood of questions costs the store nothing.
        """
        numbers = {keys.tag: n for n, keys in enumerate(self.buckets.keys[: self.buckets.count])}
        groups = [{numbers[tag] for tag in tags} for tags in self._shards.groups(numbers).values()]
        answered = await asyncio.gather(*(self._answers(min(buckets)) for buckets in groups))
        reached = (buckets for buckets, answers in zip(groups, answered, strict=True) if answers)
        return set(numbers.values()).difference(*reached) | self.by_bucket.caller.away()

    async def _answers(self, bucket: int) -> bool:
        """Whether this bucket's server does; a PING that hangs is left to itself."""

        async def ping(redis: Redis) -> object:
            return await redis.ping()

        try:
            async with asyncio.timeout(PING_S):
                await self._pings.do(
                    bucket, lambda: self.by_bucket.caller.ask("ping", bucket, ping)
                )
        except (Unavailable, TimeoutError):
            return False
        return True

    async def listen(
        self,
        heard: Callable[[int, str, int], None],
        ended: Callable[[str], None],
        subscribed: Callable[[int], None],
    ) -> None:
        """Call `heard` with what other processes made ready, endlessly; see Announcements.listen."""
        await Announcements(self._shards, self.buckets, self.by_bucket.caller.sender).listen(
            heard, ended, subscribed
        )
