"""Reads jobs: by their ids, page by page in listings, by what is known of them, and dead letters. Read-only."""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import Field, TypeAdapter

from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.jobs import Findings, FoundJob
from delayqueue.domain.access import Scope
from delayqueue.domain.job import State
from delayqueue.errors import Invalid
from delayqueue.store.call import job_view
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
from delayqueue.store.record import held_by, parse_run, text
from delayqueue.store.store import Store
from delayqueue.store.types import START, Found, JobView, Listing, Position, Range, TagPlace
from delayqueue.store.verbs import GET, WEIGH
from delayqueue.tasks import batched

PIECES_PER_LIST: Final = 20  # read at most to fill one page
# the indexes in which the jobs of a state are, where they have other names; "" = any state
INDEXES: Final = {"": (*READY, "reserved", "buried", "ended", DELAYED), "ready": READY}
Known = tuple[Annotated[int, Field(ge=0, le=10**15)], Raw]  # a position
# the position, and the windows by bucket and state
PLACE: Final = TypeAdapter(tuple[Known | None, list[tuple[int, str, Mark, Mark | None, bool]]])
TAG_PLACE: Final = TypeAdapter(Annotated[list[Raw], Field(min_length=1)])
# as `signed` writes it; the store refuses 2 ** 64
CURSOR: Final = "[0-9]{1,19}(?:@[0-9a-f]{1,64})?"
SCAN: Final = re.compile(CURSOR)

ANY_TIME: Final = Range(0, 10**15)  # an import may have staged a job behind all due times
PIECES_PER_SEARCH: Final = 10  # each about 2 ms of the store's time: some thousand jobs
PIECE_BYTES: Final = 32  # a longer text is compared here, as scripts/find.lua says
SPOT: Final = re.compile(f"(job|ended) ({CURSOR})")

MOST_LETTERS: Final = 10_000  # per page
ENTRIES_PER_CALL: Final = 500  # about 2 ms of the store's time
TOPICS_PER_CALL: Final = 500
BEHIND: Final = "\0"  # sorts after a topic and before the next one
# a topic, and the mark of the last entry that was read of it
LETTER_PLACE: Final = TypeAdapter(tuple[str, Mark])


class Wanted(NamedTuple):
    """What to search for; "" = any."""

    id_part: str
    body_part: str
    topic: str


class Filters(NamedTuple):
    """What else a job must have; "" = any."""

    message_part: str = ""  # in the message of a failed attempt, or of its end
    tag: str = ""
    state: str = ""
    due: Range = ANY_TIME
    group: str = ""


NO_FILTERS: Final = Filters()


class DeadLetter(NamedTuple):
    """Why a job is buried, and since when."""

    topic: str
    id: str
    message: str
    buried_ms: int


async def read_jobs(store: Store, ids: Sequence[str], scope: Scope) -> list[JobView | None]:
    """All about jobs, None for an unknown id; only the first ones if the answer would get too large."""
    each = list(dict.fromkeys(ids))
    weights = dict(zip(each, await store.run(WEIGH, each, scope), strict=True))
    ids = ids[: fitting([weights[job_id] for job_id in ids])]
    each = list(dict.fromkeys(ids))
    found = dict(zip(each, await store.run(GET, each, scope), strict=True))
    return [found[job_id] for job_id in ids]


