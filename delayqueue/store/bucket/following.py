"""The layout that this process works by: follows changes of the number of buckets, and makes them.

Such a change takes place while servers work (migration.py). The layout says so at once; then a fence in each bucket is
raised to the layout's generation, and scripts from servers that know an older one are refused. A server uses the new
layout only when all fences are up, so no two servers ever use different ones.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError, WatchError

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.keys import BucketKeys
from delayqueue.store.bucket.layout import ON, STARTING, decoded, parse
from delayqueue.store.servers.shards import Shards

log = logging.getLogger(__name__)

# After a first write that takes no memory, a server allows the second one even if its memory is full. 0 only reads.
RAISE: Final = """
redis.call('ZREM', KEYS[1], '')
if tonumber(ARGV[1]) > 0 then redis.call('ZADD', KEYS[1], 'GT', ARGV[1], 'generation') end
return tonumber(redis.call('ZSCORE', KEYS[1], 'generation') or 0)
"""


class AnotherChange(Exception):
    """Somebody else has changed the layout, or is about to."""


class LayoutFollower:
    """Keeps the layout of `buckets` that in force. All methods raise Unavailable if it cannot be read or changed."""

    def __init__(self, shards: Shards, buckets: Buckets) -> None:
        self.buckets: Final = buckets
        self._shards = shards
        self._following = asyncio.Lock()

    async def follow(self, known: int | None = None) -> None:
        """Use the layout in force; if `known` is given, one later than that generation.

        Raises Unavailable if there is none.
        """
        async with self._following:
            if known not in (None, self.buckets.layout.generation):
                return
            with _settled():
                layout = await self._fenced()
            if layout.generation == known:
                log.error("a bucket knows a later layout than bucket 1, which has lost it")
                raise Unavailable
            if layout == self.buckets.layout:
                return
            self.buckets.adopt(layout)
            self._shards.announce_change()
            origin = f"; jobs come from {layout.former_size}" if layout.moving else ""
            log.info("the data has %d buckets%s", layout.size, origin)

    async def begin_move(self, size: int) -> None:
        """Change to `size` buckets, and follow. Nothing has changed if one of them cannot be reached.

        Raises AnotherChange if somebody else has changed the layout.
        """
        layout = self.buckets.layout
        self.buckets.know(size)
        keys = self.buckets.keys[: max(size, layout.count)]
        with _settled():
            fences = [await self._fence(each, 0) for each in keys]
            fields = {
                "bucket_size": str(size),
                "former_bucket_sizes": ",".join(map(str, (*layout.former_sizes, layout.size))),
                "generation": str(max(layout.generation, *fences) + 1),
                "moving": STARTING,
            }
            if not await self._change(layout, fields):
                raise AnotherChange
        await self.follow()

    async def end_move(self, layout: Layout) -> None:
        """All jobs are in their buckets by that layout. Does nothing if it is no longer in force."""
        with _settled():
            await self._change(layout, {"moving": ""})
        await self.follow()

    async def _fenced(self) -> Layout:
        """The layout in force, once it is safe to use: all fences are up."""
        while not (layout := await self._shards.call(self._key, self._read)).fenced:
            self.buckets.know(layout.count)
            failure: RedisError | None = None
            for keys in self.buckets.keys[: layout.count]:
                try:
                    await self._fence(keys, layout.generation)
                except RedisError as error:  # raise all fences that can be raised
                    failure = failure or error
            if failure:
                raise failure
            await self._change(layout, {"moving": ON})
        return layout

    async def _fence(self, keys: BucketKeys, generation: int) -> int:
        """Raise a fence; returns its new value. A late call cannot lower it."""

        async def send(redis: Redis) -> int:
            return int(await redis.eval(RAISE, 1, keys.fence, generation))

        return await self._shards.call(keys.fence, send)

    @property
    def _key(self) -> str:
        return self.buckets.keys[0].layout

    async def _read(self, redis: Redis) -> Layout:
        return parse(decoded(await redis.hgetall(self._key)), self.buckets.layout.size)

    async def _change(self, expected: Layout, fields: Mapping[str, str]) -> bool:
        """Write these fields if the layout is the expected one; returns whether it was."""
        return await self._shards.call(self._key, partial(self._compare_and_set, expected, fields))

    async def _compare_and_set(
        self, expected: Layout, fields: Mapping[str, str], redis: Redis
    ) -> bool:
        async with redis.pipeline() as transaction:
            await transaction.watch(self._key)
            if await self._read(transaction) != expected:
                return False
            transaction.multi()  # type: ignore[no-untyped-call]
            for field, value in fields.items():
                transaction.hset(self._key, field, value)
            try:
                await transaction.execute()
            except WatchError:
                return False
        return True


@contextmanager
def _settled() -> Iterator[None]:
    """A change or a reading of the layout."""
    try:
        yield
    except RedisError as error:
        log.warning("the layout of the data cannot be read or changed: %s", error)
        raise Unavailable from error
