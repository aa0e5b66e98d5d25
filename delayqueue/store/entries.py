"""The entries of keys that belong to jobs: a change of the number of buckets moves them (engine/rebalance.py)."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from delayqueue.config.values import Address
from delayqueue.store.health import as_unavailable
from delayqueue.store.record import group_of, text
from delayqueue.store.store import Store
from delayqueue.tasks import batched

KEYS_PER_SCAN: Final = 1000
RECORDS_AT_ONCE: Final = 32  # their bodies can be large
LIST: Final = "list"
# Keys by the start of their name, up to the colon: their type, and whether the timer looks at their scores.
SINGLE: Final = {
    **dict.fromkeys((b"job", b"run", b"ended", b"priorities"), "hash"),
    **dict.fromkeys((b"broken", b"awaited"), "zset"),
}
OF_MEMBERS: Final = {b"tag": "set", b"holders": "hash", b"first": "hash"}
SORTED_SETS: Final = {
    **dict.fromkeys((b"delay", b"slot", b"reserved", b"expire", b"done"), True),
    **dict.fromkeys((b"buried", b"ranked", b"called"), False),
    **dict.fromkeys((b"grouped", b"called_grouped", b"hand"), False),
}
# The start of the members of sorted sets by rank, before the id: `rank_of` in _ready.lua. Those of groups have another
# start before that, as long as their group says (_groups.lua).
RANK_CHARS: Final = {b"ranked": 18, b"called": 18, b"grouped": 42, b"called_grouped": 42}
OF_GROUPS: Final = (b"grouped", b"called_grouped", b"hand")

# A member or a field, with its score or value if it has one; to drop one of a list: its place and the id.
Entry = Sequence[Any]


class Key(NamedTuple):
    """A key whose entries belong to jobs."""

    bucket: int
    name: bytes  # without the tag
    kind: str  # its type
    topic: bytes = b""
    is_timed: bool = False
    id_at: int = 0  # where the job's id begins in a member
    is_of_groups: bool = False  # behind its group

    @property
    def has_records(self) -> bool:
        """Whether each of its entries is a job, or a kept result."""
        return self.name in {b"job", b"ended"}

    def id_of(self, entry: Entry) -> bytes:
        """The id of the entry's job."""
        member: bytes = entry[1 if self.name.startswith(b"first:") else 0]
        start = 3 + int(member[:3]) + 1 if self.is_of_groups else 0
        return member[start + self.id_at :]


class EntryPage(NamedTuple):
    """Some entries; the cursor of the next page, b"0" = there is none, not for lists; the store's process."""

    cursor: bytes
    entries: list[Sequence[bytes]]
    process: bytes


