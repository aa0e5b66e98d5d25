"""All topics and their counts: found once for all who ask, where there are that many that it takes long."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from heapq import merge
from itertools import starmap
from operator import add, attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from delayqueue.answers.topics import GroupCounts
from delayqueue.domain.limit import Limit
from delayqueue.store.bucket import Bucket
from delayqueue.store.call import or_none
from delayqueue.store.record import text
from delayqueue.store.verbs import Verb
from delayqueue.tasks import SingleFlight, batched, by_turns

if TYPE_CHECKING:
    from delayqueue.store.store import Store

Found = TypeVar("Found", bound=Sequence[object])

MANY: Final = 5_000  # topics: to count them takes the store about 0.1 s
KEPT_S: Final = 5.0  # the names and counts of that many topics are answered again, as they were
NAMES_PER_CALL: Final = 1000
TOPICS_PER_CALL: Final = 100  # about 3 ms of the store's time
SOON_S: Final = (60, 300, 3600)  # for what becomes due
MOST_GROUPS: Final = 10  # that are named


@dataclass(slots=True)
class TopicView:
    """A topic in one bucket, or over all. `paused_until_ms`: 0 = until resumed, None = not paused.

    `groups_ready` have ready jobs, `groups_held` have some of which none may be taken; None = no job, ready or
    reserved, is of a group. `filled`: the part of the jobs that it may have, in the bucket that is the fullest.
    """

    topic: str
    delayed: int = 0
    ready: int = 0
    reserved: int = 0
    buried: int = 0
    oldest_age_ms: int | None = None
    paused_until_ms: int | None = None
    limit: Limit | None = None
    urgent: int = 0  # ready jobs that go before the usual priority
    called: int = 0  # ready jobs with a call
    groups_ready: int | None = None
    groups_held: int | None = None
    filled: float = 0.0

    @property
    def jobs(self) -> int:
        """How many have not ended."""
        return self.delayed + self.ready + self.reserved + self.buried

    @property
    def holds_something(self) -> bool:
        """Whether it has jobs that have not ended, or is paused."""
        return self.jobs > 0 or self.paused_until_ms is not None

    def add(self, counts: "TopicView") -> None:
        """Add those of another bucket, or of another topic."""
        self.delayed += counts.delayed
        self.ready += counts.ready
        self.urgent += counts.urgent
        self.called += counts.called
        self.groups_ready = _of_known(sum, self.groups_ready, counts.groups_ready)
        self.groups_held = _of_known(sum, self.groups_held, counts.groups_held)
        self.reserved += counts.reserved
        self.buried += counts.buried
        self.oldest_age_ms = _of_known(max, self.oldest_age_ms, counts.oldest_age_ms)
        self.paused_until_ms = _of_known(min, self.paused_until_ms, counts.paused_until_ms)
        self.limit = self.limit or counts.limit
        self.filled = max(self.filled, counts.filled)


_row: Callable[[TopicView], tuple[Any, ...]] = attrgetter(
    *(each.name for each in fields(TopicView))
)


class TopicViews(Sequence[TopicView]):
    """Topics; each view is made when it is read.

    Kept are plain tuples of numbers and names, which the garbage collector passes over: 100,000 views took it 40 ms.
    """

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows = rows

    @overload
    def __getitem__(self, at: int) -> TopicView: ...
    @overload
    def __getitem__(self, at: slice) -> "TopicViews": ...
    def __getitem__(self, at: int | slice) -> "TopicView | TopicViews":
        if isinstance(at, slice):
            return TopicViews(self._rows[at])
        return TopicView(*self._rows[at])

    def __iter__(self) -> Iterator[TopicView]:
        return starmap(TopicView, self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    async def with_names(self, wanted: Callable[[str], bool]) -> "TopicViews":
        """The topics whose name is wanted."""
        return TopicViews([row async for row in by_turns(self._rows) if wanted(row[0])])


class Census:
    """Finds topics in all buckets and counts their jobs, exactly.

    Of more than MANY topics names and counts are up to KEPT_S old, unless they are asked for by name.
    All methods raise Unavailable if the store does not answer.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._flights = SingleFlight[Any]()
        self._kept: dict[Callable[[], object], Any] = {}
        self._has_many = False

    async def all(
        self, wanted: Callable[[str], bool] = lambda _: True, limit: int | None = None
    ) -> TopicViews:
        """Topics, by name: the first `limit` whose name is wanted."""
        names = (await self.names(wanted))[:limit]
        if len(names) <= MANY:
            return await self.of(names)
        return (await (await self._once(self._all)).with_names(wanted))[:limit]

    async def names(self, wanted: Callable[[str], bool] = lambda _: True) -> list[str]:
        """The wanted names of all topics, sorted."""
        return [name async for name in by_turns(await self._once(self._names)) if wanted(name)]

    async def of(self, names: Sequence[str]) -> TopicViews:
        """The counts of these topics; all 0 for a topic that does not exist."""
        rows: list[tuple[Any, ...]] = []
        for piece in batched(names, TOPICS_PER_CALL):
            views = list(map(TopicView, piece))
            for bucket in self._store.in_force:
                for view, counts in zip(views, await bucket.run_all(TOPICS, piece), strict=True):
                    view.add(counts)
            rows += map(_row, views)
        return TopicViews(rows)

    async def due_soon(self, views: Sequence[TopicView]) -> dict[str, tuple[int, ...]]:
        """How many delayed jobs of each topic fall due within each of SOON_S; topics without any are not asked for."""
        found = {view.topic: (0,) * len(SOON_S) async for view in by_turns(views)}
        names = [view.topic for view in views if view.delayed]
        for bucket in self._store.in_force:
            for piece in batched(names, TOPICS_PER_CALL):
                counted = await bucket.run_all(DUE_SOON, piece)
                for name, counts in zip(piece, counted, strict=True):
                    found[name] = tuple(map(add, found[name], counts))
        return found

    async def most_groups(self, topic: str) -> list[GroupCounts]:
        """The MOST_GROUPS groups of a topic with the most ready jobs, the largest first."""
        found: dict[str, GroupCounts] = {}
        for bucket in self._store.in_force:
            named = iter((await bucket.run("groups", [topic, MOST_GROUPS])).results)
            for raw, ready, reserved in zip(named, named, named, strict=True):
                before = found.get(text(raw), GroupCounts(text(raw), 0, 0))
                found[before.group] = GroupCounts(
                    before.group, before.ready + ready, before.reserved + reserved
                )
        return sorted(found.values(), key=lambda one: (-one.ready, one.group))[:MOST_GROUPS]

    async def most(self) -> int:
        """How many topics there are at most: one that several buckets know counts several times."""
        return sum([await bucket.ask_key("topics", "hlen") for bucket in self._store.in_force])

    async def _all(self) -> TopicViews:
        return await self.of(await self._once(self._names))

    async def _names(self) -> Sequence[str]:
        pages = [sorted(page) for bucket in self._store.in_force async for page in names_in(bucket)]
        names = list[str]()
        async for name in by_turns(merge(*pages)):
            if not names or names[-1] != name:
                names.append(name)
        return names

    async def _once(self, find: Callable[[], Awaitable[Found]]) -> Found:
        """What it finds; of many, what it found last, and one search for all who ask meanwhile."""
        kept: Found | None = self._kept.get(find)
        if kept is not None:
            return kept
        found: Found = await (self._flights.do(find, find) if self._has_many else find())
        self._has_many = len(found) > MANY
        if self._has_many:
            self._kept[find] = found
            asyncio.get_running_loop().call_later(KEPT_S, self._kept.pop, find, None)
        return found


