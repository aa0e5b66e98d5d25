"""Reads jobs by their ids, as many as an answer may hold."""

from collections.abc import Sequence

from delayqueue.domain.access import Scope
from delayqueue.domain.job import MAX_ANSWER_BYTES, JobView
from delayqueue.store.router import Router


class Lookup:
    """Reads jobs: `weigh` returns their sizes, `read` all about them."""

    def __init__(self, weigh: Router[str, int], read: Router[str, JobView | None]) -> None:
        self._weigh = weigh
        self._read = read

    async def get(self, ids: Sequence[str], scope: Scope) -> list[JobView | None]:
        """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
        each = list(dict.fromkeys(ids))
        if len(ids) > 1:
            weights = dict(zip(each, await self._weigh.run(each, scope), strict=True))
            ids = ids[: fitting([weights[job_id] for job_id in ids])]
            each = list(dict.fromkeys(ids))
        found = dict(zip(each, await self._read.run(each, scope), strict=True))
        return [found[job_id] for job_id in ids]


def fitting(weights: Sequence[int], held_bytes: int = 0) -> int:
    """How many jobs fit into an answer that already holds `held_bytes`; an empty one takes at least one."""
    for number, weight_bytes in enumerate(weights):
        if held_bytes > 0 and held_bytes + weight_bytes > MAX_ANSWER_BYTES:
            return number
        held_bytes += weight_bytes
    return len(weights)
