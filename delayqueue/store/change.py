"""Changes the number of buckets while nobody works.

A fence in each bucket refuses the scripts of servers that know an older generation of the layout. The change raises all
fences beyond the generation in force, so that no server can do anything; it moves what is in the wrong bucket
(engine/rebalance.py), and then gives the layout that generation. So a server that slept through all of it, or is of an
older version, is refused by the fence alone, whenever it wakes up.

Whoever begins takes a higher generation than everybody before. So only one works at a time, the last one to begin, and
one that was held up meanwhile is refused, too. If it is killed, the next one goes on.

Until it moves the first thing, the layout's `unmoved` is its generation: it can still give up, and so can the next one.
"""

from dataclasses import replace
from itertools import chain
from operator import methodcaller
from typing import Any, Final

from delayqueue.config.startup import StartupError
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.health import as_unavailable
from delayqueue.store.keys import BucketKeys
from delayqueue.store.layout import CHANGING, parse, read_fields, written
from delayqueue.store.servers import Servers

# Raises a fence; a late call cannot lower it. Returns its value. After a first write that takes no memory, a server
# allows the second one even if its memory is full.
RAISE: Final = """
redis.call('ZREM', KEYS[1], '')
redis.call('ZADD', KEYS[1], 'GT', ARGV[1], 'generation')
return tonumber(redis.call('ZSCORE', KEYS[1], 'generation'))
"""
# Begins, or goes on: ARGV = number of buckets, the highest fence, the version to write. Returns the generation of this
# change (-1 = a change to another number is under way, -2 = one of an older version), and whether it is `unmoved`.
BEGIN: Final = """
local function stored(field) return redis.call('HGET', KEYS[1], field) or '' end
if stored('moving') ~= '' then return {-2, 0} end
if stored('changing') ~= '' and stored('changing') ~= ARGV[1] then return {-1, 0} end
local last = math.max(tonumber(stored('changer')) or 0, tonumber(stored('generation')) or 0, tonumber(ARGV[2]))
local mine = string.format('%d', last + 1)
-- one of an older version that went on meanwhile has left another generation there
local is_unmoved = stored('changing') == '' or stored('percent') == '' and stored('unmoved') == stored('changer')
redis.call('HDEL', KEYS[1], 'percent')
redis.call('HSET', KEYS[1], 'changing', ARGV[1], 'version', ARGV[3], 'changer', mine)
redis.call('HSET', KEYS[1], 'unmoved', is_unmoved and mine or '')
return {tonumber(mine), is_unmoved and 1 or 0}
"""
# Writes fields if the change is still this one (ARGV[1]); returns whether it is. Like RAISE, it works if the memory is
# full.
WRITE: Final = """
redis.call('HDEL', KEYS[1], '')
local changer, changing = unpack(redis.call('HMGET', KEYS[1], 'changer', 'changing'))
if changer ~= ARGV[1] then return 0 end
if not changing then return 1 end  -- it has ended this one already, and the answer was lost
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
if ARGV[2] == 'end' then redis.call('HDEL', KEYS[1], 'changing', 'percent', 'unmoved') end
return 1
"""


class AnotherChange(Exception):
    """Another process has changed the number of buckets, or is changing it."""


class LayoutChange:
    """A change to `size` buckets. Its methods raise Unavailable if the store fails, AnotherChange."""

    def __init__(self, servers: Servers, buckets: Buckets, size: int) -> None:
        self._servers = servers
        self._buckets = buckets
        self._size = size
        self._former = buckets.layout
        self.is_begun = False  # servers wait, or may
        self.is_unmoved = False  # and nothing has been moved

    async def is_under_way(self) -> bool:
        """Whether somebody has begun one and not ended it."""
        with as_unavailable():
            self.is_begun = parse(await self._read(), self._former.size).change is not None
        return self.is_begun

    async def begin(self) -> None:
        """Stop all servers. From then on `buckets` have the new layout, and its generation passes the fences.

        Raises StartupError if jobs are being moved to another number of buckets.
        """
        with as_unavailable():
            self._former = parse(await self._read(), self._former.size).layout
            self._buckets.know(max(self._size, self._former.size, *self._former.former_sizes))
            highest = max([await self._generation_of(keys) for keys in self._buckets.keys])
            self.is_begun = True  # also if the answer is lost
            generation, is_unmoved = await self._change(BEGIN, self._size, highest, CHANGING)
            if generation < 0:
                stored = parse(await self._read(), self._former.size)
                size = stored.change.size if stored.change else self._size
                by = " with the version that began it" if generation == -2 else ""
                raise StartupError(
                    f"the number of buckets is being changed to {size}: "
                    f"run `delay-queue rebalance --buckets {size}` to the end first{by}"
                )
        former_sizes = self._former.former_sizes
        if self._size != self._former.size:
            former_sizes += (self._former.size,)
        self._buckets.adopt(Layout(self._size, generation, former_sizes, braces=self._size > 1))
        self.is_unmoved = bool(is_unmoved)
        await self.raise_fences()

    async def raise_fences(self) -> None:
        """Let no server work in any bucket; again after a failover, whose new master may not know of it."""
        generation = self._buckets.layout.generation
        with as_unavailable():
            for keys in self._buckets.keys:
                if await self._eval(RAISE, keys.named("fence"), generation) != generation:
                    raise AnotherChange

    async def give_up(self) -> None:
        """Let servers go on with the former layout, as nothing has been moved."""
        generation = self._buckets.layout.generation
        await self._end(replace(self._former, generation=generation))
        self.is_begun = False

    async def start(self) -> None:
        """Note that entries are moved from now on: the change can no longer be given up."""
        await self._write("unmoved", "")
        self.is_unmoved = False

    async def tell(self, percent: int) -> None:
        """Report how far the change is."""
        await self._write("percent", percent)

    async def end(self) -> None:
        """Everything is in its bucket: let servers work with the new layout."""
        await self._end(self._buckets.layout)

    async def _end(self, layout: Layout) -> None:
        await self._write(*chain.from_iterable(written(layout).items()), ends=True)

    async def _write(self, *fields: object, ends: bool = False) -> None:
        with as_unavailable():
            generation, end = self._buckets.layout.generation, "end" if ends else ""
            if not await self._change(WRITE, generation, end, *fields):
                raise AnotherChange

    async def _change(self, script: str, *args: Any) -> Any:
        return await self._eval(script, self._buckets.keys[0].named("layout"), *args)

    async def _eval(self, script: str, key: str, *args: Any) -> Any:
        return await self._servers.call(key, methodcaller("eval", script, 1, key, *args))

    async def _read(self) -> dict[str, str]:
        return await read_fields(self._servers, self._buckets.keys[0].named("layout"))

    async def _generation_of(self, keys: BucketKeys) -> int:
        """The generation of the layout that a bucket's fence demands of scripts."""
        fence = keys.named("fence")
        ask = methodcaller("zscore", fence, "generation")
        return int(await self._servers.call(fence, ask) or 0)
