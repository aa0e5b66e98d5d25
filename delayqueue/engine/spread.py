"""Spreads the items of one request over the buckets of their ids, and joins the answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import repeat
from typing import Generic, TypeVar

from delayqueue.engine.batcher import Batcher
from delayqueue.errors import Unavailable
from delayqueue.store.store import Store

Item = TypeVar("Item")
Result = TypeVar("Result")


class Spread(Generic[Item, Result]):
    """One verb over all buckets, with a batcher for each: `call(bucket, items)` gives one result an item.

    `lost` is the result of items whose bucket does not answer while another one does; None = the whole request fails.
    """

    def __init__(
        self,
        store: Store,
        call: Callable[[int, list[Item]], Awaitable[Sequence[Result]]],
        name: str,
        lost: Result | None = None,
    ) -> None:
        self._store = store
        self._lost = lost
        self._batchers = [
            Batcher(self._of_bucket(call, bucket), f"{name} {bucket}")
            for bucket in range(store.bucket_count)
        ]

    async def one(self, job_id: str, item: Item) -> Result:
        """The result of one item, which belongs to the bucket of `job_id`."""
        bucket = self._store.bucket_of(job_id)
        return (await self._batchers[bucket].submit((item,)))[0]

    async def many(self, ids: Sequence[str], items: Sequence[Item]) -> list[Result]:
        """The results of many items, in their order."""
        if not ids:
            return []
        if len(self._batchers) == 1:
            return list(await self._batchers[0].submit(items))
        places: dict[int, list[int]] = {}
        for place, job_id in enumerate(ids):
            places.setdefault(self._store.bucket_of(job_id), []).append(place)
        answers = await asyncio.gather(
            *(
                self._batchers[bucket].submit([items[place] for place in mine])
                for bucket, mine in places.items()
            ),
            return_exceptions=True,
        )
        results: dict[int, Result] = {}
        for mine, answer in zip(places.values(), answers, strict=True):
            results |= zip(mine, self._results(answer, answers), strict=False)
        return [results[place] for place in range(len(ids))]

    def _results(
        self, answer: Sequence[Result] | BaseException, answers: Sequence[object]
    ) -> Iterable[Result]:
        """What to say of a bucket's items; raises where that is nothing."""
        if not isinstance(answer, BaseException):
            return answer
        all_lost = all(isinstance(each, BaseException) for each in answers)
        if self._lost is None or all_lost or not isinstance(answer, Unavailable):
            raise answer
        return repeat(self._lost)

    @staticmethod
    def _of_bucket(
        call: Callable[[int, list[Item]], Awaitable[Sequence[Result]]], bucket: int
    ) -> Callable[[list[Item]], Awaitable[Sequence[Result]]]:
        return lambda items: call(bucket, items)
