"""The store, one bucket at a time, with a method per script. store.py has the same verbs for jobs of any bucket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from redis.asyncio import Redis

from delayqueue.config.failpoint import Failpoint
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import State
from delayqueue.domain.receipt import nonces
from delayqueue.errors import Code
from delayqueue.metrics import Metrics
from delayqueue.store.bucket.buckets import Buckets
from delayqueue.store.bucket.caller import Caller
from delayqueue.store.bucket.record import text
from delayqueue.store.bucket.replies import (
    Reply,
    reserved,
    settings_of,
    topic_counts,
    view,
)
from delayqueue.store.scripts import ZSET, Scripts
from delayqueue.store.servers.durability import Durability
from delayqueue.store.servers.shards import Shards
from delayqueue.store.types import (
    BucketCounts,
    Change,
    Demand,
    Listing,
    Popped,
    Swept,
    TagListing,
    TagPage,
    TagPlace,
    Ticked,
    TimedOut,
)
from delayqueue.store.verbs import Verb

# The most jobs that one tick moves: 10,000 blocked the store for 13 ms.
TICK_LIMIT = 2000
NAMES_PER_CALL = 1000

Told: TypeAlias = Literal["servers", "workers"]  # what server processes tell each other about

Item = TypeVar("Item")
Result = TypeVar("Result")


class BucketStore:
    """Calls the scripts. Buckets are numbered from 0 here; `keys.py` names them from 1.

    Every method raises Unavailable if Redis does not answer or refuses. The scripts are atomic: a call without an
    answer has made all its changes or none, and makes none once its time is over (clock.py). A verb for many jobs may
    process only the first ones and answer for these: that limits how long it holds the store (_job.lua).
    """

    def __init__(
        self,
        shards: Shards,
        buckets: Buckets,
        scripts: Scripts = ZSET,
        failpoint: Failpoint | None = None,
        *,
        durability: Durability | None = None,
    ) -> None:
        self.shards = shards
        self.buckets = buckets
        self.metrics = Metrics()
        self.durability = durability or Durability()
        self.caller = Caller(shards, buckets, scripts, failpoint, self.metrics, self.durability)
        self._nonces = nonces()

    def pop(self, bucket: int, demands: Sequence[Demand]) -> Awaitable[Popped]:
        """Reserve ready jobs: for each demand at most as many as it wants, [] if none is ready."""
        nonce = next(self._nonces)
        args: list[Any] = [nonce]
        for demand in demands:
            args += (demand.wanted, int(demand.by_priority), len(demand.topics), *demand.topics)

        def read(reply: Reply) -> Popped:
            *found, written = reply.results
            revision: str = written.decode()
            jobs = [reserved(each, nonce, revision) for each in found]
            return Popped(jobs, reply.looked, reply.change)

        return self.caller.call("pop", bucket, args, read=read)

    async def kick_topic(
        self, bucket: int, topic: str, state: State, most: int
    ) -> tuple[int, bool, Change]:
        """Make the topic's first buried or delayed jobs ready. Returns how many, and whether more may be left."""
        reply = await self.run("kick", bucket, [topic, state.value, most])
        has_more = len(reply.results) < reply.looked or reply.looked == most
        return reply.results.count(Code.OK), has_more, reply.change

    async def tick(self, bucket: int, limit: int = TICK_LIMIT) -> Ticked:
        """Move what is due."""
        reply = await self.run("tick", bucket, [limit])
        redelivered, in_all, expired, set_aside, buried, late = reply.results
        names = [(text(buried[i]), text(buried[i + 1])) for i in range(0, len(buried), 2)]
        return Ticked(
            reply.change, redelivered, in_all, expired, set_aside, names, _timed_out(late)
        )

    async def sweep(
        self, bucket: int, cursor: int, topics: int, buried_retain_ms: int | None = None
    ) -> Swept:
        """Clean up about `topics` topics, from the cursor on (0 at the start and at the end).

        A buried job is kept for `buried_retain_ms` (None = until somebody ends it) unless its topic says otherwise.
        """
        retain = "" if buried_retain_ms is None else buried_retain_ms
        reply = await self.run("sweep", bucket, [cursor, topics, retain])
        cursor, ghosts, forgotten, ended, is_cut_short = map(int, reply.results)
        return Swept(cursor, ghosts, forgotten, ended, is_cut_short == 1)

    async def cancel(self, bucket: int, page: TagPage) -> tuple[TagPlace, int, Change]:
        """End jobs of a tag, as the methods of Tags do."""
        reply = await self.run("cancel", bucket, page.args, page.scope)
        return reply.results, reply.looked, reply.change

    async def purge(
        self, bucket: int, topic: str, state: str, limit: int
    ) -> tuple[int, bool, Change]:
        """Drop a topic's jobs in a state ("ended": kept results, "": all). Returns how many, and if more are left."""
        reply = await self.run("purge", bucket, [topic, state, limit])
        return reply.looked, reply.results[0] == 1, reply.change

    async def pause(self, bucket: int, topic: str, hold_ms: int | None) -> Change:
        """Pause a topic's deliveries for `hold_ms`, 0 = until resumed; None = resume them."""
        hold = "" if hold_ms is None else hold_ms
        return (await self.run("pause", bucket, [topic, hold])).change

    async def list_jobs(
        self,
        bucket: int,
        what: Listing,
        limit: int,
        place: TagPlace,
        held_bytes: int,
        scope: Scope,
    ) -> TagListing:
        """A page of the jobs of a tag, for an answer that already holds `held_bytes`."""
        args = [what.topic, what.tag, what.state, *what.due, limit, held_bytes, *place]
        after, found, held, is_full = (await self.run("list", bucket, args, scope)).results
        views = (view(text(job_id), *parts) for job_id, *parts in found)
        jobs = [each for each in views if each is not None]
        return TagListing(jobs, after, held, is_full == 1)

    async def forecast(
        self, bucket: int, topics: Sequence[str], start_ms: int, step_ms: int, steps: int
    ) -> list[int]:
        """How many delayed jobs of the topics fall due in each step."""
        totals, place, together = [0] * steps, 0, steps
        while place >= 0:
            args = [start_ms, step_ms, steps, place, together, *topics]
            place, together, counts = (await self.run("forecast", bucket, args)).results
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        return totals

    async def topic_names(self, bucket: int) -> AsyncIterator[list[str]]:
        """All topics that the bucket knows, some at a time; one can come twice."""
        key, cursor = self.buckets.keys[bucket].topics, 0
        while True:
            page: Any = await self.caller.ask("topics", bucket, partial(_scan, key, cursor))
            cursor, names = page
            yield [text(name) for name in names]
            if not cursor:
                return

    async def topic_count(self, bucket: int) -> int:
        """The number of topics that the bucket knows."""
        key = self.buckets.keys[bucket].topics
        return int(await self.caller.ask("topics", bucket, lambda redis: redis.hlen(key)))

    async def topic_settings(self, bucket: int) -> dict[str, Any]:
        """The settings of topics, as parsed from JSON; only topics with readable settings."""
        key = self.buckets.keys[bucket].topics
        found: Any = await self.caller.ask("topics", bucket, lambda redis: redis.hgetall(key))
        return {
            text(name): each for name, written in found.items() if (each := settings_of(written))
        }

    async def settings_of(self, bucket: int, topic: str) -> str:
        """The settings of one topic (JSON)."""
        key = self.buckets.keys[bucket].topics
        written: Any = await self.caller.ask("topics", bucket, lambda redis: redis.hget(key, topic))
        return text(written or b"{}")

    async def topics(self, bucket: int, topics: Sequence[str]) -> list[BucketCounts]:
        """The exact counts of topics."""

        async def count(piece: Sequence[str]) -> Sequence[Any]:
            return (await self.run("topics", bucket, piece)).results

        return [topic_counts(answer) for answer in await in_pieces(count, topics)]

    async def due_soon(
        self, bucket: int, topics: Sequence[str], within_ms: Sequence[int]
    ) -> list[Sequence[int]]:
        """For each topic how many delayed jobs fall due within each of these times, from the shortest on."""

        async def count(piece: Sequence[str]) -> Sequence[Sequence[int]]:
            args = [len(within_ms), *within_ms, *piece]
            return (await self.run("due_soon", bucket, args)).results

        return await in_pieces(count, topics)

    async def heartbeat(self, told: Told, name: str, figures: str, silence_ms: int) -> None:
        """Record what the process `name` tells; what processes told that were silent for longer is dropped."""
        await self.run("heartbeat", 0, [told, name, figures, silence_ms])

    async def servers(self, told: Told, silence_ms: int) -> list[tuple[str, int, str]]:
        """Name, time last heard in ms and figures of all processes that were heard within `silence_ms`."""
        found = (await self.run("servers", 0, [told, silence_ms])).results
        return [(text(found[i]), found[i + 1], text(found[i + 2])) for i in range(0, len(found), 3)]

    def run(
        self,
        script: str,
        bucket: int,
        args: Sequence[Any],
        scope: Scope = EVERYWHERE,
    ) -> asyncio.Future[Reply]:
        """Call a script in a bucket; see Caller.call."""
        return self.caller.call(script, bucket, args, scope)

    async def run_verb(
        self, verb: Verb[Item, Result], bucket: int, items: Sequence[Item], scope: Scope
    ) -> tuple[Sequence[Result], Change]:
        """The results of the first of these items, which all belong to the bucket; and what became ready or due."""
        reply = await self.run(verb.script, bucket, verb.pack(items), scope)
        return verb.read(items, reply), reply.change


async def in_pieces(
    call: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]], items: Sequence[Item]
) -> list[Result]:
    """The results of all items; a call may return those of the first ones only."""
    results: list[Result] = []
    while len(results) < len(items):
        results += await call(items[len(results) :])
    return results


def _scan(key: str, cursor: int, redis: Redis) -> Awaitable[Any]:
    return redis.hscan(key, cursor, count=NAMES_PER_CALL)


def _timed_out(raw: Sequence[bytes]) -> list[TimedOut]:
    rows = (raw[at : at + 4] for at in range(0, len(raw), 4))
    return [
        TimedOut(text(topic), text(job_id), int(attempt), text(worker))
        for topic, job_id, attempt, worker in rows
    ]
