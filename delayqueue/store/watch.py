"""Marks by which servers know their data again: a store that was emptied, or is another one, looks new otherwise.

The layout has the data's `id`, which its first server makes. Each bucket has a member "mark ID" in its fence, so that a
master of a Cluster that was emptied alone is noticed, too: the layout's `marked` says how many buckets have one. A
server that finds another id than the one it knows, or another id in a bucket than in the layout, writes `emptied`, the
time, and `former`, the id that it knows, into the layout, where servers that start later find them. An operator who has
seen it writes `accepted`, the id. Until then all servers know the former data: a backup of it is what they wait for.

The layout and the fence of bucket 1 are on one server, so if one of the two has the id, then the other was dropped
alone (an eviction, or somebody deleted the key), and gets it back: the store was not emptied.

`StoreWatch` looks after the store while a server runs: whether it takes new jobs, drops those that it has, or was
emptied.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text, Unavailable, utc
from delayqueue.metrics import STORE_EMPTIED, STORE_WRITABLE
from delayqueue.store.buckets import Buckets
from delayqueue.store.health import AILMENTS_BY_CLASS, Look, alarms_of, as_unavailable, look_at
from delayqueue.store.servers import Servers

if TYPE_CHECKING:
    from delayqueue.store.store import Store

log = logging.getLogger(__name__)

# KEYS: the layout, the fence of bucket 1. ARGV: an id for data without one, the id that this server knows ("" = none),
# and FIELDS, which are returned. Writes nothing but what is missing.
LAYOUT: Final = """
local layout = KEYS[1]
local id = redis.call('HGET', layout, 'id')
if not id then
  id = ARGV[1]
  for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    id = string.match(member, '^mark (.+)$') or id
  end
  redis.call('HDEL', layout, '')  -- as a first write that takes no memory, it lets a full store take the others
  redis.call('HSET', layout, 'id', id)
end
if ARGV[2] ~= '' and ARGV[2] ~= id and redis.call('HEXISTS', layout, 'emptied') == 0 then
  redis.call('HSET', layout, 'emptied', redis.call('TIME')[1], 'former', ARGV[2])
end
return redis.call('HMGET', layout, unpack(ARGV, 3))
"""
# ARGV: an id, and what may be written: "" nothing, "0" its mark if there is none, "1" its mark instead of another.
# Returns the id of the bucket's mark, "" = it has none.
BUCKET: Final = """
local found
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local id = string.match(member, '^mark (.+)$')
  if id and ARGV[2] == '1' then redis.call('ZREM', KEYS[1], member) else found = found or id end
end
if not found and ARGV[2] ~= '' then
  redis.call('ZREM', KEYS[1], '')
  redis.call('ZADD', KEYS[1], 0, 'mark ' .. ARGV[1])
  found = ARGV[1]
