"""Changes all jobs of a tag, a page at a time, as BucketStore.cancel does."""

from delayqueue.domain.job import State
from delayqueue.store.bucket.bucket_store import BucketStore, when
from delayqueue.store.bucket.replies import change
from delayqueue.store.types import Change, TagPage, TagPlace


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
        args = [self._store.sender, state.value, *page.args]
        after, count, ready = await self._store.run("kick_tag", bucket, args, page.scope)
        return after, count, change(ready)

    async def reschedule(
        self, bucket: int, page: TagPage, *, delay_ms: int, due_ms: int | None
    ) -> tuple[TagPlace, int, Change, int]:
        """Give the jobs that are not reserved a new due time. Also returns that time in ms."""
        args = [when(delay_ms, due_ms), *page.args]
        answer = await self._store.run("reschedule_tag", bucket, args, page.scope)
        after, count, time_ms, wait_ms = answer
        return after, count, change([], wait_ms if count else -1), time_ms
