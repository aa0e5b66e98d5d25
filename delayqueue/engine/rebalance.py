"""Changes the number of buckets, and brings what is in them to its bucket, while nobody works: `delay-queue rebalance`.

Every key whose entries belong to jobs is looked through, a page at a time. What belongs to another bucket is imported
there, then dropped here: so it is always somewhere, and what comes twice is one entry. Records and entries of indexes
move each by itself: a job is whole again only at the end, and nobody looks before. Ready lists lose their ghosts last,
because only a job's record tells whether it is ready.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from delayqueue.config.startup import StartupError
from delayqueue.domain.limit import Limit
from delayqueue.domain.push_rules import in_group
from delayqueue.domain.schedule import Schedule
from delayqueue.engine.heartbeat import SILENCE_MS
from delayqueue.engine.reports import ServerReport
from delayqueue.errors import Invalid, Unavailable
from delayqueue.store.change import AnotherChange, LayoutChange
from delayqueue.store.entries import LIST, Entries, Entry, EntryPage, Key
from delayqueue.store.health import look_at
from delayqueue.store.record import text
from delayqueue.store.store import Store
from delayqueue.store.topics import FIRST, check_shares, settings_in, split_limits
from delayqueue.tasks import TaskGroup

AT_ONCE: Final = 8  # keys that are looked through at the same time
PATIENCE_S: Final = 60.0  # for a store that is unavailable; a failover takes seconds
RETRY_S: Final = 0.5
TELL_S: Final = 1.0  # between two notes of how far it is

T = TypeVar("T")


class Rebalance:
    """A change of the number of buckets. It can be killed at any point and run again; another one that begins ends it.

    Raises Unavailable if the store is unavailable for longer than PATIENCE_S, StartupError if the change cannot begin,
    AnotherChange if another one has begun.
    """

    def __init__(self, store: Store, size: int) -> None:
        """`size` is the new number of buckets."""
        self._store = store
        self._size = size
        self._entries = Entries(store)
        self._change = LayoutChange(store.servers, store.buckets, size)
        self._is_sure = True  # that nothing of this pass was missed
        self.moved = 0  # jobs and kept results
        self._looked = self._total = 0  # entries, about

    @property
    def is_begun(self) -> bool:
        """Whether servers wait, or may."""
        return self._change.is_begun

    @property
    def percent(self) -> int:
        """How much was looked at, about."""
        return min(99, 100 * self._looked // max(1, self._total))

    async def run(self) -> None:
        """Change the number of buckets. From begin() to end() no server works."""
        is_resumed = await self._patiently(self._change.is_under_way)
        await self._check_servers()
        if not is_resumed:
            await self._check()
        try:
            await self._patiently(self._change.begin)
            if self._change.is_unmoved:
                await self._check()  # again: servers worked until now
            await self._patiently(self._change.start)
        except (StartupError, Unavailable):
            if self._change.is_unmoved:
                await self._patiently(self._change.give_up)
            raise
        async with TaskGroup() as group:
            telling = group.create_task(self._tell(), "how far it is")
            await self._move_all()
            telling.cancel()
        await self._patiently(self._change.end)

    async def _check_servers(self) -> None:
        """Raises StartupError if a server of an older version would not wait."""
        found = await self._patiently(self._servers)
        if older := sorted(server.stats.name for server in found if not server.halts):
            raise StartupError(
                f"servers of an older version work on this store: {', '.join(older)}. "
                "Replace them by this version, or stop them, and wait for 15 seconds"
            )

    async def _check(self) -> None:
        """Raises StartupError if the store, a limit or a group is in the way."""
        await self._check_store()
        for topic, each in (await self._settings(FIRST)).items():
            try:
                check_shares(Limit.read(each.get("limit", {})).changes(), self._size)
            except Invalid as error:
                raise StartupError(f"the topic {topic!r}: {error}") from None
        if self._size > 1:
            await self._check_groups()

    async def _check_store(self) -> None:
        """Raises StartupError if a server of the store is away, or would not take what is moved."""
        buckets = self._store.buckets
        buckets.know(self._size)
        looks = await look_at(self._store.servers, [keys.tag for keys in buckets.keys])
        if ailing := [f"{look.name.en}: {why.en}" for look in looks if (why := look.ailment)]:
            raise StartupError(*ailing)
        try:
            await self._entries.require_durability()
            await self._entries.processes()
        except Unavailable as error:
            raise StartupError(error.text.en) from None

    async def _check_groups(self) -> None:
        """Raises StartupError if jobs, or those that schedules will push, would be in another bucket than the group."""
        if names := sorted(await self._patiently(self._schedules_of_groups)):
            raise StartupError(
                f"the schedules {', '.join(names)} push jobs of a group, which works with one bucket only. "
                "Remove them, or let them push jobs without a group, from which a worker pushes those of the group"
            )
        if torn := await self._patiently(self._count_torn):
            raise StartupError(
                "jobs whose ids do not begin with their group in braces, like {customer-7}order-1001: "
                f"{torn}. Their groups would be torn apart. Let these jobs end, or delete them, first"
            )

    async def _schedules_of_groups(self) -> list[str]:
        """The names of schedules whose jobs have a group, also of those that are paused."""
        found: list[str] = []
        for name, definition in (await self._registered("schedules")).items():
            with suppress(ValueError):  # it pushes nothing
                if Schedule.read(text(definition)).group:
                    found.append(text(name))
        return found

    async def _registered(self, kind: str) -> dict[bytes, bytes]:
        """What all servers share of this kind. No script is asked: if a change is under way, it would refuse."""
        return dict(await self._store.bucket(FIRST).ask_key(kind, "hgetall"))

    async def _count_torn(self) -> int:
        """How many jobs would be in another bucket than others of their group. No script is asked, as above."""
        torn = 0
        for number in range(len(self._store.buckets.keys)):  # the new layout may be known already
            cursor = 0
            while True:
                cursor, found = await self._entries.of_groups(number, cursor)
                torn += sum(map(_is_torn, found))
                if not cursor:
                    break
        return torn

    async def _servers(self) -> list[ServerReport]:
        """Server processes that were alive recently."""
        told = await self._registered("servers")
        seconds, _ = await self._store.bucket(FIRST).ask("servers", lambda redis: redis.time())
        found = []
        for name, written in told.items():
            heard_ms, _, figures = text(written).partition(" ")
            if abs(seconds * 1000 - int(heard_ms)) < SILENCE_MS:
                found.append(ServerReport.read(text(name), int(heard_ms), figures))
        return found

    async def _tell(self) -> None:
        """Report the progress to the store, now and then."""
        while True:
            await asyncio.sleep(TELL_S)
            await self._patiently(partial(self._change.tell, self.percent))

    async def _move_all(self) -> None:
        """Look through all keys, and split the limits.

        Does so again if the store was unavailable meanwhile, or another process of it has taken over.
        """
        while True:
            self._is_sure = True
            processes = await self._patiently(self._entries.processes)
            await self._patiently(self._change.raise_fences)
            self._looked, self._total = 0, 2 * await self._patiently(self._entries.count)
            await self._of_all_keys(self._move)
            for bucket in range(len(self._store.buckets.keys)):
                await self._patiently(partial(self._entries.forget_ghosts, bucket))
            await self._of_all_keys(self._tidy, LIST)
            await self._split_limits()
            if self._is_sure and processes == await self._patiently(self._entries.processes):
                return

    async def _of_all_keys(
        self, work: Callable[[Key], Awaitable[None]], kind: str | None = None
    ) -> None:
        """Do the work for every key, or every key of this type; for some keys twice."""
        free = asyncio.Semaphore(AT_ONCE)

        async def do(key: Key) -> None:
            async with free:
                await work(key)

        for server in self._entries.servers:
            cursor = 0
            while True:
                some = partial(self._entries.keys, server, cursor, kind)
                cursor, keys = await self._patiently(some)
                await asyncio.gather(*map(do, keys))
                if not cursor:
                    break

    async def _move(self, key: Key) -> None:
        """Bring what is in this key to its bucket."""
        if key.kind == LIST:  # of ready jobs
            await self._move_list(key)
            return
        cursor, process = b"0", None
        while True:
            cursor, entries, author = await self._page(key, cursor)
            if process not in {None, author}:  # another store: the cursor was meaningless to it
                self._is_sure = False
                return
            process = author
            leaving = await self._put(key, entries)
            await self._drop(key, [entries[at] for at in leaving])
            if key.has_records:
                self.moved += len(leaving)
            if cursor == b"0":
                return

    async def _move_list(self, key: Key) -> None:
        """Move the entries of a list in order, and pass over those that stay."""
        place = 0
        while entries := (await self._page(key, b"%d" % place)).entries:
            leaving = await self._put(key, entries)
            await self._drop(key, [(place + at, *entries[at]) for at in leaving])
            place += len(entries) - len(leaving)

    async def _tidy(self, key: Key) -> None:
        """Drop from a ready list what came twice, and what is not ready, now that all records are in their bucket."""
        place, seen = 0, set[bytes]()
        while entries := (await self._page(key, b"%d" % place)).entries:
            doubled = []
            for at, (job_id,) in enumerate(entries):
                if job_id in seen:
                    doubled.append((place + at, job_id))
                seen.add(job_id)
            await self._drop(key, doubled)
            place += len(entries) - len(doubled)
        place = 0
        while place >= 0:
            place = await self._patiently(partial(self._entries.drop_ghosts, key, place))

    async def _page(self, key: Key, cursor: bytes) -> EntryPage:
        page = await self._patiently(partial(self._entries.page, key, cursor))
        self._looked += len(page.entries)
        return page

    async def _put(self, key: Key, entries: Sequence[Entry]) -> list[int]:
        """Add entries to the buckets to which they belong. Returns their places."""
        away: dict[int, list[int]] = {}
        for at, entry in enumerate(entries):
            bucket = self._store.buckets.layout.bucket_of(key.id_of(entry))
            if bucket != key.bucket:
                away.setdefault(bucket, []).append(at)
        puts = [
            self._patiently(partial(self._entries.put, key, bucket, [entries[at] for at in mine]))
            for bucket, mine in away.items()
        ]
        await asyncio.gather(*puts)
        return sorted(chain.from_iterable(away.values()))

    async def _drop(self, key: Key, entries: Sequence[Entry]) -> None:
        await self._patiently(partial(self._entries.drop, key, entries))

    async def _split_limits(self) -> None:
        """Give topics the first bucket's settings in every bucket, each with its share of the limits."""
        settings = await self._settings(FIRST)
        for bucket in range(self._size):
            theirs = {} if bucket == FIRST else await self._settings(bucket)
            for topic in settings.keys() | theirs.keys():
                wanted = None if bucket == FIRST else json.dumps(settings.get(topic, {}))
                into = self._store.bucket(bucket)
                split = partial(split_limits, into, topic, wanted, self._size)
                await self._patiently(split)

    async def _settings(self, bucket: int) -> dict[str, Any]:
        """The settings of topics, without the bucket's share."""
        settings = await self._patiently(partial(settings_in, self._store.bucket(bucket)))
        for each in settings.values():
            each.get("limit", {}).pop("share", None)
        return settings

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work, and retry while the store is unavailable: every step here can be repeated."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                return await work()
            except Unavailable as error:
                self._is_sure = False
                if self._store.closed:  # a fence is beyond this change
                    raise AnotherChange from error
                if loop.time() > until:
                    raise
                await asyncio.sleep(RETRY_S)


def _is_torn(job: tuple[str, str]) -> bool:
    job_id, group = job
    return group.startswith("}") or not job_id.startswith(in_group(group, ""))
