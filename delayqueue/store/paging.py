"""Pages of jobs: the cursors of listings, and a topic's jobs in the order of their due times, to list or to take.

A cursor is opaque to clients, and checked when it comes back. A made-up one gives access to nothing that the listing
does not show anyway: it only says where to go on.
"""

import asyncio
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from zlib import crc32

from pydantic import StringConstraints, TypeAdapter

from delayqueue.domain.job import MAX_ANSWER_BYTES, State
from delayqueue.errors import Code, Invalid, Text, Unavailable
from delayqueue.store.record import live_view, text
from delayqueue.store.store import Store
from delayqueue.store.types import Found, Position, Range, Taken
from delayqueue.tasks import batched

BAD = Text("cursor 无效，请用上一页返回的", "cursor: not one that this listing returned")
MOST_NUMBER: Final = 10**9
# a topic with thousands of jobs in many buckets has two marks for each
MOST_CHARS: Final = 1024 * 1024
# bytes as latin-1, as an id; and a mark as _marks.lua writes it
Raw = Annotated[str, StringConstraints(pattern=r"^[\x00-\xff]+$")]
Mark = Annotated[str, StringConstraints(pattern=r"^g?(?:[0-9]{1,15} [\x00-\xff]+)?$")]

Place = TypeVar("Place")
Item = TypeVar("Item")


def write_cursor(listing: tuple[object, ...], number: int, place: str) -> str:
    """The cursor with which this listing continues at that place."""
    return urlsafe_b64encode(json.dumps([_check(listing), number, place]).encode()).decode()


def read_cursor(cursor: str, listing: tuple[object, ...]) -> tuple[int, str]:
    """The arguments of write_cursor(); 0 and "" for "". Raises Invalid if the cursor was made up."""
    if not cursor:
        return 0, ""
    try:
        check, number, place = json.loads(urlsafe_b64decode(cursor[:MOST_CHARS].encode("ascii")))
    except (ValueError, TypeError, RecursionError):
        raise Invalid(BAD) from None
    is_sound = type(number) is int and 0 <= number <= MOST_NUMBER and isinstance(place, str)
    if check != _check(listing) or not is_sound:
        raise Invalid(BAD)
    return number, place


def read_place(kind: TypeAdapter[Place], place: str) -> Place:
    """The JSON in a cursor's place. Raises Invalid if it cannot have been written."""
    try:
        return kind.validate_json(place, strict=True)
    except ValueError:
        raise Invalid(BAD) from None


def page_of(
    items: list[Item],
    key: Callable[[Item], tuple[str | int, ...]],
    listing: tuple[object, ...],
    limit: int,
    cursor: str,
) -> tuple[list[Item], str]:
    """At most `limit` of the items, which are sorted by `key`; and the cursor of the next page, "" at the end.

    What comes and goes between two pages moves none of the others. Raises Invalid if the cursor was made up.
    """
    start = 0
    if cursor:
        _, place = read_cursor(cursor, listing)
        try:
            start = bisect_right(items, tuple(json.loads(place)), key=key)
        except (ValueError, TypeError, RecursionError):
            raise Invalid(BAD) from None
    page, has_more = items[start : start + limit], start + limit < len(items)
    return page, write_cursor(listing, 0, json.dumps(key(page[-1]))) if has_more else ""


def _check(listing: tuple[object, ...]) -> int:
    return crc32(repr(listing).encode())


# Entries of an index that are sorted together. Only delayed jobs are kept in that order, and sorting all others would
# take time that grows with their number.
SECTION: Final = 1000
DELAYED: Final = "delayed"
# its indexes: jobs of the usual priority, those of others, and those with a call
READY: Final = ("ready", "ranked", "called")


class Window(NamedTuple):
    """A part of an index, from one mark to another (range.lua), so that jobs stay in it whatever becomes of others.

    `last` None: not read so far. `is_open`: the index ended there when it was read first.
    """

    first: str = ""
    last: str | None = None
    is_open: bool = True


EMPTY: Final = Window("", "")


