"""The layout that this process works by: follows changes that others make, and makes them itself."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, TypeVar

from redis.exceptions import RedisError

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.layout import begin_move, end_move, settle_layout
from delayqueue.store.servers.shards import Shards

log = logging.getLogger(__name__)

T = TypeVar("T")


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
            layout = await _settled(settle_layout(self._shards, self.buckets))
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
        """Change to `size` buckets, and follow. Raises AnotherChange if somebody else has changed the layout."""
        await _settled(begin_move(self._shards, self.buckets, size))
        await self.follow()

    async def end_move(self, layout: Layout) -> None:
        """All jobs are in their buckets by that layout."""
        await _settled(end_move(self._shards, self.buckets, layout))
        await self.follow()


async def _settled(work: Awaitable[T]) -> T:
    """Await a change or a reading of the layout."""
    try:
        return await work
    except RedisError as error:
        log.warning("the layout of the data cannot be read or changed: %s", error)
        raise Unavailable from error