end
return found or ''
"""


FIELDS: Final = ("id", "emptied", "former", "accepted", "marked")


class _MayWrite(Enum):
    """What BUCKET may write."""

    NOTHING = ""
    MISSING = "0"
    ANOTHER = "1"


class _Found(NamedTuple):
    """The FIELDS."""

    id: str
    emptied_s: int | None
    former: str
    accepted: str
    marked: int

    @property
    def is_unaccepted(self) -> bool:
        """Whether the store was emptied or replaced, and nobody has accepted the data as new."""
        return self.emptied_s is not None and self.accepted != self.id


class Marks:
    """The marks, as this process knows them. All methods raise RedisError if the store fails."""

    def __init__(self, servers: Servers, buckets: Buckets) -> None:
        self._servers = servers
        self._buckets = buckets
        self._known: str | None = None  # the id of the data
        # the mark that the last look found, also of data that nobody has accepted
        self.found: str | None = None

    async def look(self) -> Text | None:
        """Mark what is new. Returns what must be said: the store, or a part of it, was emptied; None once accepted."""
        found = await self._layout(self._known)
        count = self._buckets.count
        gone: list[int] = []
        may_write = [
            _MayWrite.NOTHING if 0 < bucket < found.marked else _MayWrite.MISSING
            for bucket in range(count)
        ]
        marks = await self._marks(found.id, may_write)
        for bucket, mark in enumerate(marks):
            if mark is None:
                continue
            if not mark:
                gone.append(bucket + 1)
            elif mark != found.id and found.emptied_s is None and found.accepted != found.id:
                found = await self._layout(mark)
        self._known = (self._known or found.former) if found.is_unaccepted else found.id
        self.found = found.id
        if None in marks:
            raise RedisError("not all buckets have told their mark")
        if found.marked != count:
            await self._write("marked", str(count))
        return _said(found, gone)

    async def read(self) -> Text | None:
        """What must be said, as far as that is known without what this process remembers. Changes nothing."""
        key = self._buckets.keys[0].named("layout")
        known = _found(await self._servers.call(key, lambda redis: redis.hmget(key, FIELDS)))
        if not known.id:
            return None
        marks = await self._marks(
            known.id, [_MayWrite.NOTHING] * min(known.marked, self._buckets.count)
        )
        return _said(known, [n for n, mark in enumerate(marks, 1) if n > 1 and mark == ""])

    async def is_replaced(self) -> bool:
        """Whether the first bucket was emptied or replaced, and nobody has accepted that; also True if nobody knows."""
        return self._known is None or (await self._layout(self._known)).is_unaccepted

    async def accept(self) -> None:
        """Accept the data as new: an operator knows why the former data is gone."""
        found = await self._layout(self._known)
        for bucket in range(self._buckets.count):
            await self._bucket(bucket, found.id, _MayWrite.ANOTHER)
        self._known = found.id
        await self._write("accepted", found.id)

    async def _layout(self, known: str | None) -> _Found:
        key, fence = self._buckets.keys[0].named("layout"), self._buckets.keys[0].named("fence")
        args = secrets.token_hex(8), known or "", *FIELDS
        return _found(
            await self._servers.call(key, lambda redis: redis.eval(LAYOUT, 2, key, fence, *args))
        )

    async def _marks(self, data_id: str, may_write: Sequence[_MayWrite]) -> list[str | None]:
        """The marks of as many buckets; None = its server fails."""

        async def one(bucket: int, may: _MayWrite) -> str | None:
            with suppress(RedisError):
                return await self._bucket(bucket, data_id, may)
            return None

        return await asyncio.gather(*(one(*each) for each in enumerate(may_write)))

    async def _bucket(
        self, bucket: int, data_id: str, may_write: _MayWrite = _MayWrite.NOTHING
    ) -> str:
        key, args = self._buckets.keys[bucket].named("fence"), (data_id, may_write.value)
        found: Any = await self._servers.call(key, lambda redis: redis.eval(BUCKET, 1, key, *args))
        return str(found.decode())

    async def _write(self, field: str, value: str) -> None:
        key = self._buckets.keys[0].named("layout")
        await self._servers.call(key, lambda redis: redis.hset(key, field, value))


def _found(fields: Any) -> _Found:
    data_id, emptied, former, accepted, marked = ((each or b"").decode() for each in fields)
    return _Found(data_id, int(emptied) if emptied else None, former, accepted, int(marked or 0))


def _said(found: _Found, gone: list[int]) -> Text | None:
    if found.emptied_s is not None and found.is_unaccepted:
        at = utc(datetime.fromtimestamp(found.emptied_s, UTC))
        return Text(
            f"自 {at} 起，存储已被清空或更换，原有的任务都没有了；如果这是有意的，请确认这是新的存储",
            f"since {at} the store is an empty one, or another one: the jobs that it had are gone; "
            "if that was intended, say that it is new",
        )
    if not gone:
        return None
    named = ", ".join(map(str, gone))
    return Text(
        f"存储的一部分已被清空，桶 {named} 的任务都没有了；如果这是有意的，请确认这是新的存储",
        f"a part of the store was emptied: the jobs of the buckets {named} are gone; "
        "if that was intended, say that it is new",
    )


LOOK_S: Final = 2.0  # as often as /admin refreshes


class StoreWatch:
    """Keeps `alarms`: a sentence for each thing that is wrong with the store now and that everybody should know.

    /readyz, /stats, /admin, `top` and the log say the same sentences.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._takes_jobs: bool | None = None  # None = nobody has looked yet
        self._marks = Marks(store.servers, store.buckets)
        self._emptied: Text | None = None
        self._evicted: int | None = None  # keys that were dropped for room until the last look
        self._on_other_data: list[Callable[[], None]] = []
        # one at a time: what an earlier look has read must not be said after a later one
        self._looking = asyncio.Lock()
        self.alarms: Sequence[Text] = ()
        self.ailment: Text | None = None  # why it takes no new jobs
        self.ailing_since: datetime | None = None
        store.metrics.show(STORE_WRITABLE, lambda: self._takes_jobs)
        store.metrics.show(STORE_EMPTIED, lambda: self.is_emptied)

    @property
    def is_emptied(self) -> bool:
        """Whether the last of the alarms is that the store was emptied or replaced."""
        return self._emptied is not None

    def on_other_data(self, listener: Callable[[], None]) -> None:
        """Call `listener()` whenever the store was emptied, replaced, or has its former data again."""
        self._on_other_data.append(listener)

    async def run(self) -> None:
        """Look every two seconds, and log what has changed, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look once."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        store = self._store
        looks = await look_at(store.servers, store.buckets.tags)
        found = alarms_of(looks)
        is_open = bool(looks) and store.closed is None
        self.ailment = next(filter(None, (look.ailment for look in looks)), None)
        if not is_open:
            self.ailment = store.ailment() or AILMENTS_BY_CLASS[RedisTimeoutError]
            found.append(Unavailable.because(self.ailment).text)
        self.ailing_since = (self.ailing_since or datetime.now(UTC)) if self.ailment else None
        if store.closed is None:
            before = self._marks.found
            with suppress(RedisError):  # what ails it is said already; it stays as it was
                self._emptied = await self._marks.look()
            if before not in {None, self._marks.found}:
                for listener in self._on_other_data:
                    listener()
        if self._emptied:
            found.append(self._emptied)
        self._takes_jobs = is_open and all(map(store.durability.lets_in, looks))
        self._note(list(dict.fromkeys(found)))
        self._note_evictions(looks)

    async def is_replaced(self) -> bool:
        """Whether the first bucket may have lost what it had, and a backup can still come. Raises Unavailable."""
        with as_unavailable():
            return await self._marks.is_replaced()

    async def accept(self) -> None:
        """Accept the store as new, for an operator. Raises Unavailable if the store fails."""
        with as_unavailable():
            await self._marks.accept()
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
        if not looks or not all("evicted_keys" in look.info for look in looks):
            return  # the counts of all are compared, at the next look
        evicted = sum(look.info["evicted_keys"] for look in looks if look.evicts)
        if self._evicted is not None and evicted > self._evicted:
            log.error(
                "the store has dropped %d keys for room: each can hold thousands of jobs",
                evicted - self._evicted,
            )
        self._evicted = evicted
