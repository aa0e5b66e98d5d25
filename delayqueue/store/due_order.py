"""Finds a topic's jobs in the order of their due times, over all buckets and states."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from delayqueue.errors import Unavailable
from delayqueue.store.store import Store
from delayqueue.store.types import Found, Position, Range

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


class Section(NamedTuple):
    """Jobs in order, and the section that they are in."""

    jobs: list[Found]
    part: Part


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

    async def read(self, part: Part, behind: Position | None, limit: int) -> Section:
        """The jobs of a section after a position: at least the first `limit`, if there are that many."""
        found: dict[tuple[int, bytes], Found] = {}
        windows = dict(part.windows)
        for state in self._states:
            buckets = [
                bucket
                for bucket in self._buckets
                if bucket not in self.away and (part.number == 0 or (bucket, state) in windows)
            ]
            answers = await asyncio.gather(
                *(
                    self._read(bucket, state, windows.get((bucket, state), EMPTY), behind)
                    for bucket in buckets
                )
            )
            for bucket, (jobs, window) in zip(buckets, answers, strict=True):
                found.update(((job.bucket, job.position.id), job) for job in jobs)
                windows[bucket, state] = window
        read = Part(part.number, windows)
        if read.is_last and self._has_delayed:
            buckets = [bucket for bucket in self._buckets if bucket not in self.away]
            for jobs in await asyncio.gather(
                *(self._delayed(bucket, behind, limit) for bucket in buckets)
            ):
                found.update(((job.bucket, job.position.id), job) for job in jobs)
        return Section(sorted(found.values()), read)

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

        try:
            while window.is_open and not is_end and (looked < SECTION or not is_bounded):
                await read_on(SECTION - looked if is_bounded else SECTION)
            if window.last is None:
                return jobs, Window(window.first, mark, is_end)
            while window.last and not is_end:
                await read_on(SECTION, window.last)
        except Unavailable as error:
            self.away[bucket] = error
            return [], window
        return jobs, window

    async def _delayed(self, bucket: int, behind: Position | None, limit: int) -> list[Found]:
        try:
            return (await self._find(bucket, DELAYED, behind, limit)).jobs
        except Unavailable as error:
            self.away[bucket] = error
            return []

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
        mark `first` to the mark `last`, "" = its start, its end.
        """
        known = (behind.due_ms, behind.id) if behind else ("", "")
        marks = (first.encode("latin-1"), last.encode("latin-1"))
        args = [self._topic, state, *self._due, *known, limit, *marks]
        reply = await self._store.bucket(bucket).run("range", args)
        mark, is_end, found = reply.results
        jobs = [
            Found(Position(int(found[i + 1]), found[i]), bucket, found[i + 2])
            for i in range(0, len(found), 3)
        ]
        return RangePage(jobs, mark.decode("latin-1"), is_end == 1, reply.looked)
