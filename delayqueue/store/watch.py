"""Looks after the store while a server runs: whether it takes new jobs, drops those that it has, or was emptied."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text, Unavailable
from delayqueue.metrics import STORE_EMPTIED, STORE_WRITABLE
from delayqueue.store.marks import Marks
from delayqueue.store.servers.ailments import OF_CLASS, ailment
from delayqueue.store.servers.health import Look, look_at

if TYPE_CHECKING:
    from delayqueue.store.store import Store

log = logging.getLogger(__name__)

LOOK_S: Final = 2.0  # as often as /admin refreshes


class StoreWatch:
    """Keeps `alarms`: a sentence for each thing that is wrong with the store now and that everybody should know.

    /readyz, /stats, /admin, `top` and the log say the same sentences.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._takes_jobs: bool | None = None  # None = nobody has looked yet
        self._marks = Marks(store.shards, store.buckets)
        self._emptied: Text | None = None
        self._evicted: int | None = None  # keys that were dropped for room until the last look
        self.alarms: Sequence[Text] = ()
        self.ailment: Text | None = None  # why it takes no new jobs
        self.ailing_since: datetime | None = None
        store.metrics.show(STORE_WRITABLE, lambda: self._takes_jobs)
        store.metrics.show(STORE_EMPTIED, lambda: self.is_emptied)

    @property
    def is_emptied(self) -> bool:
        """Whether the last of the alarms is that the store was emptied or replaced."""
        return self._emptied is not None

    async def run(self) -> None:
        """Look every two seconds, and log what has changed, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once."""
        store = self._store
        looks: list[Look] = []
        with suppress(TimeoutError):
            looks = await look_at(store.shards, store.buckets.tags)
        found = [alarm for look in looks for alarm in look.alarms()]
        is_open = bool(looks) and store.closed is None
        self.ailment = next(filter(None, (look.ailment for look in looks)), None)
        if not is_open:
            self.ailment = store.ailment() or OF_CLASS[RedisTimeoutError]
            found.append(Unavailable.because(self.ailment).text)
        self.ailing_since = (self.ailing_since or datetime.now(UTC)) if self.ailment else None
        if store.closed is None:
            with suppress(RedisError):  # what ails it is said already; it stays as it was
                self._emptied = await self._marks.look()
        if self._emptied:
            found.append(self._emptied)
        self._takes_jobs = is_open and all(map(store.durability.lets_in, looks))
        self._note(list(dict.fromkeys(found)))
        self._note_evictions(looks)

    async def accept(self) -> None:
        """Somebody says that the store is new. Raises Unavailable if it does not take that in."""
        try:
            await self._marks.accept()
        except RedisError as error:
            raise Unavailable.because(ailment(error)) from error
        await self.look()

    def _note(self, alarms: Sequence[Text]) -> None:
        for alarm in alarms:
            if alarm not in self.alarms:
                log.error("%s", alarm.en)
        for alarm in self.alarms:
            if alarm not in alarms:
                log.info("no longer: %s", alarm.en)
        self.alarms = alarms

    def _note_evictions(self, looks: Sequence[Look]) -> None:
        evicted = sum(look.info.get("evicted_keys", 0) for look in looks if look.evicts)
        if self._evicted is not None and evicted > self._evicted:
            log.error(
                "the store has dropped %d keys for room: each can hold thousands of jobs",
                evicted - self._evicted,
            )
        self._evicted = evicted
