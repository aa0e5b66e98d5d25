"""Finds jobs by a text and what else is known of them, and dead letters: a bounded piece at a time. Read-only."""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from delayqueue.domain.access import Scope
from delayqueue.domain.job import HoldUp, JobView
from delayqueue.errors import Invalid
from delayqueue.store.bucket import in_pieces
from delayqueue.store.paging import BAD, Mark, read_cursor, read_place, write_cursor
from delayqueue.store.record import hold_up, parse_run, text
from delayqueue.store.store import Store
from delayqueue.store.types import Range
from delayqueue.store.verbs import GET

ANY_TIME: Final = Range(0, 10**15)  # an import may have staged a job behind all due times
PIECES: Final = 10  # per call, each about 2 ms of the store's time: some thousand jobs
PIECE_BYTES: Final = 32  # a longer text is compared here, as scripts/find.lua says
KINDS: Final = ("job", "ended")
PLACE: Final = re.compile("(job|ended) ([0-9]{1,20}(?:@[0-9a-f]{1,64})?)")


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


class Hit(NamedTuple):
    """A job that was found; `group`: "" = it is in none; `held_by`: as in JobView."""

    id: str
    topic: str
    state: str
    due_ms: int
    group: str
    held_by: HoldUp | None


class SearchResult(NamedTuple):
    """The jobs found among the `looked` that were searched; `cursor` leads on, "" = all have been searched."""

    jobs: list[Hit]
    looked: int
    cursor: str


class Search:
    """Searches the jobs of a scope. Raises Unavailable if the store does not answer."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def find(
        self, wanted: Wanted, limit: int, cursor: str, filters: Filters = NO_FILTERS
    ) -> SearchResult:
        """Jobs with these texts, in no particular order, until about `limit` are found, or enough was searched.

        If more follow within the same reach, the cursor leads to them. Raises Invalid if the cursor does not come from
        this same search.
        """
        # without filters, or a group, as servers without them write it
        given = filters if filters.group else filters[:-1]
        search = wanted if filters == NO_FILTERS else (*wanted, *given)
        *texts, due, group = filters
        bucket, spot = read_cursor(cursor, search)
        place = PLACE.fullmatch(spot or "job 0")
        if place is None or bucket >= self._store.buckets.count:
            raise Invalid(BAD)
        kind, scan = place.groups()
        jobs: list[Hit] = []
        looked = 0
        for _ in range(PIECES):
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
                return SearchResult(jobs, looked, "")
        return SearchResult(jobs, looked, write_cursor(search, bucket, f"{kind} {scan}"))

    async def _exact(
        self, bucket: int, hits: list[Hit], wanted: Wanted, message_part: str
    ) -> list[Hit]:
        """Those that have the whole of each text: the script compares the ends of long ones only.

        Python's search takes as long as the text, whatever is in it; Lua's as long as both multiplied.
        """
        if not any(map(_is_long, (wanted.id_part, wanted.body_part, message_part))):
            return hits

        async def views(ids: Sequence[str]) -> Sequence[JobView | None]:
            found, _ = await self._store.bucket(bucket).run_verb(GET, ids, self._scope)
            return found

        jobs = await in_pieces(views, [hit.id for hit in hits])
        return [
            hit
            for hit, job in zip(hits, jobs, strict=True)
            if job
            and wanted.id_part in job.id
            and wanted.body_part.encode() in job.body
            and any(message_part in said for said in _messages(job))
        ]


def _messages(job: JobView) -> Iterator[str]:
    """All that was said about a job; at least ""."""
    yield job.message
    yield from job.remarks
    yield from (attempt.message for attempt in job.attempts)


def _is_long(part: str) -> bool:
    return len(part.encode()) > PIECE_BYTES


def _found(
    raw_id: bytes, topic: bytes, state: bytes, due_ms: bytes, group: bytes, *held: bytes
) -> Hit:
    held_by = hold_up(*held) if held else None
    return Hit(text(raw_id), text(topic), state.decode(), int(due_ms), text(group), held_by)


MOST: Final = 10_000  # per page
PIECE: Final = 500  # entries that a call reads: about 2 ms of the store's time
TOPICS_PER_CALL: Final = 500
BEHIND: Final = "\0"  # sorts after a topic and before the next one
# a topic, and the mark of the last entry that was read of it
SPOT: Final = TypeAdapter(tuple[str, Mark])


class DeadLetter(NamedTuple):
    """Why a job is buried, and since when."""

    topic: str
    id: str
    message: str
    buried_ms: int


class DeadLetterPages:
    """Each page comes with the cursor of the next one. Raises Unavailable if the store does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self,
        topics: Sequence[str],
        what: tuple[object, ...],
        cursor: str,
        is_wanted: Callable[[DeadLetter], bool] = lambda _: True,
    ) -> tuple[list[DeadLetter], str]:
        """The wanted ones among MOST dead letters, or a few more, of these sorted topics; and the next cursor.

        In no particular order. The cursor is "" if none of the next MOST is wanted, and there are no more than these.
        A job that stays buried is on a page, whatever becomes of others meanwhile. Raises Invalid if the cursor does
        not come from a listing of the same `what`.
        """
        bucket, spot = read_cursor(cursor, what)
        topic, mark = read_place(SPOT, spot or '["", ""]')
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
                "buried", [mark.encode("latin-1"), PIECE, *names]
            )
            done, (after, found) = reply.looked, reply.results
            more = _letters(names, found)
            wanted = [letter for letter in more if is_wanted(letter)]
            # a full page looks on, to see whether there are more
            if (wanted and looked >= MOST) or looked >= 2 * MOST:
                return letters, write_cursor(what, bucket, json.dumps([topic, mark]))
            mark = after.decode("latin-1")
            letters += wanted
            looked += len(more)
            topic = names[done] if done < len(names) else names[-1] + BEHIND
        return letters, ""


def _letters(topics: Sequence[str], found: Sequence[bytes]) -> list[DeadLetter]:
    rows = (found[i : i + 4] for i in range(0, len(found), 4))
    return [
        DeadLetter(topics[int(number) - 1], text(raw_id), _message(run), int(buried_ms))
        for number, raw_id, buried_ms, run in rows
    ]


def _message(raw_run: bytes) -> str:
    notes = parse_run(raw_run).notes
    return notes[-1].message if notes else ""
