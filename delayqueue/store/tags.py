"""What is done to all jobs of a tag, of one topic or of all (""), a page at a time, as Store.cancel does it."""

from delayqueue.job import State
from delayqueue.store.answers import stir
from delayqueue.store.store import Position, Store, when
from delayqueue.store.types import Stir


class Tags:
    """Looks at about `limit` jobs from a position on, START at first.

    All answer the next position, START = done, and how many jobs were changed.
    All raise Unavailable where Redis does not answer or refuses.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def kick(  # a page of a tag
        self, bucket: int, tag: str, topic: str, limit: int, position: Position, *, state: State
    ) -> tuple[Position, int, Stir]:
        """Make those in that state, buried or delayed, ready now."""
        args = [self._store.sender, state.value, tag, topic, limit, *position]
        after, count, ready = await self._store.run("kick_tag", bucket, args)
        return after, count, stir(ready)

    async def reschedule(  # noqa: PLR0913  # a page of a tag
        self,
        bucket: int,
        tag: str,
        topic: str,
        limit: int,
        position: Position,
        *,
        delay_ms: int,
        due_ms: int | None,
    ) -> tuple[Position, int, Stir, int]:
        """Give those that are not reserved a new due time, which comes back in ms."""
        args = [when(delay_ms, due_ms), tag, topic, limit, *position]
        after, count, time_ms, wait_ms = await self._store.run("reschedule_tag", bucket, args)
        return after, count, stir([], wait_ms if count else -1), time_ms