def _read(topic: str, answer: int | Sequence[Any]) -> TopicView:
    """What topics.lua tells of a topic; a number is how many jobs are delayed, and all that there is."""
    if isinstance(answer, int):
        return TopicView(topic, answer)
    delayed, ready, reserved, buried, oldest, paused, limit, urgent, called, *groups = answer
    written = json.loads(limit) if limit else {}
    view = TopicView(
        *(topic, delayed, ready, reserved, buried, or_none(oldest), or_none(paused)),
        *(Limit.read(written) if written else None, urgent, called, *map(or_none, groups)),
    )
    if most := written.get("share", {}).get("max_jobs"):
        view.filled = view.jobs / most
    return view


# Topics as they are in a bucket, with exact counts.
TOPICS: Final = Verb[str, TopicView](
    "topics", list, lambda topics, reply: list(map(_read, topics, reply.results))
)
# How many delayed jobs of topics in a bucket fall due within each of SOON_S.
DUE_SOON: Final = Verb[str, Sequence[int]](
    "due_soon",
    lambda topics: [len(SOON_S), *(within_s * 1000 for within_s in SOON_S), *topics],
    lambda _, reply: reply.results,
)


async def names_in(bucket: Bucket) -> AsyncIterator[list[str]]:
    """All topics that the bucket knows, some at a time; one can come twice."""
    cursor = 0
    while True:
        cursor, names = await bucket.ask_key("topics", "hscan", cursor, count=NAMES_PER_CALL)
        yield [text(name) for name in names]
        if not cursor:
            return


def _of_known(combine: Callable[..., int], one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return combine(known) if known else None
