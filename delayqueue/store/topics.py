"""The verbs on topics and tags. They go through all buckets, a bounded piece at a time."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from delayqueue.config.startup import StartupError
from delayqueue.domain.access import Scope
from delayqueue.domain.job import State
from delayqueue.domain.limit import Changes, Limit, loop_in
from delayqueue.errors import Code, Invalid, Text, Unavailable, WrongState
from delayqueue.store.bucket.limits import FIRST, Limits
from delayqueue.store.bucket.tags import Tags
from delayqueue.store.census import pieces
from delayqueue.store.store import Store
from delayqueue.store.types import START, Change, Plan, TagPage, TagPlace
from delayqueue.tasks import paced

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
Paged = tuple[
    TagPlace, int, Change
]  # the next place, START = done; how many; what became ready or due

PIECE = 500  # jobs that one script call is given: more than it comes to
MOVED = 100  # that are moved by a distance: their ids go back and forth until a call comes to them
DECLARED = Text(
    "该topic的限制在配置文件中，请在文件中修改",
    "the topic's limits come from a config file; change them there and restart the servers",
)

LOOP = Text(
    "buried_to：这样死信会回到该topic", "buried_to: dead letters would come back to the topic"
)
DONE_IN_PART = Text(
    "存储暂不可用，已处理{}个job，请重试以完成其余",
    "the store is unavailable; {} jobs were processed, try again for the rest",
)
MOVED_IN_PART = Text(
    "存储暂不可用，至少已移动{}个job；重试会再次移动它们",
    "the store is unavailable; at least {} jobs were moved, and a repeated call moves them again",
)


class Topics:
    """Verbs that concern many jobs; those on tags find the jobs of a scope only."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store.by_bucket
        self._limits = Limits(self._store)
        self._tags = Tags(self._store)
        self._moving = store.moving_by
        self._census = store.census
        self._notify = store.notify
        self._scope = scope

    async def kick(self, topic: str, state: State, most: int) -> int:
        """Make `most` of the topic's jobs in that state, buried or delayed, ready. Returns how many.

        Takes the first ones of each bucket; a bucket whose store fails is skipped, unless nothing was kicked. A job
        that is buried again meanwhile stays buried.
        """
        kicked = 0
        failure: Unavailable | None = None
        for bucket in self._buckets:
            has_more, count = True, -1
            while has_more and count and kicked < most:  # a call may process only some of them
                try:
                    count, has_more, change = await self._store.kick_topic(
                        bucket, topic, state, min(most - kicked, PIECE)
                    )
                except Unavailable as error:
                    failure = error
                    break
                self._notify(bucket, change)
                kicked += count
        if failure and not kicked:
            raise failure
        return kicked

    async def cancel(self, tag: str, topic: str) -> int:
        """End all jobs of a tag, in one topic or in all (""), in any state. Returns how many."""
        return await self._each_page(tag, topic, self._store.cancel)

    async def kick_tag(self, tag: str, topic: str, state: State) -> int:
        """Make a tag's jobs in that state, buried or delayed, ready, in one topic or in all (""). Returns how many."""
        return await self._each_page(tag, topic, partial(self._tags.kick, state=state))

    async def reschedule_tag(
        self,
        tag: str,
        topic: str,
        plan: Plan,
    ) -> int:
        """Move a tag's jobs that are not reserved, or give them another priority, in one topic or in all ("").

        A delay is one due time for all of them, a distance moves each of them once. Returns how many were changed.
        """
        if plan.by_ms is not None:
            async with self._moving:
                return await self._move_tag(tag, topic, plan)

        async def reschedule(bucket: int, page: TagPage) -> Paged:
            nonlocal plan
            *paged, done = await self._tags.reschedule(bucket, page, plan)
            if done.due_ms is not None:
                plan = plan._replace(due_ms=done.due_ms)
            return cast("Paged", paged)

        return await self._each_page(tag, topic, reschedule)

    async def _move_tag(self, tag: str, topic: str, plan: Plan) -> int:
        """Move each job of a tag by a distance: once, although SSCAN may return an id twice."""
        moved: set[bytes] = set()

        async def of(bucket: int) -> AsyncIterator[int]:
            page = TagPage(tag, topic, MOVED, START, self._scope)
            left: list[bytes] = []
            async for _ in paced():
                if not left:
                    place, ids = await self._tags.ids(bucket, page)
                    page = page._replace(place=place)
                    left = [job_id for job_id in dict.fromkeys(ids) if job_id not in moved]
                if left:
                    try:
                        [_, *left], count, changed, done = await self._tags.reschedule(
                            bucket, page._replace(place=[*START, *left]), plan
                        )
                    except Unavailable:  # they may have been moved
                        moved.update(left)
                        raise
                    moved.update(done.moved)
                    self._notify(bucket, changed)
                    yield count
                if not left and page.place == START:
                    return

        return await self._all_of(of, MOVED_IN_PART)

    async def _each_page(
        self, tag: str, topic: str, change: Callable[..., Awaitable[Paged]]
    ) -> int:
        """Change the jobs of a tag, in pieces. Returns how many were changed."""

        async def of(bucket: int) -> AsyncIterator[int]:
            place = START
            async for _ in paced():
                page = TagPage(tag, topic, PIECE, place, self._scope)
                place, count, changed = await change(bucket, page)
                self._notify(bucket, changed)
                yield count
                if place == START:
                    return

        return await self._all_of(of)

    async def purge(self, topic: str, state: str) -> int:
        """Drop the topic's jobs in one state, or all (""), without a trace. Returns how many.

        With "" each bucket had none at one moment.
        """

        async def of(bucket: int) -> AsyncIterator[int]:
            async for _ in paced():
                count, has_more, change = await self._store.purge(bucket, topic, state, PIECE)
                self._notify(bucket, change)
                yield count
                if not has_more:
                    return

        return await self._all_of(of)

    async def _all_of(
        self, work: Callable[[int], AsyncIterator[int]], in_part: Text = DONE_IN_PART
    ) -> int:
        """The sum of what is done piece by piece in every bucket.

        If a bucket fails, the others are still processed; then Unavailable says how much was done, and what to do.
        """
        done, failed = 0, False
        try:
            for bucket in self._everywhere():
                try:
                    async for count in work(bucket):
                        done += count
                except Unavailable:
                    failed = True
        except Unavailable:
            failed = True
        if failed:
            raise Unavailable.of(in_part.zh.format(done), in_part.en.format(done))
        return done

    async def pause(self, topic: str, hold_ms: int) -> None:
        """Pause the topic's deliveries for `hold_ms`; 0 = until it is resumed."""
        await self._pause(topic, hold_ms)

    async def resume(self, topic: str) -> None:
        """Resume the topic's deliveries."""
        await self._pause(topic, None)

    async def _pause(self, topic: str, hold_ms: int | None) -> None:
        change = await self._store.pause(FIRST, topic, hold_ms)
        self._notify(FIRST, change)
        await self._let_others_follow(topic)

    async def _let_others_follow(self, topic: str) -> None:
        """Copy a topic's settings from the first bucket to all others, until they have not changed meanwhile.

        So if several clients set them at once, the last one in the first bucket wins everywhere. If a copy was
        interrupted, the next change repairs it.
        """
        written = None
        while len(self._buckets) > 1:
            settings = await self._store.settings_of(FIRST, topic)
            if settings == written:
                return
            for bucket in self._buckets[1:]:
                change = await self._limits.split_limits(
                    bucket, topic, settings, len(self._buckets)
                )
                self._notify(bucket, change)
            written = settings

    async def limit(self, topic: str, changes: Changes) -> Limit:
        """Set the limits in `changes`; None = remove the limit.

        Returns the limits in force. Raises Invalid if there is too little for each bucket, a burst without a rate, or
        if `buried_to` leads back to the topic; raises WrongState if a config file says otherwise.
        """
        return await self._limit(topic, changes)

    async def declare_limits(self, limits: Mapping[str, Limit]) -> None:
        """Replace all limits that the config file declared before; limits set at run time for other topics stay.

        Logs what that changes. Raises StartupError if one is too small.
        """
        self.check_limits(limits)
        before = await self._limits.all(FIRST)
        for topic, limit in before.items():
            if limit.declared and topic not in limits:
                log.warning("[limit %s] is removed: this file does not declare it", topic)
                await self._declare(topic, Limit())
        for topic, limit in limits.items():
            if topic in before and not limit.is_said_by(before[topic]):
                log.warning("[limit %s] replaces other limits", topic)
            await self._declare(topic, limit)

    def check_limits(self, limits: Mapping[str, Limit]) -> None:
        """Raises StartupError if a declared limit is too small."""
        check_limits(limits, len(self._buckets))

    async def _declare(self, topic: str, limit: Limit) -> None:
        await self._limit(topic, limit.changes(), declared=True)

    async def _limit(self, topic: str, changes: Changes, *, declared: bool = False) -> Limit:
        check_concurrency(changes.get("concurrency"), len(self._buckets))
        limited = await self._limits.limit(FIRST, topic, changes, declared=declared)
        self._notify(FIRST, limited.change)
        if limited.code == Code.WRONG_STATE:
            raise WrongState(DECLARED)
        if limited.code == Code.JOB_EXISTS:
            raise Invalid(LOOP)
        if limited.code != Code.OK:
            raise Invalid.of("burst 需要 rate", "burst: needs a rate")
        if changes:
            await self._let_others_follow(topic)
        return limited.limit

    async def forecast(
        self, topics: Sequence[str], start_ms: int, step_ms: int, steps: int
    ) -> list[int]:
        """How many delayed jobs of the topics, or of all ([]), fall due in each step."""
        totals = [0] * steps
        names = topics or await self._census.names()
        for bucket in self._buckets:
            for piece in pieces(names, max(1, 50_000 // steps)):
                counts = await self._store.forecast(bucket, piece, start_ms, step_ms, steps)
                totals = [a + b for a, b in zip(totals, counts, strict=True)]
        return totals

    @property
    def _buckets(self) -> range:
        return range(self._store.buckets.count)

    def _everywhere(self) -> Iterator[int]:
        """Every bucket. Raises Unavailable if their number has changed meanwhile: jobs may be in earlier ones."""
        layout = self._store.buckets.layout
        for bucket in self._buckets:
            yield bucket
            if self._store.buckets.layout is not layout:
                raise Unavailable


def check_limits(limits: Mapping[str, Limit], buckets: int) -> None:
    """Raises StartupError if a declared limit is too small for this number of buckets."""
    for topic, limit in limits.items():
        try:
            check_concurrency(limit.concurrency, buckets)
        except Invalid as error:
            raise StartupError(f"[limit {topic}]: {error}") from None
    if (topic_in_loop := loop_in(limits)) is not None:
        raise StartupError(f"[limit {topic_in_loop}]: {LOOP.en}")


def check_concurrency(concurrency: float | str | None, buckets: int) -> None:
    """Raises Invalid if it is less than one for each bucket."""
    if concurrency is not None and float(concurrency) < buckets:
        raise Invalid.of(
            f"concurrency 至少{buckets}（bucket_size）",
            f"concurrency: must be at least {buckets}, one for each bucket (bucket_size)",
        )