class Part(NamedTuple):
    """A section of the order: its windows by bucket and state. Indexes without one had no jobs in the first section."""

    number: int
    windows: Mapping[tuple[int, str], Window]

    @property
    def is_last(self) -> bool:
        """Whether no section follows."""
        return all(window.is_open for window in self.windows.values())

    def following(self) -> "Part":
        """The next section."""
        windows = {
            index: Window(window.last or "")
            for index, window in self.windows.items()
            if not window.is_open
        }
        return Part(self.number + 1, windows)


class RangePage(NamedTuple):
    """Jobs among the `looked` entries that were read; the mark behind them, and whether they were the last."""

    jobs: list[Found]
    mark: str
    is_end: bool
    looked: int


def fitting(weights: Sequence[int], held_bytes: int = 0) -> int:
    """How many jobs fit into an answer that already holds `held_bytes`; an empty one takes at least one."""
    for number, weight_bytes in enumerate(weights):
        if held_bytes > 0 and held_bytes + weight_bytes > MAX_ANSWER_BYTES:
            return number
        held_bytes += weight_bytes
    return len(weights)


class DueOrder:
    """The order of a topic's jobs, for one request.

    The first section has the first thousand of each bucket's ready, reserved and buried jobs and kept results, the
    second one the next thousand, and so on; the last one has all delayed jobs, too. So the order is exact if no bucket
    has more jobs in a state than that; otherwise it is exact within each section, and jobs that are or were due come
    before delayed ones. A section remains what it is while it is read page by page: a job that stays is in it.
    """

    def __init__(self, store: Store, topic: str, states: Sequence[str], due: Range) -> None:
        self._store = store
        self._buckets = range(store.buckets.count)
        self._topic = topic
        self._states = [state for state in states if state != DELAYED]
        self._has_delayed = DELAYED in states
        self._due = due
        self.away: dict[int, Unavailable] = {}  # buckets that failed; they are not asked again

    def start(self) -> Part:
        """The first section."""
        unread = Window()
        return Part(
            0, {(bucket, state): unread for bucket in self._buckets for state in self._states}
        )

    async def read(
        self, part: Part, behind: Position | None, limit: int
    ) -> tuple[list[Found], Part]:
        """The jobs of a section after a position: at least the first `limit`, if there are that many; and the section.

        They are in order. All states are asked for at once: a job that changed its state between two calls would be in
        neither.
        """
        buckets = [bucket for bucket in self._buckets if bucket not in self.away]
        asked = [
            (bucket, state)
            for bucket in buckets
            for state in self._states
            if part.number == 0 or (bucket, state) in part.windows
        ]
        delayed, answers = await asyncio.gather(
            asyncio.gather(
                *(self._find(bucket, DELAYED, behind, limit) for bucket in buckets)
                if self._has_delayed
                else ()
            ),
            asyncio.gather(
                *(self._read(*one, part.windows.get(one, EMPTY), behind) for one in asked)
            ),
        )
        windows = (window for _, window in answers)
        read = Part(part.number, dict(zip(asked, windows, strict=True)))
        found = [jobs for jobs, _ in answers]
        if read.is_last:
            found += [page.jobs for page in delayed]
        one_each = {(job.bucket, job.position.id): job for jobs in found for job in jobs}
        return sorted(one_each.values()), read

    async def _read(
        self, bucket: int, state: str, window: Window, behind: Position | None
    ) -> tuple[list[Found], Window]:
        """The jobs of a window; and what it is, if it has not been read before.

        Where the index had ended, jobs that have come since are found, too: ready ones all, since jobs become due
        during the listing and others are put before those that stay; else as long as a section has room for them.
        """
        jobs: list[Found] = []
        mark, looked, is_end = window.first, 0, False
        is_bounded = window.last is None or state not in READY

        async def read_on(limit: int, last: str = "") -> None:
            nonlocal mark, is_end, looked
            piece = await self._find(bucket, state, behind, limit, first=mark, last=last)
            jobs.extend(piece.jobs)
            mark, is_end, looked = piece.mark, piece.is_end, looked + piece.looked

        while window.is_open and not is_end and (looked < SECTION or not is_bounded):
            await read_on(SECTION - looked if is_bounded else SECTION)
        if window.last is None:
            return jobs, Window(window.first, mark, is_end)
        while window.last and not is_end:
            await read_on(SECTION, window.last)
        return jobs, window

    async def _find(
        self,
        bucket: int,
        state: str,
        behind: Position | None,
        limit: int,
        *,
        first: str = "",
        last: str = "",
    ) -> RangePage:
        """Find jobs in a state (as range.lua names them) after a position, among `limit` entries of its index.

        Delayed ones are the first after it, in order. The others are found among the entries of their index from the
        mark `first` to the mark `last`, "" = its start, its end. A bucket that fails is `away`, and has none.
        """
        known = (behind.due_ms, behind.id) if behind else ("", "")
        marks = (first.encode("latin-1"), last.encode("latin-1"))
        args = [self._topic, state, *self._due, *known, limit, *marks]
        try:
            reply = await self._store.bucket(bucket).run("range", args)
        except Unavailable as error:
            self.away[bucket] = error
            return RangePage([], first, is_end=True, looked=0)
        mark, is_end, found = reply.results
        jobs = [
            Found(Position(int(due_ms), raw_id), bucket, size_bytes)
            for raw_id, due_ms, size_bytes in batched(found, 3)
        ]
        return RangePage(jobs, mark.decode("latin-1"), is_end == 1, reply.looked)


