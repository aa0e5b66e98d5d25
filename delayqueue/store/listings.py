"""Reads jobs: by their ids, and page by page in listings. Read-only."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field, TypeAdapter

from delayqueue.domain.access import Scope
from delayqueue.domain.job import JobView, State
from delayqueue.errors import Invalid
from delayqueue.store.call import view
from delayqueue.store.paging import (
    BAD,
    DELAYED,
    READY,
    DueOrder,
    Mark,
    Part,
    Raw,
    Window,
    fitting,
    read_cursor,
    read_place,
    write_cursor,
)
from delayqueue.store.record import text
from delayqueue.store.store import Store
from delayqueue.store.types import START, Found, Listing, Position, TagPlace
from delayqueue.store.verbs import GET, WEIGH

PIECES_PER_LIST: Final = 20  # read at most to fill one page
# the indexes in which the jobs of a state are, where they have other names; "" = any state
INDEXES: Final = {"": (*READY, "reserved", "buried", "ended", DELAYED), "ready": READY}
Known = tuple[Annotated[int, Field(ge=0, le=10**15)], Raw]  # a position
# the position, and the windows by bucket and state
PLACE: Final = TypeAdapter(tuple[Known | None, list[tuple[int, str, Mark, Mark | None, bool]]])
TAG_PLACE: Final = TypeAdapter(Annotated[list[Raw], Field(min_length=1)])
SCAN: Final = re.compile("[0-9]{1,20}(@[0-9a-f]{1,64})?")  # as scan_tag() writes it


async def read_jobs(store: Store, ids: Sequence[str], scope: Scope) -> list[JobView | None]:
    """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
    each = list(dict.fromkeys(ids))
    weights = dict(zip(each, await store.run(WEIGH, each, scope), strict=True))
    ids = ids[: fitting([weights[job_id] for job_id in ids])]
    each = list(dict.fromkeys(ids))
    found = dict(zip(each, await store.run(GET, each, scope), strict=True))
    return [found[job_id] for job_id in ids]


class Listings:
    """Each page comes with the cursor of the next one. All raise Unavailable if the store does not answer."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def list_jobs(self, what: Listing, limit: int, cursor: str) -> tuple[list[JobView], str]:
        """A page of at most `limit` jobs, and at most MAX_ANSWER_BYTES; and the next cursor, "" at the end.

        The jobs of a topic come in the order of their due times, those of a tag in no particular order. Raises Invalid
        if the cursor does not come from this same listing.
        """
        if what.tag:
            return await self._of_tag(what, limit, cursor)
        states = INDEXES.get(what.state, (what.state,))
        order = DueOrder(self._store, what.topic, states, what.due)
        number, place = read_cursor(cursor, what)
        part, behind = _read_place(number, place) if cursor else (order.start(), None)
        for _ in range(PIECES_PER_LIST):
            section = await order.read(part, behind, limit + 1)
            for error in order.away.values():
                raise error
            jobs = section.jobs[:limit]
            jobs = jobs[: fitting([job.bytes for job in jobs])]
            if len(jobs) < len(section.jobs):
                after = _cursor(what, section.part, jobs[-1].position)
                return await self._views(what, jobs), after
            if section.part.is_last:
                return await self._views(what, jobs), ""
            part, behind = section.part.following(), None
            if jobs:
                break
        return await self._views(what, jobs), _cursor(what, part, None)

    async def first(self, topic: str, state: State) -> JobView | None:
        """The topic's next job in this state: the next to be handed out, to become due, or to be kicked."""
        views = list[JobView | None]()
        for bucket in self._store.in_force:
            while True:
                reply = await bucket.run("peek", [topic, state.value])
                if not reply.looked:
                    break
            if reply.results:
                views += (await bucket.run_verb(GET, reply.results, self._scope))[0]
        return min(
            (view for view in views if view is not None and view.state is state),
            key=lambda view: (view.priority if state is State.READY else 0, view.ready_ms),
            default=None,
        )

    async def _views(self, what: Listing, jobs: Sequence[Found]) -> list[JobView]:
        """All about these jobs, leaving out those that no longer match the listing."""
        views: dict[Found, JobView | None] = {}
        for bucket in {job.bucket for job in jobs}:
            mine = [job for job in jobs if job.bucket == bucket]
            while mine:
                ids = [job.position.id for job in mine]
                found, _ = await self._store.bucket(bucket).run_verb(GET, ids, self._scope)
                views.update(zip(mine, found, strict=False))
                mine = mine[len(found) :]
        return [view for job in jobs if (view := views[job]) is not None and _is_in(view, what)]

    async def _of_tag(self, what: Listing, limit: int, cursor: str) -> tuple[list[JobView], str]:
        bucket, place = read_cursor(cursor, what)
        inner = _read_tag_place(place) if cursor else START
        jobs: list[JobView] = []
        held_bytes, is_full = 0, False
        for _ in range(PIECES_PER_LIST):
            if bucket >= self._store.buckets.count:
                return jobs, ""
            if len(jobs) >= limit or is_full:
                break
            where = [what.topic, what.tag, what.state, *what.due]
            args = [*where, limit - len(jobs), held_bytes, *inner]
            reply = await self._store.bucket(bucket).run("list", args, self._scope)
            inner, found, held_bytes, is_full = reply.results
            views = (view(text(job_id), *parts) for job_id, *parts in found)
            jobs += [each for each in views if each is not None]
            bucket += inner == START
        return jobs, write_cursor(what, bucket, json.dumps([_text(part) for part in inner]))


def _cursor(what: Listing, part: Part, behind: Position | None) -> str:
    """The cursor with which a listing of a topic goes on in that section, after that position."""
    known = [behind.due_ms, _text(behind.id)] if behind else None
    windows = [
        [*index, *window] for index, window in part.windows.items() if part.number or window.last
    ]
    return write_cursor(what, part.number, json.dumps([known, windows]))


def _read_place(number: int, place: str) -> tuple[Part, Position | None]:
    """The section and the position in a cursor. Raises Invalid if they cannot have been written."""
    known, written = read_place(PLACE, place)
    windows = {
        (bucket, state): Window(first, last, is_open)
        for bucket, state, first, last, is_open in written
    }
    return Part(number, windows), known and Position(known[0], known[1].encode("latin-1"))


def _read_tag_place(place: str) -> TagPlace:
    """The place in a cursor of a tag. Raises Invalid if it cannot have been written."""
    inner = read_place(TAG_PLACE, place)
    if SCAN.fullmatch(inner[0]) is None:
        raise Invalid(BAD)
    return [part.encode("latin-1") for part in inner]


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _is_in(view: JobView, what: Listing) -> bool:
    return (
        view.topic == what.topic
        and what.state in {"", view.state}
        and what.due.first_ms <= view.ready_ms <= what.due.last_ms
    )