class Listings:
    """The jobs of a scope, and dead letters of the topics that are named.

    Each page comes with the cursor of the next one. All raise Unavailable if the store does not answer.
    """

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
            found, read = await order.read(part, behind, limit + 1)
            for error in order.away.values():
                raise error
            jobs = found[:limit]
            jobs = jobs[: fitting([job.bytes for job in jobs])]
            if len(jobs) < len(found):
                after = _cursor(what, read, jobs[-1].position)
                return await self._views(what, jobs), after
            if read.is_last:
                return await self._views(what, jobs), ""
            part, behind = read.following(), None
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
            views += await bucket.run_all(GET, reply.results, self._scope)
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
            ids = [job.position.id for job in mine]
            found = await self._store.bucket(bucket).run_all(GET, ids, self._scope)
            views.update(zip(mine, found, strict=True))
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
            views = (job_view(text(job_id), *parts) for job_id, *parts in found)
            jobs += [each for each in views if each is not None]
            bucket += inner == START
        return jobs, write_cursor(what, bucket, json.dumps([_text(part) for part in inner]))

    async def find(
        self, wanted: Wanted, limit: int, cursor: str, filters: Filters = NO_FILTERS
    ) -> Findings:
        """Jobs with these texts, in no particular order, until about `limit` are found, or enough was searched.

        If more follow within the same reach, the cursor leads to them. Raises Invalid if the cursor does not come from
        this same search.
        """
        # cursors without filters, or without a group, are written as older servers write them
        given = filters if filters.group else filters[:-1]
        search = wanted if filters == NO_FILTERS else (*wanted, *given)
        *texts, due, group = filters
        bucket, spot = read_cursor(cursor, search)
        place = SPOT.fullmatch(spot or "job 0")
        if place is None or bucket >= self._store.buckets.count:
            raise Invalid(BAD)
        kind, scan = place.groups()
        jobs: list[FoundJob] = []
        looked = 0
        for _ in range(PIECES_PER_SEARCH):
            reply = await self._store.bucket(bucket).run(
                "find", [kind, scan, *wanted, *texts, *due, group], self._scope
            )
            raw_scan, found = reply.results
            if found and len(jobs) >= limit:
                break  # this only was to see whether there are more
            scan = raw_scan.decode()
            looked += reply.looked
            hits = [_found(*row) for row in found]
            jobs += await self._exact(bucket, hits, wanted, filters.message_part)
            if scan == "0":
                bucket, kind = (bucket + 1, "job") if kind == "ended" else (bucket, "ended")
            if bucket >= self._store.buckets.count:
                return Findings(jobs, looked, "")
        return Findings(jobs, looked, write_cursor(search, bucket, f"{kind} {scan}"))

    async def _exact(
        self, bucket: int, hits: list[FoundJob], wanted: Wanted, message_part: str
    ) -> list[FoundJob]:
        """The hits that have the whole of each text: the script compares only the ends of long ones.

        Python's search takes as long as the text, whatever is in it; Lua's as long as both multiplied.
        """
        if not any(map(_is_long, (wanted.id_part, wanted.body_part, message_part))):
            return hits
        ids = [hit.id for hit in hits]
        jobs = await self._store.bucket(bucket).run_all(GET, ids, self._scope)
        return [
            hit
            for hit, job in zip(hits, jobs, strict=True)
            if job
            and wanted.id_part in job.id
            and wanted.body_part.encode() in job.body
            and any(message_part in said for said in _messages(job))
        ]

    async def dead_letters(
        self,
        topics: Sequence[str],
        what: tuple[object, ...],
        cursor: str,
        is_wanted: Callable[[DeadLetter], bool] = lambda _: True,
    ) -> tuple[list[DeadLetter], str]:
        """The wanted ones among MOST_LETTERS dead letters, or a few more, of these sorted topics; and the next cursor.

        In no particular order. The cursor is "" if none of the next MOST_LETTERS is wanted, and there are no more than
        these. A job that stays buried is on a page, whatever becomes of others meanwhile. Raises Invalid if the cursor
        does not come from a listing of the same `what`.
        """
        bucket, spot = read_cursor(cursor, what)
        topic, mark = read_place(LETTER_PLACE, spot or '["", ""]')
        letters: list[DeadLetter] = []
        looked = 0
        while bucket < self._store.buckets.count:
            names = topics[bisect_left(topics, topic) :][:TOPICS_PER_CALL]
            if not names:
                bucket, topic, mark = bucket + 1, "", ""
                continue
            if names[0] != topic:
                mark = ""
            reply = await self._store.bucket(bucket).run(
                "buried", [mark.encode("latin-1"), ENTRIES_PER_CALL, *names]
            )
            done, (after, found) = reply.looked, reply.results
            more = _letters(names, found)
            wanted = [letter for letter in more if is_wanted(letter)]
            # a full page looks on, to see whether there are more
            if (wanted and looked >= MOST_LETTERS) or looked >= 2 * MOST_LETTERS:
                return letters, write_cursor(what, bucket, json.dumps([topic, mark]))
            mark = after.decode("latin-1")
            letters += wanted
            looked += len(more)
            topic = names[done] if done < len(names) else names[-1] + BEHIND
        return letters, ""


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


def _messages(job: JobView) -> Iterator[str]:
    """All messages about a job: of its end, its remarks and its attempts."""
    yield job.message
    yield from job.remarks
    yield from (attempt.message for attempt in job.attempts)


def _is_long(part: str) -> bool:
    return len(part.encode()) > PIECE_BYTES


def _found(
    raw_id: bytes, topic: bytes, state: bytes, due_ms: bytes, group: bytes, *held: bytes
) -> FoundJob:
    return FoundJob(
        id=text(raw_id),
        topic=text(topic),
        state=state.decode(),
        due=int(due_ms) / 1000,
        group=text(group) or LEFT_OUT,
        held_by=held_by(*held) if held else LEFT_OUT,
    )


def _letters(topics: Sequence[str], found: Sequence[bytes]) -> list[DeadLetter]:
    return [
        DeadLetter(topics[int(number) - 1], text(raw_id), _message(run), int(buried_ms))
        for number, raw_id, buried_ms, run in batched(found, 4)
    ]


def _message(raw_run: bytes) -> str:
    notes = parse_run(raw_run).notes
    return notes[-1].message if notes else ""
