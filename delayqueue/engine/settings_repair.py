"""Repairs settings of topics that are not the same in all buckets.

A change is written to the first bucket, then copied to the others (store/topics.py). If a server dies in between, or a
bucket does not answer, a topic would stay paused, or limited, in some of the buckets only.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.call import settings_of
from delayqueue.store.record import text
from delayqueue.store.store import Store
from delayqueue.store.topics import let_others_follow

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0
PAGE: Final = 100  # topics of a bucket that a look takes, about: 0.1 ms of the store's time

Settings = Mapping[str, Any]
Unlike = Mapping[str, Sequence[Settings]]  # what the buckets have, by topic


class SettingsRepair:
    """Lets the first bucket's settings win.

    Only those that were the same at two looks are repaired: what has just been changed is being copied already. A
    change that comes in between wins all the same, as let_others_follow() looks again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursors: dict[int, int] = {}  # by bucket: where the next look goes on
        self._unlike: Unlike = {}  # of the last look

    async def run(self) -> None:
        """Look every five seconds until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(Unavailable):
                await self.look()

    async def look(self) -> None:
        """Look at some topics of each bucket, and at those that the last look found. Raises Unavailable."""
        first, *others = self._store.in_force
        buckets = [each for each in (first, *others) if not each.is_away]
        if first not in buckets or len(buckets) == 1:
            return
        topics = set(self._unlike)
        for bucket in buckets:
            topics |= await self._page(bucket)
        before, self._unlike = self._unlike, await _unlike(buckets, sorted(topics))
        settled = [each for each in before if before[each] == self._unlike.get(each)]
        if settled and await self._store.watch.is_replaced():
            return
        for topic in settled:
            await let_others_follow(self._store, topic)
            log.warning(
                "the settings of topic %r (its pause, its limits) were not the same in all buckets: "
                "each has those of the first one now",
                topic,
            )

    async def _page(self, bucket: Bucket) -> set[str]:
        """The next topics of the bucket that have settings."""
        cursor = self._cursors.get(bucket.number, 0)
        page = await bucket.ask_key("topics", "hscan", cursor, count=PAGE)
        self._cursors[bucket.number], found = page
        return {text(topic) for topic, written in found.items() if written}


async def _unlike(buckets: Sequence[Bucket], topics: Sequence[str]) -> Unlike:
    """The topics whose settings are not the same in all of these buckets, with the settings in each."""
    if not topics:
        return {}
    found = [await _settings(bucket, topics) for bucket in buckets]
    by_topic = zip(topics, zip(*found, strict=True), strict=True)
    return {topic: each for topic, each in by_topic if each.count(each[0]) < len(each)}


async def _settings(bucket: Bucket, topics: Sequence[str]) -> Sequence[Settings]:
    """What the topics have in a bucket, without what is its own: its share, and when the limits were set there."""
    written = await bucket.ask_key("topics", "hmget", topics)
    settings: list[dict[str, Any]] = [settings_of(each or b"") for each in written]
    for each in settings:
        if isinstance(limit := each.get("limit"), dict):
            limit.pop("share", None)
            limit.pop("changed", None)
    return settings
