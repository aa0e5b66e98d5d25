"""Reads jobs by their ids, as many as an answer may hold."""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from delayqueue.engine.migration import Migration
from delayqueue.engine.spread import Spread
from delayqueue.job import MAX_ANSWER_BYTES, JobView
from delayqueue.store.store import Store


class _LeftOut(Enum):
    """The call had no room for the job."""

    LEFT_OUT = 0


LEFT_OUT: Final = _LeftOut.LEFT_OUT


class Lookup:
    """All raise Unavailable where the store does not answer."""

    def __init__(self, store: Store, migration: Migration) -> None:
        self._store = store
        self._gets: Spread[str, JobView | _LeftOut | None] = Spread(migration, self._get, "get")
        self._weights: Spread[str, int] = Spread(migration, store.weigh, "weigh")

    async def get(self, ids: Sequence[str]) -> list[JobView | None]:
        """All that is known of jobs, None for an unknown id; only of the first ones where all would be too large."""
        if len(ids) > 1:
            each = list(dict.fromkeys(ids))
            weights = dict(zip(each, await self._weights.many(each, each), strict=True))
            ids = ids[: fitting([weights[job_id] for job_id in ids])]
        found: dict[str, JobView | None] = {}
        while missing := list(dict.fromkeys(job_id for job_id in ids if job_id not in found)):
            views = zip(missing, await self._gets.many(missing, missing), strict=True)
            found.update((job_id, view) for job_id, view in views if view is not LEFT_OUT)
        return [found[job_id] for job_id in ids]

    async def _get(self, bucket: int, ids: list[str]) -> list[JobView | _LeftOut | None]:
        found = await self._store.get(bucket, ids)
        return [*found, *[LEFT_OUT] * (len(ids) - len(found))]


def fitting(weights: Sequence[int], held_bytes: int = 0) -> int:
    """How many jobs, from the first one on, fit in an answer that holds so many bytes already; one in an empty one."""
    for number, weight_bytes in enumerate(weights):
        if held_bytes > 0 and held_bytes + weight_bytes > MAX_ANSWER_BYTES:
            return number
        held_bytes += weight_bytes
    return len(weights)