class Entries:
    """All methods raise Unavailable if the store fails, and can be repeated then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._servers = store.servers
        self._buckets = store.buckets
        before, _, after = store.buckets.queue_name.partition("%s")
        self._ready_list = before.encode(), after.encode()  # around the topic

    @property
    def servers(self) -> Collection[Address]:
        """The servers that hold keys."""
        return self._servers.clients().keys()

    async def require_durability(self) -> None:
        """Raises Unavailable if a server that holds buckets would not take entries as durably as they are needed."""
        with as_unavailable():
            for redis in self._servers.groups(keys.tag for keys in self._buckets.keys):
                for requirement in self._store.scripts["import"].requirements:
                    requirement.doubt(redis)
                    await requirement.require(redis)

    async def processes(self) -> set[object]:
        """Which processes of the store answer: another one knows no cursors of the one before it."""
        with as_unavailable():
            infos = [await redis.info("server") for redis in self._servers.clients().values()]
        return {info.get("run_id") for info in infos}

    async def count(self) -> int:
        """How many jobs and kept results there are."""
        count = 0
        with as_unavailable():
            for keys in self._buckets.keys:
                redis = self._servers.of(keys.tag)
                count += await redis.hlen(keys.named("job")) + await redis.hlen(keys.named("ended"))
        return count

    async def of_groups(self, bucket: int, cursor: int) -> tuple[int, list[tuple[str, str]]]:
        """Some jobs of groups, of those in `priorities`: id, group; and the next cursor, 0 at the start and the end."""
        keys = self._buckets.keys[bucket]
        redis = self._servers.of(keys.tag)
        with as_unavailable():
            page: Any = await redis.hscan(keys.named("priorities"), cursor, count=KEYS_PER_SCAN)
            after, found = page
            jobs: list[tuple[str, str]] = []
            for ids in batched([*found], RECORDS_AT_ONCE):
                records: Any = await redis.hmget(keys.named("job"), ids)
                pairs = zip(ids, map(group_of, records), strict=True)
                jobs += [(text(job_id), group) for job_id, group in pairs if group is not None]
        return after, jobs

    async def keys(
        self, server: Address, cursor: int, kind: str | None = None
    ) -> tuple[int, list[Key]]:
        """Some keys of a server, or of its keys of this type; and the next cursor, 0 at the start and at the end.

        None of a server that holds nothing any more: processes() names another one in its place.
        """
        redis = self._servers.clients().get(server)
        if redis is None:
            return 0, []
        with as_unavailable():
            page: Any = await redis.scan(cursor, self._buckets.pattern, KEYS_PER_SCAN, kind)
        cursor, found = page
        numbers = {keys.tag.encode(): number for number, keys in enumerate(self._buckets.keys)}
        keys = list[Key]()
        for full_name in found:
            tag, _, name = full_name.partition(b"}:")
            if (bucket := numbers.get(tag + b"}")) is not None and (key := self._key(bucket, name)):
                keys.append(key)
        return cursor, keys

    async def page(self, key: Key, cursor: bytes) -> EntryPage:
        """A page of a key; the cursor is b"0" at first, of a list the place of the first entry."""
        reply = await self._store.bucket(key.bucket).run("export", [key.name, key.kind, cursor])
        after, found, process = reply.results
        width = 1 if key.kind in {"set", LIST} else 2
        return EntryPage(after, [*batched(found, width)], process)

    async def put(self, key: Key, bucket: int, entries: Iterable[Entry]) -> None:
        """Add entries of the key to the same key of another bucket."""
        args = [key.name, key.kind, key.topic, int(key.is_timed), *chain.from_iterable(entries)]
        await self._store.bucket(bucket).run("import", args)

    async def drop(self, key: Key, entries: Sequence[Entry]) -> None:
        """Drop entries of the key."""
        if entries:
            args = [key.name, key.kind, key.topic, *chain.from_iterable(entries)]
            await self._store.bucket(key.bucket).run("confirm", args)

    async def forget_ghosts(self, bucket: int) -> None:
        """Forget how many ghosts the ready lists of a bucket have."""
        await self._store.bucket(bucket).run("drop_ghosts", [])

    async def drop_ghosts(self, key: Key, place: int) -> int:
        """Drop the ghosts of a part of a ready list; returns the place where to go on, -1 = that was all."""
        reply = await self._store.bucket(key.bucket).run("drop_ghosts", [key.topic, place])
        return int(reply.results[0])

    def _key(self, bucket: int, name: bytes) -> Key | None:
        """What a key is, by its name without the tag; None if its entries do not belong to jobs."""
        before, after = self._ready_list
        if name.startswith(before) and name.endswith(after):
            return Key(bucket, name, LIST, name[len(before) : len(name) - len(after)])
        family, _, member = name.partition(b":")
        kind = SINGLE.get(name) or OF_MEMBERS.get(family)
        if kind:
            return Key(bucket, name, kind)
        if (is_timed := SORTED_SETS.get(family)) is None:
            return None
        topic = member.partition(b":")[2] if family == b"slot" else member
        chars = RANK_CHARS.get(family, 0)
        return Key(bucket, name, "zset", topic, is_timed, chars, family in OF_GROUPS)
