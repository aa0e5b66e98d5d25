"""Routes a verb to the buckets of its jobs: splits, batches, follows the layout, joins."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.errors import Unavailable
from delayqueue.store.batcher import Batcher
from delayqueue.store.bucket.migration import Migration
from delayqueue.store.bucket.recovery import LayoutChanged
from delayqueue.store.servers.pipeline import AT_A_TIME
from delayqueue.store.types import Change

Item = TypeVar("Item")
Result = TypeVar("Result")
Call = Callable[[int, list[Item], Scope], Awaitable[tuple[Sequence[Result], Change]]]


class Router(Generic[Item, Result]):
    """One verb for jobs of any bucket; an item is a job's id, or has one.

    `call(bucket, items, scope)` returns a result for each of the first items, at least one, and the change that
    `notify` is called with. `lost` is the result of items whose bucket does not answer while another one does; None =
    the whole request fails. `bytes_of` as in Batcher.
    """

    def __init__(
        self,
        name: str,
        call: Call[Item, Result],
        migration: Migration,
        notify: Callable[[int, Change], None],
        lost: Result | None = None,
        bytes_of: Callable[[Item], int] | None = None,
    ) -> None:
        self._name = name
        self._call = call
        self._migration = migration
        self._buckets = migration.buckets
        self._notify = notify
        self._lost = lost
        self._bytes_of = bytes_of
        self._batchers: dict[tuple[int, Scope], Batcher[Item, Result]] = {}

    async def run(self, items: Sequence[Item], scope: Scope = EVERYWHERE) -> list[Result]:
        """The results of the items, in order. Raises Unavailable if the store does not answer."""
        results: dict[int, Result] = {}
        while len(results) < len(items):
            generation = self._buckets.layout.generation
            if self._buckets.layout.size == 1 and not results:
                with suppress(LayoutChanged):
                    return self._each_told(await self._batcher(0, scope).submit(items))
            else:
                left = [place for place in range(len(items)) if place not in results]
                results |= await self._ask(left, items, scope)
            if len(results) < len(items):
                await self._migration.follow(generation)
        return [results[place] for place in range(len(items))]

    async def _ask(
        self, left: Sequence[int], items: Sequence[Item], scope: Scope
    ) -> dict[int, Result]:
        """The results of the items at these places, except those whose bucket is another one by now."""
        places: dict[int, list[int]] = {}
        for place in left:
            places.setdefault(self._buckets.of(_id(items[place])), []).append(place)
        answers = await asyncio.gather(
            *(
                self._batcher(bucket, scope).submit([items[place] for place in mine])
                for bucket, mine in places.items()
            ),
            return_exceptions=True,
        )
        results: dict[int, Result] = {}
        for mine, answer in zip(places.values(), answers, strict=True):
            if not isinstance(answer, LayoutChanged):
                results |= zip(mine, self._results(len(mine), answer, answers), strict=True)
        return results

    def _results(
        self,
        count: int,
        answer: Sequence[Result | Unavailable] | BaseException,
        answers: Sequence[object],
    ) -> Sequence[Result]:
        """The results of a bucket's items; raises if there is none to give."""
        if not isinstance(answer, BaseException):
            return self._each_told(answer)
        all_lost = all(isinstance(each, BaseException) for each in answers)
        if self._lost is None or all_lost or not isinstance(answer, Unavailable):
            raise answer
        return [self._lost] * count

    def _each_told(self, results: Sequence[Result | Unavailable]) -> list[Result]:
        """The results, with `lost` for items whose former bucket is unavailable; raises if the verb has no `lost`."""
        told: list[Result] = []
        for result in results:
            if not isinstance(result, Unavailable):
                told.append(result)
            elif self._lost is None:
                raise result
            else:
                told.append(self._lost)
        return told

    def _batcher(self, bucket: int, scope: Scope) -> Batcher[Item, Result]:
        batcher = self._batchers.get((bucket, scope))
        if batcher is None:
            name = f"{self._name} {bucket}"
            batcher = self._batchers[bucket, scope] = Batcher(
                lambda items: self._send(bucket, items, scope), name, self._bytes_of, AT_A_TIME
            )
        return batcher

    async def _send(
        self, bucket: int, items: list[Item], scope: Scope
    ) -> Sequence[Result | Unavailable]:
        """Call, if the items belong to the bucket at that moment; nothing is awaited in between."""
        layout = self._buckets.layout
        ids = [_id(item) for item in items] if layout.generation else []
        if any(self._buckets.of(job_id) != bucket for job_id in ids):
            raise LayoutChanged
        lost = await self._migration.fetch(bucket, ids) if layout.moving else set[str]()
        if self._buckets.layout.generation != layout.generation:
            raise LayoutChanged
        if not lost:
            return await self._send_now(bucket, items, scope)
        found = [item for item in items if _id(item) not in lost]
        answers = list(await self._send_now(bucket, found, scope)) if found else []
        answers.reverse()
        results: list[Result | Unavailable] = []
        for job_id in ids:
            if job_id not in lost and not answers:
                break
            results.append(Unavailable() if job_id in lost else answers.pop())
        return results

    async def _send_now(self, bucket: int, items: list[Item], scope: Scope) -> Sequence[Result]:
        results, change = await self._call(bucket, items, scope)
        self._notify(bucket, change)
        return results


def _id(item: object) -> str:
    return item if isinstance(item, str) else item.id  # type: ignore[attr-defined]
