"""Lists jobs page by page. Read-only."""

import re
from collections.abc import Sequence
from typing import Final

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import MAX_ID_BYTES, JobView, State
from delayqueue.errors import Invalid
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.ranges import Ranges
from delayqueue.store.cursor import BAD, read_cursor, write_cursor
from delayqueue.store.due_order import DELAYED, DueOrder
from delayqueue.store.lookup import fitting
from delayqueue.store.types import Found, Listing, Position

PIECES_PER_LIST: Final = 20  # read at most to fill one page
EVERY_STATE: Final = ("ready", "reserved", "buried", "ended", DELAYED)
POSITION: Final = re.compile(rf"([0-9]{{1,15}}) ([\x00-\xff]{{1,{MAX_ID_BYTES}}})")
SCAN: Final = re.compile("(?:[0-9]{1,19}:[0-9]{1,6})?")  # as list.lua writes it


class Listings:
    """Each page comes with the cursor of the next one. All raise Unavailable if the store does not answer."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self._ranges = Ranges(store)

    async def list_jobs(
        self, what: Listing, limit: int, cursor: str, scope: Scope = EVERYWHERE
    ) -> tuple[list[JobView], str]:
        """A page of at most `limit` jobs, and at most MAX_ANSWER_BYTES; and the next cursor, "" at the end.

        The jobs of a topic come in the order of their due times, those of a tag in no particular order. Raises Invalid
        if the cursor does not come from this same listing.
        """
        if what.tag:
            return await self._of_tag(what, limit, cursor, scope)
        buckets = range(self._store.buckets.count)
        states = (what.state,) if what.state else EVERY_STATE
        order = DueOrder(self._ranges, buckets, what.topic, states, what.due)
        number, place = read_cursor(cursor, what)
        behind = _read_position(place)
        for _ in range(PIECES_PER_LIST):
            section = await order.section(number, behind, limit + 1)
            for error in order.away.values():
                raise error
            jobs = section.jobs[:limit]
            jobs = jobs[: fitting([job.bytes for job in jobs])]
            if len(jobs) < len(section.jobs):
                after = write_cursor(what, number, _write_position(jobs[-1].position))
                return await self._views(what, jobs, scope), after
            if section.is_last:
                return await self._views(what, jobs, scope), ""
            number, behind = number + 1, None
            if jobs:
                break
        return await self._views(what, jobs, scope), write_cursor(what, number, "")

    async def first(self, topic: str, state: State, scope: Scope = EVERYWHERE) -> JobView | None:
        """The topic's next job in this state: the next to be handed out, to become due, or to be kicked."""
        views = []
        for bucket in range(self._store.buckets.count):
            if ids := await self._store.run("peek", bucket, [topic, state.value]):
                views += await self._store.get(bucket, ids, scope)
        return min(
            (view for view in views if view is not None and view.state is state),
            key=lambda view: (view.priority if state is State.READY else 0, view.due_ms),
            default=None,
        )

    async def _views(self, what: Listing, jobs: Sequence[Found], scope: Scope) -> list[JobView]:
        """All about these jobs, leaving out those that no longer match the listing."""
        views: dict[Found, JobView | None] = {}
        for bucket in {job.bucket for job in jobs}:
            mine = [job for job in jobs if job.bucket == bucket]
            while mine:
                ids = [job.position.id for job in mine]
                found = await self._store.get(bucket, ids, scope)
                views.update(zip(mine, found, strict=False))
                mine = mine[len(found) :]
        return [view for job in jobs if (view := views[job]) is not None and _is_in(view, what)]

    async def _of_tag(
        self, what: Listing, limit: int, cursor: str, scope: Scope
    ) -> tuple[list[JobView], str]:
        bucket, inner = read_cursor(cursor, what)
        if SCAN.fullmatch(inner) is None:
            raise Invalid(BAD)
        jobs: list[JobView] = []
        held_bytes, is_full = 0, False
        for _ in range(PIECES_PER_LIST):
            if bucket >= self._store.buckets.count:
                return jobs, ""
            if len(jobs) >= limit or is_full:
                break
            page = await self._store.list_jobs(
                bucket, what, limit - len(jobs), inner, held_bytes, scope
            )
            jobs += page.jobs
            held_bytes, is_full = page.bytes, page.is_full
            bucket, inner = (bucket, page.cursor) if page.cursor else (bucket + 1, "")
        return jobs, write_cursor(what, bucket, inner)


def _write_position(position: Position) -> str:
    return f"{position.due_ms} {position.id.decode('latin-1')}"


def _read_position(text: str) -> Position | None:
    """Parse a position. Raises Invalid if it cannot have been written."""
    if not text:
        return None
    parts = POSITION.fullmatch(text)
    if parts is None:
        raise Invalid(BAD)
    return Position(int(parts[1]), parts[2].encode("latin-1"))


def _is_in(view: JobView, what: Listing) -> bool:
    return (
        view.topic == what.topic
        and what.state in {"", view.state}
        and what.due.first_ms <= view.due_ms <= what.due.last_ms
    )
