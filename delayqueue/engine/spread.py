"""Spreads the items of one request over the buckets of their ids, and joins the answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from delayqueue.engine.batcher import Batcher
from delayqueue.engine.migration import Migration
from delayqueue.errors import Unavailable
from delayqueue.store.caller import LayoutChanged


class _OfJob(Protocol):
    @property
    def id(self) -> str: ...


Item = TypeVar("Item", bound=_OfJob | str)
Result = TypeVar("Result")


class Spread(Generic[Item, Result]):
    """One verb over all buckets, with a batcher for each: `call(bucket, items)` gives one result an item.

    It may give those of the first ones only; it is called for the others then.
    `lost` is the result of items whose bucket does not answer while another one does; None = the whole request fails.
    `bytes_of` as a Batcher takes it.
    """

    def __init__(
        self,
        migration: Migration,
        call: Callable[[int, list[Item]], Awaitable[Sequence[Result]]],
        name: str,
        lost: Result | None = None,
        bytes_of: Callable[[Item], int] = lambda _: 0,
    ) -> None:
        self._migration = migration
        self._buckets = migration.buckets
        self._call = call
        self._name = name
        self._lost = lost
        self._bytes_of = bytes_of
        self._batchers: dict[int, Batcher[Item, Result | Unavailable]] = {}

    async def one(self, job_id: str, item: Item) -> Result:
        """The result of one item, which belongs to the bucket of `job_id`."""
        while True:
            generation = self._buckets.layout.generation
            with suppress(LayoutChanged):
                [result] = await self._batcher(self._buckets.of(job_id)).submit((item,))
                if isinstance(result, Unavailable):
                    raise result
                return result
            await self._migration.follow(generation)

    async def many(self, ids: Sequence[str], items: Sequence[Item]) -> list[Result]:
        """The results of many items, in their order."""
        results: dict[int, Result] = {}
        while len(results) < len(ids):
            generation = self._buckets.layout.generation
            if self._buckets.layout.size == 1:
                with suppress(LayoutChanged):
                    return list(self._each_told(await self._batcher(0).submit(items)))
            else:
                left = [place for place in range(len(ids)) if place not in results]
                results |= await self._ask(left, ids, items)
            if len(results) < len(ids):
                await self._migration.follow(generation)
        return [results[place] for place in range(len(ids))]

    async def _ask(
        self, left: Sequence[int], ids: Sequence[str], items: Sequence[Item]
    ) -> dict[int, Result]:
        """The results of the items at these places, but for those whose bucket is another one by now."""
        places: dict[int, list[int]] = {}
        for place in left:
            places.setdefault(self._buckets.of(ids[place]), []).append(place)
        answers = await asyncio.gather(
            *(
                self._batcher(bucket).submit([items[place] for place in mine])
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
        """What to say of a bucket's items; raises where that is nothing."""
        if not isinstance(answer, BaseException):
            return self._each_told(answer)
        all_lost = all(isinstance(each, BaseException) for each in answers)
        if self._lost is None or all_lost or not isinstance(answer, Unavailable):
            raise answer
        return [self._lost] * count

    def _each_told(self, results: Sequence[Result | Unavailable]) -> Sequence[Result]:
        """With `lost` for items that cannot be reached where they came from; raises where there is no such result."""
        told: list[Result] = []
        for result in results:
            if not isinstance(result, Unavailable):
                told.append(result)
            elif self._lost is None:
                raise result
            else:
                told.append(self._lost)
        return told

    def _batcher(self, bucket: int) -> Batcher[Item, Result | Unavailable]:
        batcher = self._batchers.get(bucket)
        if batcher is None:
            name = f"{self._name} {bucket}"
            batcher = Batcher(lambda items: self._run(bucket, items), name, self._bytes_of)
            self._batchers[bucket] = batcher
        return batcher

    async def _run(self, bucket: int, items: list[Item]) -> Sequence[Result | Unavailable]:
        """Call, if the items belong to the bucket at that very moment; nothing is awaited between the two."""
        layout = self._buckets.layout
        if not layout.generation:
            return await self._all(bucket, items)
        ids = [item if isinstance(item, str) else item.id for item in items]
        if any(self._buckets.of(job_id) != bucket for job_id in ids):
            raise LayoutChanged
        lost = await self._migration.fetch(bucket, ids) if layout.moving else set[str]()
        if self._buckets.layout.generation != layout.generation:
            raise LayoutChanged
        found = [item for job_id, item in zip(ids, items, strict=True) if job_id not in lost]
        answers = iter(await self._all(bucket, found) if found else ())
        return [Unavailable() if job_id in lost else next(answers) for job_id in ids]

    async def _all(self, bucket: int, items: list[Item]) -> Sequence[Result | Unavailable]:
        """The results of as many calls as it takes; Unavailable for what is left where one but the first fails."""
        results: list[Result | Unavailable] = []
        most = len(items)
        while len(results) < len(items):
            try:
                answer = await self._call(bucket, items[len(results) : len(results) + most])
            except Unavailable:
                if not results:
                    raise
                return results + [Unavailable()] * (len(items) - len(results))
            results += answer
            most = 2 * len(answer)  # about what a call can do
        return results