PIECE = 150  # ids per script call: somewhat more than it takes before it has done enough


async def take(store: Store, topic: str, due: Range, most: int) -> list[Taken]:
    """Remove and return the first jobs of a range, up to `most` and MAX_ANSWER_BYTES; each goes to one caller only.

    If the store fails, returns what was taken before; raises Unavailable if that is nothing.
    """
    taken: list[Taken] = []
    order = DueOrder(store, topic, (*READY, DELAYED), due)
    has_lost = True  # another client was faster, so there may be more
    while has_lost and len(taken) < most:
        found = await _first(order, most - len(taken))
        held_bytes = sum(len(job.record) + len(job.run) for job in taken)
        room = fitting([job.bytes for job in found], held_bytes)
        by_bucket: dict[int, list[bytes]] = {}
        for job in found[:room]:
            by_bucket.setdefault(job.bucket, []).append(job.position.id)
        answers = await asyncio.gather(
            *(_take(store, order, bucket, [topic, *due], by_bucket[bucket]) for bucket in by_bucket)
        )
        for jobs, _ in answers:
            taken += jobs
        has_lost = room == len(found) and any(lost for _, lost in answers)
    if not taken:
        for error in order.away.values():
            raise error
    return sorted(taken, key=lambda job: (job.view.due_ms, job.raw_id))


async def _take(
    store: Store, order: DueOrder, bucket: int, where: list[Any], ids: list[bytes]
) -> tuple[list[Taken], int]:
    """Take jobs of one bucket; returns those that nobody else took first, and how many were taken first."""
    taken: list[Taken] = []
    lost = 0
    try:
        while ids:
            reply = await store.bucket(bucket).run("take", [*where, *ids[:PIECE]])
            store.notify(bucket, reply.change)
            results = reply.results
            taken += [
                _taken(job_id, *result)
                for job_id, result in zip(ids, results, strict=False)
                if not isinstance(result, int)
            ]
            lost += results.count(Code.NO_SUCH_JOB)
            ids = ids[len(results) :]
    except Unavailable as error:
        order.away[bucket] = error
    return taken, lost


async def _first(order: DueOrder, most: int) -> list[Found]:
    """The first jobs in the order."""
    found: list[Found] = []
    part = order.start()
    while True:
        jobs, read = await order.read(part, None, most - len(found))
        found += jobs
        if read.is_last or len(found) >= most:
            return found[:most]
        part = read.following()


def _taken(raw_id: bytes, raw: bytes, run: bytes, was_first: int) -> Taken:
    view = live_view(text(raw_id), State.FINISHED, raw, run)
    return Taken(view, raw_id, raw, run, was_first)
