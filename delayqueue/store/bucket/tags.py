"""Changes all jobs of a tag, a page at a time, as BucketStore.cancel does."""

from collections.abc import Sequence
from typing import NamedTuple

from delayqueue.domain.job import State
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.record import dump_plan
from delayqueue.store.bucket.replies import or_none
from delayqueue.store.types import Change, Plan, TagPage, TagPlace


class RescheduledByTag(NamedTuple):
    """The due time that all jobs got, if it is one; and the ids of jobs that were moved by a distance."""

    due_ms: int | None
    moved: Sequence[bytes]


class Tags:
    """Each method returns where the next page begins, START = there is none, and how many jobs were changed.

    All raise Unavailable if Redis does not answer or refuses.
    """

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def kick(
        self, bucket: int, page: TagPage, *, state: State
    ) -> tuple[TagPlace, int, Change]:
        """Make the jobs in that state, buried or delayed, ready now."""
        args = [state.value, *page.args]
        reply = await self._store.run("kick_tag", bucket, args, page.scope)
        return reply.results, reply.looked, reply.change

    async def reschedule(
        self, bucket: int, page: TagPage, plan: Plan
    ) -> tuple[TagPlace, int, Change, RescheduledByTag]:
        """Give the jobs that are not reserved a new due time, a new priority, or both."""
        args = [*dump_plan(plan), *page.args]
        reply = await self._store.run("reschedule_tag", bucket, args, page.scope)
        after, due_ms, ids = reply.results
        return after, reply.looked, reply.change, RescheduledByTag(or_none(due_ms), ids)

    async def ids(self, bucket: int, page: TagPage) -> tuple[TagPlace, list[bytes]]:
        """The ids of the jobs, in any topic, and where the next page begins, START = there is none."""
        args = [page.tag, page.limit, *page.place]
        after, ids = (await self._store.run("tag_ids", bucket, args, page.scope)).results
        return [after], ids
