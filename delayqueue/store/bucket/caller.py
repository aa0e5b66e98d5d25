"""Calls verbs in buckets, and translates redis-py's exceptions to those that the rest of the program knows."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, Final, TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.failpoint import Failpoint
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.errors import Text, Unavailable
from delayqueue.metrics import SCRIPT_SECONDS, Metrics
from delayqueue.store.bucket.buckets import Buckets
from delayqueue.store.bucket.outages import Outages
from delayqueue.store.bucket.recovery import OUTDATED, Recovery
from delayqueue.store.bucket.repairs import REPAIRS_OF
from delayqueue.store.bucket.replies import Reply
from delayqueue.store.bucket.verb_call import Terms, VerbCall
from delayqueue.store.scripts import Scripts
from delayqueue.store.servers.durability import Durability
from delayqueue.store.servers.functions import Functions
from delayqueue.store.servers.shards import Shards

T = TypeVar("T")


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
        self.sender: Final = secrets.token_hex(6)
        functions = Functions(scripts)
        self._outages = Outages(metrics)
        self._recovery = Recovery(
            shards, functions, durability, self._outages, lambda: self.close(OUTDATED)
        )
        self._terms = {
            name: Terms(
                verb=verb,
                functions=functions,
                function=functions.function(name),
                sender=self.sender,
                wait=durability.wait(verb),
                requirements=durability.requirements(verb),
                recover=self._recovery.start,
                metrics=metrics,
                seconds=metrics.histogram(SCRIPT_SECONDS, name),
                count_repairs=REPAIRS_OF.get(name),
                outages=self._outages,
                failpoint=failpoint,
            )
            for name, verb in scripts.verbs.items()
        }
        self._closed: Text | None = None  # why nothing can be called yet

    def call(
        self,
        verb: str,
        bucket: int,
        args: Sequence[Any],
        scope: Scope = EVERYWHERE,
        *,
        read: Callable[[Reply], Any] | None = None,
    ) -> asyncio.Future[Any]:
        """Call a verb. The future has the script's Reply, or what `read` makes of it.

        Nothing is awaited while all is well (recovery.py). The future's exception is Unavailable, or UnicodeEncodeError
        if no bytes stand for an argument.
        """
        terms, keys = self._terms[verb], self._buckets.keys[bucket]
        names = [keys.tag, keys.queue_name]
        if scope is not EVERYWHERE:
            names.append(keys.tag + json.dumps(scope.entries, ensure_ascii=False))
        call = VerbCall(
            terms,
            bucket,
            names,
            args,
            read,
            generation=self._buckets.layout.generation,
            answer_s=self._shards.answer_s,
        )
        if self._closed:
            call.set_exception(Unavailable(self._closed))
            return call
        if terms.failpoint:
            terms.failpoint.reach(f"{verb}.before")
        server = self._shards.known.get(keys.tag)
        if server is None or (
            terms.requirements and not all(one.is_met(server.redis) for one in terms.requirements)
        ):
            self._recovery.start(call)
        else:
            call.attempt(server)
        return call

    async def ask(self, verb: str, bucket: int, send: Callable[[Redis], Awaitable[T]]) -> T:
        """Ask the bucket's server with a command of redis-py that only reads.

        Raises Unavailable if it does not answer or refuses.
        """
        if self._closed:
            raise Unavailable(self._closed)
        began_s = monotonic()
        try:
            answer = await self._shards.call(self._buckets.keys[bucket].tag, send)
        except RedisError as error:
            self._outages.failed(bucket, verb, error, began_s, writes=False)
            raise Unavailable from error
        self._outages.answered(bucket, writes=False)
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
        return self._outages.away()

    def ailment(self) -> Text | None:
        """Why calls fail now; None if none does."""
        return self._closed or next(iter(self._outages.ailments.values()), None)
