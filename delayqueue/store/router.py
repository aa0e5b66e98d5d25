"""Routes the items of a verb to the buckets of their jobs."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from delayqueue.domain.access import Scope
from delayqueue.errors import Invalid, Text, Unavailable
from delayqueue.store.batcher import Batcher, VerbRequest
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.types import Change
from delayqueue.store.verbs import Verb
from delayqueue.tasks import Tasks

Item = TypeVar("Item")
Result = TypeVar("Result")
T = TypeVar("T")

APART: Final = Text(
    "这些job在不同的bucket中，不能一起操作",
    "these jobs are in different buckets, so nothing can be done with them at once",
)


class Router:
    """Runs verbs for jobs of any bucket. Items of one bucket go straight into its next call."""

    def __init__(self, store: BucketStore, notify: Callable[[int, Change], None]) -> None:
        """`notify(bucket, change)` is called with what became ready or due."""
        self._store = store
        self._buckets = store.buckets
        self._notify = notify
        self._batchers: dict[tuple[Verb[Any, Any], int, Scope], Batcher[Any, Any]] = {}
        self._tasks = Tasks("routing")
        self._buckets.on_change(self._forget_batchers)

    def run(
        self, verb: Verb[Item, Result], items: Sequence[Item], scope: Scope
    ) -> asyncio.Future[list[Result]]:
        """The results of the items, in order. Jobs of topics out of the scope do not exist.

        Raises Unavailable if the store does not answer; if only some buckets do not, and the verb has a `lost`, that is
        the result of their items. Cancelling the future does not stop the call.
        """
        request = VerbRequest(items, verb.lost, list)
        self._route(verb, scope, request)
        return request

    def run_then(
        self,
        verb: Verb[Item, Result],
        items: Sequence[Item],
        scope: Scope,
        read: Callable[[Sequence[Result]], T],
    ) -> asyncio.Future[T]:
        """What `read` makes of the results that run() gives, or the error that it raises."""
        request = VerbRequest(items, verb.lost, read)
        self._route(verb, scope, request)
        return request

    def _route(
        self, verb: Verb[Item, Result], scope: Scope, request: VerbRequest[Item, Result]
    ) -> None:
        """Submit it to the batcher of its bucket; if it is for several, split it."""
        items = request.left
        bucket = 0
        if self._buckets.layout.size > 1 or not items:
            buckets = {self._buckets.of(one) for item in items for one in verb.ids(item)}
            if len(buckets) != 1:
                self._tasks.start(self._split(verb, scope, request))
                return
            bucket = buckets.pop()
        batcher = self._batchers.get((verb, bucket, scope)) or self._add(verb, bucket, scope)
        batcher.submit(request)

    def _add(self, verb: Verb[Item, Result], bucket: int, scope: Scope) -> Batcher[Item, Result]:
        call = partial(self._store.caller.call, verb.script, bucket, scope=scope)
        batcher = self._batchers[verb, bucket, scope] = Batcher(verb, bucket, call, self._notify)
        return batcher

    async def _split(
        self, verb: Verb[Item, Result], scope: Scope, request: VerbRequest[Item, Result]
    ) -> None:
        """Ask each bucket for its items."""
        try:
            request.add(await self._ask(verb, scope, request.left))
        except Exception as error:
            request.fail(error)

    async def _ask(
        self, verb: Verb[Item, Result], scope: Scope, items: Sequence[Item]
    ) -> list[Result]:
        """The results of items of several buckets, in order."""
        places: dict[int, list[int]] = {}
        for place, item in enumerate(items):
            places.setdefault(self._bucket_of(verb, item), []).append(place)
        parts = [
            VerbRequest[Item, Result]([items[place] for place in mine], verb.lost, list)
            for mine in places.values()
        ]
        for part in parts:
            self._route(verb, scope, part)
        answers = await asyncio.gather(*parts, return_exceptions=True)
        all_failed = all(isinstance(answer, BaseException) for answer in answers)
        results: dict[int, Result] = {}
        for mine, answer in zip(places.values(), answers, strict=True):
            if isinstance(answer, Unavailable) and verb.lost is not None and not all_failed:
                results |= dict.fromkeys(mine, verb.lost)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                results |= zip(mine, answer, strict=True)
        return [results[place] for place in range(len(items))]

    def _bucket_of(self, verb: Verb[Item, Result], item: Item) -> int:
        first, *others = {self._buckets.of(one) for one in verb.ids(item)}
        if others:
            raise Invalid(APART)
        return first

    def _forget_batchers(self) -> None:
        """The layout is another one: what waits was routed by the former one, and may belong to other buckets now."""
        batchers, self._batchers = self._batchers, {}
        for batcher in batchers.values():
            batcher.fail_waiting(Unavailable())
