"""Reads jobs by their ids, as many as an answer may hold."""

from collections.abc import Sequence

from delayqueue.domain.access import Scope
from delayqueue.domain.job import MAX_ANSWER_BYTES, JobView
from delayqueue.store.store import Store
from delayqueue.store.verbs import GET, WEIGH


async def read_jobs(store: Store, ids: Sequence[str], scope: Scope) -> list[JobView | None]:
    """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
    each = list(dict.fromkeys(ids))
    weights = dict(zip(each, await store.run(WEIGH, each, scope), strict=True))
    ids = ids[: fitting([weights[job_id] for job_id in ids])]
    each = list(dict.fromkeys(ids))
    found = dict(zip(each, await store.run(GET, each, scope), strict=True))
    return [found[job_id] for job_id in ids]


def fitting(weights: Sequence[int], held_bytes: int = 0) -> int:
    """How many jobs fit into an answer that already holds `held_bytes`; an empty one takes at least one."""
    for number, weight_bytes in enumerate(weights):
        if held_bytes > 0 and held_bytes + weight_bytes > MAX_ANSWER_BYTES:
            return number
        held_bytes += weight_bytes
    return len(weights)
