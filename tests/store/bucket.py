"""One bucket under test: the store's verbs in short forms, and a view of its contents."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import IfExists, Job, PolledTopic, Reserved, State
from delayqueue.domain.limit import Changes
from delayqueue.domain.receipt import nonces
from delayqueue.errors import Code
from delayqueue.store import paging as takes
from delayqueue.store.bucket import TICK_LIMIT
from delayqueue.store.buckets import Buckets
from delayqueue.store.call import Reply
from delayqueue.store.census import DUE_SOON, TOPICS, TopicView, names_in
from delayqueue.store.keys import BucketKeys
from delayqueue.store.listings import Listings
from delayqueue.store.scripts import ZSET, Scripts
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from delayqueue.store.topics import Limited, forecast_in, set_limit
from delayqueue.store.types import (
    Change,
    Demand,
    JobView,
    Listing,
    Moved,
    Plan,
    Popped,
    Range,
    Reservation,
    Swept,
    TagPlace,
    Taken,
    Ticked,
)
from delayqueue.store.verbs import (
    BURY,
    DELETE,
    FINISH,
    GET,
    KICK,
    PUSH,
    RELEASE,
    REQUEUE,
    RESCHEDULE,
    RESERVE,
    TOUCH,
    WEIGH,
    Burial,
    Claim,
    Ending,
    Kick,
    Release,
    Requeue,
    Reschedule,
    Touch,
    Verb,
    dump_plan,
    dump_rows,
)
from tests.store.invariants import violations

Result = TypeVar("Result")
Outcome = tuple[Sequence[Result], Change]

HOUR_MS: Final = 3_600_000
SOON_MS: Final = 1  # over after `a_moment`
MOMENT_S: Final = 0.003
LATER_MS: Final = 3000  # time enough for what comes before, on a busy machine, too
ALL_WANTED: Final = 1000
ALWAYS: Final = Range(0, 10**13)

# The first and the last are both programs, both ways of calling scripts and, by default, both schedulers. A few files
# try functions on Redis, and a Cluster, which proves that a script touches only the keys of its slot.
REDIS: Final = pytest.param("redis", marks=pytest.mark.seldom("test_pop.py", "test_functions.py"))
CLUSTER: Final = pytest.param(
    "cluster", marks=pytest.mark.seldom("test_tick.py", "test_pop.py", "test_push.py")
)
WITH_FUNCTIONS: Final = (REDIS, CLUSTER, "valkey")
STORES: Final = (pytest.param("redis_without_functions", marks=pytest.mark.slow), *WITH_FUNCTIONS)
BUCKET: Final = "{dq_bucket_1}"
WHEEL_SLOTS: Final = 3600
SCHEDULERS: Final = ("zset", "wheel")
# the schedulers; --every-store combines all with all
USUAL: Final = {
    "redis_without_functions": "zset",
    "redis": "zset",
    "valkey": "wheel",
    "cluster": "wheel",
}
on_zset: Final = pytest.mark.parametrize("scheduler", ["zset"])
# for what takes long, with large jobs or many: scripts count these alike everywhere; --every-store runs all
on_one_store: Final = pytest.mark.parametrize(
    "redis",
    [
        *(pytest.param(name, marks=pytest.mark.seldom) for name in USUAL if name != "valkey"),
        "valkey",
    ],
    indirect=True,
)
with_functions: Final = pytest.mark.parametrize("redis", WITH_FUNCTIONS, indirect=True)

NONCES: Final = nonces()
STATES: Final = ("delayed", "ready", "reserved", "buried")

# ids and topics that have a meaning somewhere on the way
HOSTILE: Final = (
    "dq_bucket_1",
    "{dq_bucket_1}:job",
    "{x}",
    "*",
    "%s",
    "%d",
    "a b",
    "a\nb\r\n",
    "\x00",
    "nul\x00within",
    "-inf",
    "0",
    "🐘",
    "naïve 排队",
    '"\\',
    "[1]",
)


def job(
    job_id: str,
    *,
    topic: str = "t",
    body: str | bytes = "body",
    ttr_ms: int = HOUR_MS,
    if_exists: str = "replace",
    **options: Any,
) -> Job:
    """A job that is due at once and has an hour to run, unless arguments say otherwise."""
    return Job(topic, job_id, body, ttr_ms, if_exists=IfExists(if_exists), **options)


@cache
def scripts(wheel_slots: int) -> Scripts:
    """All verbs, for the wheel if it has slots; made once, since that takes longer than most tests."""
    return Scripts("wheel", wheel_slots) if wheel_slots else ZSET


async def a_moment() -> None:
    """Wait until SOON_MS are over."""
    await asyncio.sleep(MOMENT_S)


async def later() -> None:
    """Wait until LATER_MS are over."""
    await asyncio.sleep(LATER_MS / 1000 + MOMENT_S)


class Pushes(NamedTuple):
    """The codes of a push, the other topics that it named, and its change."""

    codes: list[int]
    other_topics: list[str | None]
    change: Change


class TagPage(NamedTuple):
    """About `limit` jobs of a tag, in one topic or in all (None), from a place on."""

    tag: str
    topic: str | None
    limit: int
    place: TagPlace
    scope: Scope


def dump_page(page: TagPage) -> list[Any]:
    """As the scripts take it."""
    return dump_rows([(page.tag, page.topic, page.limit), page.place])


class VerbStore(Store):
    """A store with a method for each verb and some scripts: one call in a bucket, for the first of the items."""

    def call(
        self, script: str, bucket: int, args: Sequence[Any], scope: Scope = EVERYWHERE
    ) -> asyncio.Future[Reply]:
        """Call a script in a bucket."""
        return self.bucket(bucket).run(script, args, scope)

    async def run_verb(
        self, verb: Verb[Any, Result], bucket: int, items: Sequence[Any], scope: Scope = EVERYWHERE
    ) -> Outcome[Result]:
        """The results of the first of the items."""
        reply = await self.call(verb.script, bucket, verb.pack(items), scope)
        return verb.read(items, reply), reply.change

    async def all_of(self, verb: Verb[Any, Result], items: Sequence[Any]) -> list[Result]:
        """The results of all items of bucket 0, in as many calls as it takes."""
        results: list[Result] = []
        while left := items[len(results) :]:
            results += (await self.run_verb(verb, 0, left))[0]
        return results

    async def pop(self, bucket: int, demands: Sequence[Demand]) -> Popped:
        return await self.bucket(bucket).pop(demands)

    async def tick(self, bucket: int, limit: int = TICK_LIMIT) -> Ticked:
        return await self.bucket(bucket).tick(limit)

    async def sweep(
        self, bucket: int, cursor: int, topics: int, buried_retain_ms: int | None = None
    ) -> Swept:
        return await self.bucket(bucket).sweep(cursor, topics, buried_retain_ms)

    async def kick_topic(
        self, bucket: int, topic: str, state: State, most: int
    ) -> tuple[int, bool, Change]:
        """How many were kicked, whether more may be left, and what became ready."""
        reply = await self.call("kick", bucket, [topic, state.value, most])
        has_more = len(reply.results) < reply.looked or reply.looked == most
        return reply.results.count(Code.OK), has_more, reply.change

    async def cancel(self, bucket: int, page: TagPage) -> tuple[TagPlace, int, Change]:
        """Where the next page begins, and how many were ended."""
        reply = await self.call("cancel", bucket, dump_page(page), page.scope)
        return reply.results, reply.looked, reply.change

    async def kick_tag(
        self, bucket: int, page: TagPage, *, state: State
    ) -> tuple[TagPlace, int, Change]:
        reply = await self.call("kick_tag", bucket, [state.value, *dump_page(page)], page.scope)
        return reply.results, reply.looked, reply.change

    async def reschedule_tag(
        self, bucket: int, page: TagPage, plan: Plan
    ) -> tuple[TagPlace, int, Change]:
        args = [*dump_plan(plan), *dump_page(page)]
        reply = await self.call("reschedule_tag", bucket, args, page.scope)
        return reply.results[0], reply.looked, reply.change

    async def tag_ids(self, bucket: int, page: TagPage) -> tuple[TagPlace, list[bytes]]:
        args = [page.tag, page.limit, *page.place]
        after, ids = (await self.call("tag_ids", bucket, args, page.scope)).results
        return [after], ids

    async def purge(
        self, bucket: int, topic: str, state: str, limit: int
    ) -> tuple[int, bool, Change]:
        """How many were dropped, and whether more are left."""
        reply = await self.call("purge", bucket, [topic, state, limit])
        return reply.looked, reply.results[0] == 1, reply.change

    async def pause(self, bucket: int, topic: str, hold_ms: int | None) -> Change:
        """None = resume."""
        hold = "" if hold_ms is None else hold_ms
        return (await self.call("pause", bucket, [topic, hold])).change

    async def limit(
        self, bucket: int, topic: str, changes: Changes, *, declared: bool = False
    ) -> Limited:
        return await set_limit(self.bucket(bucket), topic, changes, declared=declared)

    async def topics(self, bucket: int, topics: Sequence[str]) -> list[TopicView]:
        return await self.bucket(bucket).run_all(TOPICS, topics)

    async def due_soon(self, bucket: int, topics: Sequence[str]) -> list[Sequence[int]]:
        return await self.bucket(bucket).run_all(DUE_SOON, topics)

    async def forecast(
        self, bucket: int, topics: Sequence[str], start_ms: int, step_ms: int, steps: int
    ) -> list[int]:
        return await forecast_in(self.bucket(bucket), topics, start_ms, step_ms, steps)

    async def push(self, bucket: int, jobs: Sequence[Job], scope: Scope = EVERYWHERE) -> Pushes:
        pushed, change = await self.run_verb(PUSH, bucket, jobs, scope)
        return Pushes([one.code for one in pushed], [one.other_topic for one in pushed], change)

    async def finish(
        self, bucket: int, endings: Sequence[Ending], scope: Scope = EVERYWHERE
    ) -> Outcome[int]:
        return await self.run_verb(FINISH, bucket, endings, scope)

    async def delete(
        self, bucket: int, endings: Sequence[Ending], scope: Scope = EVERYWHERE
    ) -> Outcome[int]:
        return await self.run_verb(DELETE, bucket, endings, scope)

    async def bury(
        self, bucket: int, burials: Sequence[Burial], scope: Scope = EVERYWHERE
    ) -> Outcome[int]:
        return await self.run_verb(BURY, bucket, burials, scope)

    async def reserve(
        self, bucket: int, ids: Sequence[str], scope: Scope = EVERYWHERE
    ) -> Outcome[Reservation]:
        claims = [Claim(job_id, nonce) for job_id, nonce in zip(ids, NONCES, strict=False)]
        return await self.run_verb(RESERVE, bucket, claims, scope)

    async def requeue(self, bucket: int, returns: Sequence[Requeue]) -> tuple[int, Change]:
        done, change = await self.run_verb(REQUEUE, bucket, returns[::-1], EVERYWHERE)
        return len(done), change

    async def release(
        self, bucket: int, releases: Sequence[Release], scope: Scope = EVERYWHERE
    ) -> Outcome[Moved]:
        return await self.run_verb(RELEASE, bucket, releases, scope)

    async def touch(
        self, bucket: int, touches: Sequence[Touch], scope: Scope = EVERYWHERE
    ) -> Sequence[Moved]:
        return (await self.run_verb(TOUCH, bucket, touches, scope))[0]

    async def reschedule(
        self, bucket: int, reschedules: Sequence[Reschedule], scope: Scope = EVERYWHERE
    ) -> Outcome[Moved]:
        return await self.run_verb(RESCHEDULE, bucket, reschedules, scope)

    async def kick(
        self, bucket: int, kicks: Sequence[Kick], scope: Scope = EVERYWHERE
    ) -> Outcome[int]:
        return await self.run_verb(KICK, bucket, kicks, scope)

    async def get(
        self, bucket: int, ids: Sequence[str], scope: Scope = EVERYWHERE
    ) -> Sequence[JobView | None]:
        return (await self.run_verb(GET, bucket, ids, scope))[0]

    async def weigh(
        self, bucket: int, ids: Sequence[str], scope: Scope = EVERYWHERE
    ) -> Sequence[int]:
        return (await self.run_verb(WEIGH, bucket, ids, scope))[0]


async def calls_of(redis: Redis, command: str) -> int:
    """How often the store has run a command so far."""
    stats: Any = await redis.info("commandstats")
    return int(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"])


@dataclass(frozen=True)
class Bucket:
    """Bucket 0 of a store over one back end."""

    redis: Redis
    keys: BucketKeys
    store: VerbStore
    wheel_slots: int = 0

    @classmethod
    def over(
        cls, redis: Redis, *, bucket_name: str = "dq_bucket_%d", wheel_slots: int = 0
    ) -> "Bucket":
        """With slots, the scheduler is the wheel."""
        buckets = Buckets(bucket_name, "dq_queue_%s")
        store = VerbStore(Servers.one(redis), buckets, scripts(wheel_slots))
        return cls(redis, buckets.keys[0], store, wheel_slots)

    async def violations(self) -> list[str]:
        """What is not whole in it."""
        return await violations(self.redis, self.keys, self.wheel_slots)

    def key(self, name: str) -> str:
        """The full name of a key, e.g. `delay:t`."""
        return f"{self.keys.tag}:{name}"

    async def spoil(self, *names: str) -> None:
        """Replace keys by values of another type."""
        for name in names:
            await self.redis.set(self.key(name), "of another type")

    async def let_forget(self) -> None:
        """What the store's functions remember from one call to the next, they forget."""
        with suppress(ResponseError):  # it has no functions
            await self.redis.function_flush()

    async def now_ms(self) -> int:
        """The store's own time."""
        seconds, microseconds = await self.redis.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def push(self, *jobs: Job) -> list[int]:
        return [pushed.code for pushed in await self.store.all_of(PUSH, jobs)]

    async def pop(self, *topics: PolledTopic, wanted: int = ALL_WANTED) -> list[Reserved]:
        return (await self.store.pop(0, [Demand(topics or ("t",), wanted)])).jobs[0]

    async def pop_ids(self, *topics: PolledTopic, wanted: int = ALL_WANTED) -> list[str]:
        return [job.id for job in await self.pop(*topics, wanted=wanted)]

    async def pop_one(self, topic: PolledTopic = "t") -> Reserved:
        [popped] = await self.pop(topic, wanted=1)
        return popped

    async def requeue(self, *jobs: Reserved) -> None:
        returns = [Requeue(job.id, job.nonce, was_buried=job.was_buried) for job in jobs]
        await self.store.all_of(REQUEUE, returns[::-1])

    async def finish(self, *ids: str, nonce: str | None = None, message: str = "") -> list[int]:
        return await self.store.all_of(FINISH, _endings(ids, nonce, message))

    async def delete(self, *ids: str, nonce: str | None = None, message: str = "") -> list[int]:
        return await self.store.all_of(DELETE, _endings(ids, nonce, message))

    async def bury(
        self, *ids: str, nonce: str | None = None, message: str = "", priority: int | None = None
    ) -> list[int]:
        burials = [Burial(job_id, nonce, message, priority) for job_id in ids]
        return await self.store.all_of(BURY, burials)

    async def release(
        self,
        job_id: str,
        *,
        nonce: str | None = None,
        delay_ms: int | None = None,
        message: str = "",
        priority: int | None = None,
    ) -> Moved:
        release = Release(job_id, nonce, delay_ms, message, priority=priority)
        [moved], _ = await self.store.release(0, [release])
        return moved

    async def touch(
        self, job_id: str, *, nonce: str | None = None, ttr_ms: int | None = None
    ) -> Moved:
        [moved] = await self.store.touch(0, [Touch(job_id, nonce, ttr_ms)])
        return moved

    async def reschedule(
        self, job_id: str, *, delay_ms: int = 0, due_ms: int | None = None
    ) -> Moved:
        return await self.change(job_id, delay_ms=delay_ms, due_ms=due_ms)

    async def change(self, job_id: str, **plan: int | None) -> Moved:
        """Reschedule a job by a plan."""
        [moved], _ = await self.store.reschedule(0, [Reschedule(job_id, Plan(**plan))])
        return moved

    async def kick(self, *ids: str) -> list[int]:
        return await self.store.all_of(KICK, [Kick(job_id) for job_id in ids])

    async def tick(self) -> None:
        """Move all that is due."""
        while (await self.store.tick(0)).change.next_due_ms == 0:
            pass

    async def get(self, job_id: str) -> JobView | None:
        [view] = await self.store.get(0, [job_id])
        return view

    async def view(self, job_id: str) -> JobView:
        """A job's view; the job must be known."""
        view = await self.get(job_id)
        assert view is not None
        return view

    async def state(self, job_id: str) -> str | None:
        """The job's state; None if it is unknown."""
        view = await self.get(job_id)
        return None if view is None else view.state.value

    async def take(
        self, due: Range = ALWAYS, most: int = ALL_WANTED, topic: str = "t"
    ) -> list[Taken]:
        """Take from this bucket alone."""
        return await takes.take(self.store, topic, due, most)

    async def pages(self, what: Listing, limit: int = 10) -> AsyncIterator[list[JobView]]:
        """The pages of a listing of this bucket alone."""
        listings, cursor = Listings(self.store, EVERYWHERE), ""
        while True:
            jobs, cursor = await listings.list_jobs(what, limit, cursor)
            yield jobs
            if not cursor:
                return

    async def counts(self, topic: str = "t") -> TopicView:
        [counts] = await self.store.topics(0, [topic])
        return counts

    async def topic_names(self) -> list[str]:
        """All topics that it knows."""
        return [name async for page in names_in(self.store.bucket(0)) for name in page]

    async def put_in(self, state: str, job_id: str = "a", **options: Any) -> None:
        """Push a job and bring it into that state."""
        if state == "delayed":
            options["delay_ms"] = HOUR_MS
        await self.push(job(job_id, **options))
        if state == "reserved":
            await self.pop_one(options.get("topic", "t"))
        if state == "buried":
            await self.bury(job_id)
        assert await self.state(job_id) == state


def _endings(ids: tuple[str, ...], nonce: str | None, message: str) -> list[Ending]:
    return [Ending(job_id, nonce, message) for job_id in ids]
