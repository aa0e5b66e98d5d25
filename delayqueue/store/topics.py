"""The verbs on topics and tags. They go through all buckets, a bounded piece at a time."""

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from delayqueue.config.startup import StartupError
from delayqueue.domain.access import Scope
from delayqueue.domain.job import State
from delayqueue.domain.limit import Changes, Limit, loop_in
from delayqueue.errors import Code, Invalid, Text, Unavailable, WrongState
from delayqueue.store.bucket import Bucket
from delayqueue.store.call import Reply, settings_of
from delayqueue.store.record import text
from delayqueue.store.store import Store
from delayqueue.store.types import START, Change, Plan, TagPlace
from delayqueue.store.verbs import dump_plan, dump_rows
from delayqueue.tasks import batched, paced

log = logging.getLogger(__name__)

FIRST: Final = 0  # the bucket where a topic is configured; the others copy its settings
PIECE = 500  # jobs that one script call is given: more than it comes to
MOVED = 100  # that are moved by a distance: their ids go back and forth until a call comes to them
DECLARED = Text(
    "该topic的限制在配置文件中，请在文件中修改",
    "the topic's limits come from a config file; change them there and reload the servers",
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


class Limited(NamedTuple):
    """A topic's limits in force, and a code that says whether the wanted ones are."""

    code: int
    limit: Limit
    change: Change


class Topics:
    """Verbs that concern many jobs; those on tags find the jobs of a scope only."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def kick(self, topic: str, state: State, most: int) -> int:
        """Make `most` of the topic's jobs in that state, buried or delayed, ready. Returns how many.

        Takes the first ones of each bucket; a bucket whose store fails is skipped, unless nothing was kicked. A job
        that is buried again meanwhile stays buried.
        """
        kicked = 0
        failure: Unavailable | None = None
        for bucket in self._store.in_force:
            has_more, count = True, -1
            while has_more and count and kicked < most:  # a call may process only some of them
                wanted = min(most - kicked, PIECE)
                try:
                    reply = await bucket.run("kick", [topic, state.value, wanted])
                except Unavailable as error:
                    failure = error
                    break
                bucket.notify(reply.change)
                has_more = len(reply.results) < reply.looked or reply.looked == wanted
                count = reply.results.count(Code.OK)
                kicked += count
        if failure and not kicked:
            raise failure
        return kicked

    async def cancel(self, tag: str, topic: str | None) -> int:
        """End all jobs of a tag, in one topic or in all (None), in any state. Returns how many."""
        return await self._of_tag("cancel", tag, topic)

    async def kick_tag(self, tag: str, topic: str | None, state: State) -> int:
        """Make a tag's buried or delayed jobs ready, in one topic or in all (None). Returns how many."""
        return await self._of_tag("kick_tag", tag, topic, lambda: [state.value])

    async def reschedule_tag(self, tag: str, topic: str | None, plan: Plan) -> int:
        """Move a tag's jobs that are not reserved, or give them another priority, in one topic or in all (None).

        A delay is one due time for all of them, a distance moves each of them once. Returns how many were changed.
        """
        if plan.by_ms is not None:
            async with self._store.tag_move_lock:
                return await self._move_tag(tag, topic, plan)

        def read(reply: Reply) -> Any:
            nonlocal plan
            after, due_ms, _ = reply.results
            if due_ms >= 0:  # the one that all get
                plan = plan._replace(due_ms=due_ms)
            return after

        return await self._of_tag("reschedule_tag", tag, topic, lambda: dump_plan(plan), read)

    async def _move_tag(self, tag: str, topic: str | None, plan: Plan) -> int:
        """Move each job of a tag by a distance: once, although SSCAN may return an id twice."""
        moved: set[bytes] = set()
        what = [*dump_plan(plan), *dump_rows([(tag, topic, MOVED)]), *START]

        async def in_bucket(bucket: Bucket) -> AsyncIterator[int]:
            after = START
            left: list[bytes] = []
            async for _ in paced():
                if not left:
                    reply = await bucket.run("tag_ids", [tag, MOVED, *after], self._scope)
                    *after, ids = reply.results
                    left = [job_id for job_id in dict.fromkeys(ids) if job_id not in moved]
                if left:
                    try:
                        reply = await bucket.run("reschedule_tag", [*what, *left], self._scope)
                    except Unavailable:  # they may have been moved
                        moved.update(left)
                        raise
                    (_, *left), _, ids = reply.results
                    moved.update(ids)
                    bucket.notify(reply.change)
                    yield reply.looked
                if not left and after == START:
                    return

        return await self._in_all_buckets(in_bucket, MOVED_IN_PART)

    async def _of_tag(
        self,
        script: str,
        tag: str,
        topic: str | None,
        first_args: Callable[[], Sequence[Any]] = list,
        read: Callable[[Reply], TagPlace] = attrgetter("results"),
    ) -> int:
        """Change the jobs of a tag by a script, in pieces. Returns how many were changed.

        `read` finds in an answer where the next piece begins; START = there is none.
        """
        what = dump_rows([(tag, topic, PIECE)])

        async def in_bucket(bucket: Bucket) -> AsyncIterator[int]:
            place = START
            async for _ in paced():
                reply = await bucket.run(script, [*first_args(), *what, *place], self._scope)
                place = read(reply)
                bucket.notify(reply.change)
                yield reply.looked
                if place == START:
                    return

        return await self._in_all_buckets(in_bucket)

    async def purge(self, topic: str, state: str | None) -> int:
        """Drop the topic's jobs in one state, or all (None), without a trace. Returns how many.

        With None each bucket had none at one moment.
        """

        async def in_bucket(bucket: Bucket) -> AsyncIterator[int]:
            async for _ in paced():
                reply = await bucket.run("purge", dump_rows([(topic, state, PIECE)]))
                bucket.notify(reply.change)
                yield reply.looked
                if reply.results != [1]:  # no more are left
                    return

        return await self._in_all_buckets(in_bucket)

    async def _in_all_buckets(
        self, work: Callable[[Bucket], AsyncIterator[int]], in_part: Text = DONE_IN_PART
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

    async def pause(self, topic: str, hold_ms: int | None) -> None:
        """Pause the topic's deliveries for `hold_ms`, 0 = until they are resumed; None = resume them.

        If the caller is cancelled, it goes on.
        """
        await self._store.changes.finish(self._pause(topic, hold_ms))

    async def _pause(self, topic: str, hold_ms: int | None) -> None:
        first = self._store.bucket(FIRST)
        reply = await first.run("pause", dump_rows([(topic, hold_ms)]))
        first.notify(reply.change)
        await let_others_follow(self._store, topic)

    async def limit(self, topic: str, changes: Changes, *, declared: bool = False) -> Limit:
        """Set the limits in `changes`; None = remove the limit. `declared`: as set_limit() says.

        Returns the limits in force. Raises Invalid if there is too little for each bucket, a burst without a rate,
        `when_full` without `max_jobs`, or if `buried_to` leads back to the topic; raises WrongState if a config file
        says otherwise. If the caller is cancelled, it goes on.
        """
        return await self._store.changes.finish(self._limit(topic, changes, declared=declared))

    async def _limit(self, topic: str, changes: Changes, *, declared: bool) -> Limit:
        check_shares(changes, self._store.buckets.count)
        first = self._store.bucket(FIRST)
        code, limit, change = await set_limit(first, topic, changes, declared=declared)
        first.notify(change)
        if code == Code.WRONG_STATE:
            raise WrongState(DECLARED)
        if code == Code.JOB_EXISTS:
            raise Invalid(LOOP)
        if code == Code.TOPIC_FULL:
            raise Invalid.of("when_full 需要 max_jobs", "when_full: needs max_jobs")
        if code != Code.OK:
            raise Invalid.of("burst 需要 rate", "burst: needs a rate")
        if changes:
            await let_others_follow(self._store, topic)
        return limit

    async def declare_limits(self, limits: Mapping[str, Limit]) -> None:
        """Replace all limits that the config file declared before; limits set at run time for other topics stay.

        Logs what that changes. Raises StartupError if one is too small.
        """
        check_limits(limits, self._store.buckets.count)
        before = await limits_in(self._store.bucket(FIRST))
        for topic, limit in before.items():
            if limit.declared and topic not in limits:
                log.warning("[limit %s] is removed: this file does not declare it", topic)
                await self.limit(topic, Limit().changes(), declared=True)
        for topic, limit in limits.items():
            if topic in before and not limit.matches(before[topic]):
                log.warning("[limit %s] replaces other limits", topic)
            await self.limit(topic, limit.changes(), declared=True)

    async def forecast(
        self, topics: Sequence[str], start_ms: int, step_ms: int, steps: int
    ) -> list[int]:
        """How many delayed jobs of the topics, or of all ([]), fall due in each step."""
        totals = [0] * steps
        names = topics or await self._store.census.names()
        for bucket in self._store.in_force:
            for piece in batched(names, max(1, 50_000 // steps)):
                counts = await forecast_in(bucket, piece, start_ms, step_ms, steps)
                totals = [a + b for a, b in zip(totals, counts, strict=True)]
        return totals

    def _everywhere(self) -> Iterator[Bucket]:
        """Every bucket. Raises Unavailable if their number has changed meanwhile: jobs may be in earlier ones."""
        layout = self._store.buckets.layout
        for bucket in self._store.in_force:
            yield bucket
            if self._store.buckets.layout is not layout:
                raise Unavailable


def check_limits(limits: Mapping[str, Limit], buckets: int) -> None:
    """Raises StartupError, which names each declared limit that is too small for this number of buckets, or a loop."""
    wrong: list[str] = []
    for topic, limit in limits.items():
        try:
            check_shares(limit.changes(), buckets)
        except Invalid as error:
            wrong.append(f"[limit {topic}]: {error}")
    if (topic_in_loop := loop_in(limits)) is not None:
        wrong.append(f"[limit {topic_in_loop}]: {LOOP.en}")
    if wrong:
        raise StartupError(*wrong)


def check_shares(limits: Changes, buckets: int) -> None:
    """Raises Invalid if a limit is less than one for each bucket."""
    for name in ("concurrency", "max_jobs"):
        most = limits.get(name)
        if most is not None and float(most) < buckets:
            raise Invalid.of(
                f"{name} 至少{buckets}（bucket_size）",
                f"{name}: must be at least {buckets}, one for each bucket (bucket_size)",
            )


async def let_others_follow(store: Store, topic: str) -> None:
    """Copy a topic's settings from the first bucket to all others, until they have not changed meanwhile.

    So if several clients set them at once, the last one in the first bucket wins everywhere: whoever has copied looks
    at the first bucket again. What an interrupted copy leaves behind, SettingsRepair finds (engine/settings_repair.py).
    Raises Unavailable if a bucket fails; the others have the settings then.
    """
    written = None
    failure: Unavailable | None = None
    while len(store.in_force) > 1:
        settings = await _settings_of(store.bucket(FIRST), topic)
        if settings == written:
            break
        failure = None
        for bucket in store.in_force[1:]:
            try:
                bucket.notify(await split_limits(bucket, topic, settings, store.buckets.count))
            except Unavailable as error:
                failure = error
        written = settings
    if failure:
        raise failure


async def settings_in(bucket: Bucket) -> dict[str, dict[str, Any]]:
    """The settings of topics in a bucket, as parsed from JSON; only topics with readable settings."""
    found = await bucket.ask_key("topics", "hgetall")
    return {text(name): each for name, written in found.items() if (each := settings_of(written))}


async def limits_in(bucket: Bucket) -> dict[str, Limit]:
    """The topics that have limits in a bucket: its share of the whole."""
    settings = await settings_in(bucket)
    return {topic: Limit.read(each["limit"]) for topic, each in settings.items() if "limit" in each}


async def set_limit(bucket: Bucket, topic: str, changes: Changes, *, declared: bool) -> Limited:
    """Set the limits in `changes` by name (domain/limit.py); None = remove the limit.

    `declared`: they come from a config file, and limits that it does not name are removed.
    """
    args = [topic, bucket.number, bucket.buckets.count, int(declared)]
    for name, value in changes.items():
        args += (name, "" if value is None or value is False else 1 if value is True else value)
    reply = await bucket.run("limit", args)
    code, written = reply.results
    return Limited(code, Limit.read(json.loads(written)), reply.change)


async def split_limits(bucket: Bucket, topic: str, written: str | None, buckets: int) -> Change:
    """Give a topic these settings (JSON) in one of `buckets` buckets; None = those that the bucket has."""
    args = dump_rows([(topic, written, bucket.number, buckets)])
    return (await bucket.run("split_limits", args)).change


async def _settings_of(bucket: Bucket, topic: str) -> str:
    """The settings of one topic (JSON); {} if they are unreadable."""
    return json.dumps(settings_of(await bucket.ask_key("topics", "hget", topic) or b""))


async def forecast_in(
    bucket: Bucket, topics: Sequence[str], start_ms: int, step_ms: int, steps: int
) -> list[int]:
    """How many delayed jobs of the topics fall due in each step."""
    totals, place, together = [0] * steps, 0, steps
    while place >= 0:
        args = [start_ms, step_ms, steps, place, together, *topics]
        place, together, counts = (await bucket.run("forecast", args)).results
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
    return totals
