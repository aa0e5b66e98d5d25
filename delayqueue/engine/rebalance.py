"""Changes the number of buckets, and brings what is in them to its bucket, while nobody works: `delay-queue rebalance`.

Every key whose entries belong to jobs is looked through, a page at a time. What belongs to another bucket is imported
there, then dropped here: so it is always somewhere, and what comes twice is one entry. Records and entries of indexes
move each by itself: a job is whole again only at the end, and nobody looks before. Ready lists lose their ghosts last,
because only a job's record tells whether it is ready.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.startup import StartupError
from delayqueue.domain.limit import Limit
from delayqueue.engine.heartbeat import SILENCE_MS, ServerView
from delayqueue.errors import Invalid, Unavailable
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.change import AnotherChange, LayoutChange
from delayqueue.store.bucket.keys import BucketKeys
from delayqueue.store.bucket.limits import FIRST, Limits
from delayqueue.store.bucket.record import text
from delayqueue.store.topics import check_concurrency
from delayqueue.tasks import TaskGroup

OWN: Final = ""  # instead of settings: those that the bucket has
AT_ONCE: Final = 8  # keys that are looked through at the same time
KEYS_PER_SCAN: Final = 1000
PATIENCE_S: Final = 60.0  # for a store that is unavailable; a failover takes seconds
RETRY_S: Final = 0.5
TELL_S: Final = 1.0  # between two notes of how far it is
LIST: Final = "list"
# Keys by the start of their name, up to the colon: their type, and whether the timer looks at their scores.
SINGLE: Final = {
    **dict.fromkeys((b"job", b"run", b"ended", b"priorities"), "hash"),
    **dict.fromkeys((b"broken", b"awaited"), "zset"),
}
SORTED_SETS: Final = {
    **dict.fromkeys((b"delay", b"slot", b"reserved", b"expire", b"done"), True),
    **dict.fromkeys((b"buried", b"ranked", b"called"), False),
}
# The start of the members of sorted sets by rank, before the id: `rank_of` in _ready.lua.
RANK_CHARS: Final = {b"ranked": 18, b"called": 18}

T = TypeVar("T")


class Key(NamedTuple):
    """A key whose entries belong to jobs."""

    bucket: int
    name: bytes  # without the tag
    kind: str  # its type
    topic: bytes = b""
    is_timed: bool = False
    id_at: int = 0  # where the job's id begins in a member

    @property
    def width(self) -> int:
        """How many parts of a page are one entry."""
        return 1 if self.kind in {"set", LIST} else 2


class Rebalance:
    """One change. It can be killed at any point and run again; if another one begins meanwhile, it ends.

    Raises Unavailable if the store is unavailable for longer than PATIENCE_S, StartupError if the change cannot begin,
    AnotherChange if another one has begun.
    """

    def __init__(self, store: BucketStore, size: int) -> None:
        """`size` is the new number of buckets."""
        self._store = store
        self._size = size
        self._limits = Limits(store)
        self._change = LayoutChange(store.shards, store.buckets, size)
        self._is_sure = True  # that nothing of this pass was missed
        self.moved = 0  # jobs and kept results
        self._looked = self._total = 0  # entries, about

    @property
    def percent(self) -> int:
        """How much was looked at, about."""
        return min(99, 100 * self._looked // max(1, self._total))

    async def run(self) -> None:
        """Do everything. From begin() to end() no server works."""
        await self._check()
        await self._patiently(self._change.begin)
        async with TaskGroup() as group:
            telling = group.create_task(self._tell(), "how far it is")
            await self._move_all()
            telling.cancel()
        await self._split_limits()
        await self._patiently(self._change.end)

    async def _check(self) -> None:
        """Raises StartupError if a server or a limit is in the way."""
        for topic, each in (await self._settings(FIRST)).items():
            try:
                check_concurrency(Limit.read(each.get("limit", {})).concurrency, self._size)
            except Invalid as error:
                raise StartupError(f"the topic {topic!r}: {error}") from None
        found = await self._patiently(self._servers)
        if older := sorted(server.name for server in found if not server.halts):
            raise StartupError(
                f"servers of an older version work on this store: {', '.join(older)}. "
                "Replace them by this version, or stop them, and wait for 15 seconds"
            )

    async def _servers(self) -> list[ServerView]:
        """Server processes that were alive recently. No script is asked: if a change is under way, it would refuse."""
        key = self._store.buckets.keys[FIRST].registered("servers")
        ask = self._store.caller.ask
        told: Any = await ask("servers", FIRST, lambda redis: redis.hgetall(key))
        seconds, _ = await ask("servers", FIRST, lambda redis: redis.time())
        found = []
        for name, written in told.items():
            heard_ms, _, figures = text(written).partition(" ")
            if int(heard_ms) > seconds * 1000 - SILENCE_MS:
                found.append(ServerView.read(text(name), int(heard_ms), figures))
        return found

    async def _tell(self) -> None:
        """Note how far it is, now and then."""
        while True:
            await asyncio.sleep(TELL_S)
            await self._patiently(partial(self._change.tell, self.percent))

    async def _move_all(self) -> None:
        """Look through all keys, again if the store was unavailable or another process of it has taken over."""
        while True:
            self._is_sure = True
            processes = await self._patiently(self._processes)
            self._looked, self._total = 0, 2 * await self._patiently(self._count)
            await self._of_all_keys(self._move)
            for bucket in range(len(self._store.buckets.keys)):
                await self._patiently(partial(self._store.run, "drop_ghosts", bucket, []))
            await self._of_all_keys(self._drop_ghosts, LIST)
            if self._is_sure and processes == await self._patiently(self._processes):
                return

    async def _processes(self) -> set[object]:
        """Which processes of the store answer: another one knows no cursors of the one before it."""
        servers = self._store.shards.servers().values()
        infos = await asyncio.gather(*(redis.info("server") for redis in servers))
        return {info.get("run_id") for info in infos}

    async def _count(self) -> int:
        """How many jobs and kept results there are."""
        count = 0
        for keys in self._store.buckets.keys:
            for key in (f"{keys.tag}:job", f"{keys.tag}:ended"):
                count += await self._store.shards.call(key, lambda redis, key=key: redis.hlen(key))  # type: ignore[misc]
        return count

    async def _of_all_keys(
        self, work: Callable[[Key], Awaitable[None]], kind: str | None = None
    ) -> None:
        """Do it for every key, or every one of this type; for some of them twice."""
        free = asyncio.Semaphore(AT_ONCE)

        async def do(key: Key) -> None:
            async with free:
                await work(key)

        for redis in self._store.shards.servers().values():
            async for keys in self._keys_of(redis, kind):
                await asyncio.gather(*map(do, keys))

    async def _keys_of(self, redis: Redis, kind: str | None) -> AsyncIterator[list[Key]]:
        """The keys of a server, or those of this type, some at a time; one can come twice."""
        buckets = self._store.buckets
        numbers = {keys.tag.encode(): number for number, keys in enumerate(buckets.keys)}
        own = BucketKeys.of(1, "%d", buckets.queue_name).queue_name.encode()
        before, after = own.removeprefix(b"{1}:").split(b"%s")
        cursor = 0
        while True:
            scan = partial(redis.scan, cursor, buckets.pattern, KEYS_PER_SCAN, kind)
            page: Any = await self._patiently(scan)
            cursor, found = page
            keys = list[Key]()
            for full_name in found:
                tag, _, name = full_name.partition(b"}:")
                bucket = numbers.get(tag + b"}")
                if bucket is None:
                    continue
                if name.startswith(before) and name.endswith(after):
                    topic = name[len(before) : len(name) - len(after)]
                    keys.append(Key(bucket, name, LIST, topic))
                elif key := _key_of(bucket, name):
                    keys.append(key)
            yield keys
            if not cursor:
                return

    async def _move(self, key: Key) -> None:
        """Bring what is in this key to its bucket."""
        if key.kind == LIST:
            await self._move_list(key)
            return
        cursor, process = b"0", b""
        while True:
            cursor, entries, author = await self._export(key, cursor)
            if process not in {b"", author}:  # another store: the cursor was meaningless to it
                self._is_sure = False
                return
            process = author
            parts = [entries[at : at + key.width] for at in range(0, len(entries), key.width)]
            away = self._away(key, [part[0][key.id_at :] for part in parts])
            await self._import(key, {to: [parts[at] for at in mine] for to, mine in away.items()})
            leaving = [parts[at] for mine in away.values() for at in mine]
            await self._call("confirm", key, key.bucket, [], leaving)
            if key.name in {b"job", b"ended"}:
                self.moved += len(leaving)
            if cursor == b"0":
                return

    async def _move_list(self, key: Key) -> None:
        """In order. What stays is passed over."""
        place = 0
        while True:
            _, ids, _ = await self._export(key, b"%d" % place)
            if not ids:
                return
            away = self._away(key, ids)
            await self._import(key, {to: [[ids[at]] for at in mine] for to, mine in away.items()})
            leaving = sorted(at for mine in away.values() for at in mine)
            await self._call(
                "confirm", key, key.bucket, [], [[place + at, ids[at]] for at in leaving]
            )
            place += len(ids) - len(leaving)

    async def _drop_ghosts(self, key: Key) -> None:
        """Drop what is not ready from a ready list, now that all records are in their bucket."""
        place = 0
        while place >= 0:
            args = [key.topic, place]
            [place] = (
                await self._patiently(partial(self._store.run, "drop_ghosts", key.bucket, args))
            ).results

    def _away(self, key: Key, ids: Sequence[bytes]) -> dict[int, list[int]]:
        """The places of ids that belong to other buckets, by bucket."""
        away: dict[int, list[int]] = {}
        for at, job_id in enumerate(ids):
            if (bucket := crc32(job_id) % self._size) != key.bucket:
                away.setdefault(bucket, []).append(at)
        return away

    async def _export(self, key: Key, cursor: bytes) -> tuple[bytes, list[bytes], bytes]:
        """The next cursor, a page, and which process of the store has answered."""
        args = [key.name, key.kind, cursor]
        reply = await self._patiently(partial(self._store.run, "export", key.bucket, args))
        after, entries, process = reply.results
        self._looked += len(entries) // key.width
        return after, entries, process

    async def _import(self, key: Key, parts: Mapping[int, list[Any]]) -> None:
        calls = [
            self._call("import", key, bucket, [int(key.is_timed)], mine)
            for bucket, mine in parts.items()
        ]
        await asyncio.gather(*calls)

    async def _call(
        self, verb: str, key: Key, bucket: int, more: list[Any], parts: Iterable[Sequence[Any]]
    ) -> None:
        """Call a script of a bucket with entries of the key, if there are any."""
        if entries := list(chain.from_iterable(parts)):
            args = [key.name, key.kind, key.topic, *more, *entries]
            await self._patiently(partial(self._store.run, verb, bucket, args))

    async def _split_limits(self) -> None:
        """Give topics the first bucket's settings in every bucket, each with its share of the limits."""
        settings = await self._settings(FIRST)
        for bucket in range(self._size):
            theirs = {} if bucket == FIRST else await self._settings(bucket)
            for topic in settings.keys() | theirs.keys():
                wanted = OWN if bucket == FIRST else json.dumps(settings.get(topic, {}))
                split = partial(self._limits.split_limits, bucket, topic, wanted, self._size)
                await self._patiently(split)

    async def _settings(self, bucket: int) -> dict[str, Any]:
        """The settings of topics, without the bucket's share."""
        settings = await self._patiently(partial(self._store.topic_settings, bucket))
        for each in settings.values():
            each.get("limit", {}).pop("share", None)
        return settings

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it, and retry while the store is unavailable. Everything here can be repeated."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                return await work()
            except (Unavailable, RedisError) as error:
                self._is_sure = False
                if self._store.caller.is_closed:  # a fence is beyond this change
                    raise AnotherChange from error
                if loop.time() > until:
                    raise Unavailable from error
                await asyncio.sleep(RETRY_S)


def _key_of(bucket: int, name: bytes) -> Key | None:
    """What a key is, by its name without the tag; None if its entries do not belong to jobs."""
    if kind := SINGLE.get(name):
        return Key(bucket, name, kind)
    family, _, member = name.partition(b":")
    if family == b"tag":
        return Key(bucket, name, "set")
    if family == b"holders":
        return Key(bucket, name, "hash")
    if (is_timed := SORTED_SETS.get(family)) is None:
        return None
    topic = member.partition(b":")[2] if family == b"slot" else member
    return Key(bucket, name, "zset", topic, is_timed, RANK_CHARS.get(family, 0))
