"""Runs scripts in buckets, and translates redis-py's exceptions to those that the rest of the program knows."""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import monotonic, perf_counter
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.failpoint import Failpoint
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.errors import Text, Unavailable
from delayqueue.metrics import SCRIPT_ERRORS, SCRIPT_SECONDS, Metrics
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.layout import begin_move, end_move, settle_layout
from delayqueue.store.bucket.measure import count_events, count_repairs
from delayqueue.store.bucket.replies import Reply, read_reply
from delayqueue.store.scripts import Scripts
from delayqueue.store.servers.ailments import UNKNOWN, ailment
from delayqueue.store.servers.durability import Durability
from delayqueue.store.servers.functions import Functions, Terms
from delayqueue.store.servers.replication import TooFewReplicasError
from delayqueue.store.servers.shards import Shards

log = logging.getLogger(__name__)

STALE = "STALELAYOUT"  # the start of the scripts' error (_prelude.lua)
AWAY = (
    "the store of bucket %d does not answer: its jobs wait in it, requests for them get code 6 (HTTP 503), "
    "and all goes on by itself when it answers again"
)


T = TypeVar("T")


class LayoutChanged(Unavailable):
    """The number of buckets has changed, and nothing was done: the ids may belong to other buckets now."""


class Caller:
    """All calls raise Unavailable if Redis does not answer or refuses."""

    def __init__(
        self,
        shards: Shards,
        buckets: Buckets,
        scripts: Scripts,
        failpoint: Failpoint | None,
        metrics: Metrics,
        durability: Durability,
    ) -> None:
        self._shards = shards
        self._buckets = buckets
        self._verbs = scripts.verbs
        self._functions = Functions(scripts)
        self._failpoint = failpoint
        self._metrics = metrics
        self._durability = durability
        self._following = asyncio.Lock()
        # by bucket, monotonic seconds:
        self._away_since: dict[int, float] = {}  # its server does not answer
        self._back_at: dict[int, float] = {}  # it has answered again
        self._ailments: dict[int, Text] = {}  # by bucket: why its last call failed
        self._closed: Text | None = None  # why nothing can be called yet
        self.sender = secrets.token_hex(6)  # marks this process's announcements, for it to ignore

    async def run(
        self,
        verb: str,
        bucket: int,
        args: Sequence[Any],
        scope: Scope = EVERYWHERE,
        *,
        follows: bool | None = None,
    ) -> Reply:
        """Run a script and return its answer. Raises LayoutChanged if the bucket was chosen by an outdated layout.

        `follows`: whether the call means the same under a newer layout; None = as the verb's head says.
        """
        while True:
            generation = self._buckets.layout.generation
            try:
                return await self._run_once(generation, verb, bucket, args, scope)
            except LayoutChanged:
                if not (self._verbs[verb].follows_layout if follows is None else follows):
                    raise
                await self.follow_layout(generation)

    async def follow_layout(self, known: int | None = None) -> None:
        """Use the layout in force; if `known` is given, one later than that generation.

        Raises Unavailable if there is none.
        """
        async with self._following:
            if known not in (None, self._buckets.layout.generation):
                return
            layout = await self._settled(settle_layout(self._shards, self._buckets))
            if layout.generation == known:
                log.error("a bucket knows a later layout than bucket 1, which has lost it")
                raise Unavailable
            if layout == self._buckets.layout:
                return
            self._buckets.adopt(layout)
            self._shards.announce_change()
            origin = f"; jobs come from {layout.former_size}" if layout.moving else ""
            log.info("the data has %d buckets%s", layout.size, origin)

    async def begin_move(self, size: int) -> None:
        """Change to `size` buckets, and follow. Raises AnotherChange if somebody else has changed the layout."""
        await self._settled(begin_move(self._shards, self._buckets, size))
        await self.follow_layout()

    async def end_move(self, layout: Layout) -> None:
        """All jobs are in their buckets by that layout."""
        await self._settled(end_move(self._shards, self._buckets, layout))
        await self.follow_layout()

    async def ask(self, verb: str, bucket: int, send: Callable[[Redis], Awaitable[Any]]) -> Any:
        """Ask the bucket's server. Raises Unavailable if redis-py raises, LayoutChanged if the layout is stale."""
        if self._closed:
            raise Unavailable
        tag = self._buckets[bucket].tag
        began_s = monotonic()
        try:
            answer = await self._shards.call(tag, send)
        except RedisError as error:
            if isinstance(error, ResponseError) and str(error).startswith(STALE):
                raise LayoutChanged from error
            # the first failure was logged; those that follow come fast, and there are many
            known = isinstance(error, TooFewReplicasError)
            level = logging.DEBUG if known else logging.WARNING
            log.log(level, "%s failed in the store: %s", verb, error)
            self._metrics.count(SCRIPT_ERRORS, verb)
            self._ailments[bucket] = ailment(error) or UNKNOWN
            if isinstance(error, (RedisConnectionError, RedisTimeoutError)):
                self._note_away(bucket, began_s)
            if isinstance(error, RedisTimeoutError):
                # the next caller to use another idle connection might wait as long
                await self._shards.drop_idle(tag)
            raise Unavailable from error
        if self._ailments:
            self._ailments.pop(bucket, None)
        if bucket in self._away_since:
            self._note_back(bucket)
        return answer

    def close(self, why: Text) -> None:
        """Refuse all calls, until open()."""
        self._closed = why

    def open(self) -> None:
        """Make calls: the layout is the one in force."""
        self._closed = None
        self._shards.announce_change()

    @property
    def is_closed(self) -> bool:
        """Whether all calls are refused."""
        return self._closed is not None

    def away(self) -> set[int]:
        """The buckets whose server did not answer the last call."""
        return set(self._away_since)

    def ailment(self) -> Text | None:
        """Why calls fail now; None if none does."""
        return self._closed or next(iter(self._ailments.values()), None)

    def _note_away(self, bucket: int, since_s: float) -> None:
        """A call that began then has failed. It says nothing if another one has been answered since then."""
        if bucket not in self._away_since and since_s > self._back_at.get(bucket, 0.0):
            self._away_since[bucket] = since_s
            # no warning: of two outages in a row, the log would leave one out
            log.error(AWAY, bucket + 1)

    def _note_back(self, bucket: int) -> None:
        self._back_at[bucket] = monotonic()
        away_s = self._back_at[bucket] - self._away_since.pop(bucket)
        log.info("the store of bucket %d answers again, after %.1f s", bucket + 1, away_s)

    async def _settled(self, work: Awaitable[T]) -> T:
        """Await a change or a reading of the layout."""
        try:
            return await work
        except RedisError as error:
            log.warning("the layout of the data cannot be read or changed: %s", error)
            raise Unavailable from error

    async def _run_once(
        self, generation: int, verb: str, bucket: int, args: Sequence[Any], scope: Scope
    ) -> Reply:
        """Run a script by this generation of the layout: nothing is awaited before the bucket is chosen."""
        keys = self._buckets[bucket]
        names = [keys.tag, keys.queue_name]
        if scope is not EVERYWHERE:
            names.append(keys.tag + json.dumps(scope.entries, ensure_ascii=False))
        until_s = asyncio.get_running_loop().time() + self._shards.answer_s
        terms = Terms(generation, until_s, self.sender)
        call = partial(self._functions.call, verb, names, args, terms)
        if self._failpoint:
            self._failpoint.reach(f"{verb}.before")
        began = perf_counter()
        answer = await self.ask(
            verb, bucket, partial(self._durability.keep, self._verbs[verb], call)
        )
        self._metrics.observe(SCRIPT_SECONDS, perf_counter() - began, verb)
        reply = read_reply(answer)
        count_events(self._metrics, reply.events)
        count_repairs(self._metrics, verb, reply.results)
        if self._failpoint:
            self._failpoint.reach(f"{verb}.after")
        return reply
