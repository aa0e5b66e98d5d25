"""Any sequence of verbs has the same effect on the store and on the model, on every back end, with both schedulers.

The clock is the test's own, as a store's cannot be set. The scripts have another `now_ms`, which reads a key;
everything else in them runs in production. HYPOTHESIS_PROFILE=long tries many more sequences.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS, USUAL_PRIORITY, IfExists, Job, Reserved
from delayqueue.engine.take_service import TakeService
from delayqueue.store.census import TopicView
from delayqueue.store.scripts import Scripts, read
from delayqueue.store.servers import Servers
from delayqueue.store.topics import Topics
from delayqueue.store.types import JobView, Plan, Range
from delayqueue.store.verbs import DISCARD, Discard, Requeue
from faults.attack.life import Spec
from tests.store.bucket import BUCKET, SCHEDULERS, WHEEL_SLOTS, Bucket, VerbStore
from tests.store.conftest import connect
from tests.store.model import LIVE, Model

CLOCK: Final = f"{BUCKET}:clock of the model"
STORE_CLOCK: Final = """  local function clock_ms()
    local time = call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
  end
"""
OUR_CLOCK: Final = f"local function clock_ms() return tonumber(call('GET', '{CLOCK}')) end\n"
DAY_MS: Final = 86_400_000
LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
BACK_ENDS: Final = ("redis_without_functions", "redis", "valkey")
EXAMPLES: Final = {("redis_without_functions", "zset"): 16, ("valkey", "wheel"): 32}
RARE_EXAMPLES: Final = 8  # of the others, with --every-store
SETTINGS: Final = settings(
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

JOB_IDS: Final = "abc"
TOPIC_NAMES: Final = ("t", "u")
# mostly existing ids, and of those mostly jobs with a history
IDS: Final = st.runner().flatmap(
    lambda machine: st.sampled_from([*machine.model.interesting(), *JOB_IDS])
)
TOPICS: Final = st.sampled_from(TOPIC_NAMES)
TAGS: Final = st.sampled_from(["x", "y"])
DELAYS_MS: Final = st.sampled_from([1, 5, 10, 1000])
PRIORITIES: Final = st.sampled_from([USUAL_PRIORITY, USUAL_PRIORITY, 0, 7, 2**32 - 1])
MAYBE_MS: Final = st.sampled_from([0, 0, 3, 20])
JOBS: Final = st.builds(
    Job,
    topic=TOPICS,
    id=st.sampled_from(JOB_IDS),
    body=st.sampled_from([b"", b"body", b"another"]),
    delay_ms=MAYBE_MS,
    ttr_ms=DELAYS_MS,
    tags=st.lists(TAGS, unique=True).map(tuple),
    retry_ms=st.none() | st.lists(MAYBE_MS, max_size=2).map(tuple),
    if_exists=st.sampled_from(IfExists),
    retain_ms=MAYBE_MS,
    expire_ms=st.sampled_from([0, 0, 0, 20]),
    priority=PRIORITIES,
    call=st.sampled_from([None, None, Call(url="http://example.com/")]),
)
DELAYS: Final = DELAYS_MS.map(lambda ms: Plan(delay_ms=ms))
DISTANCES: Final = st.sampled_from([None, -1000, -5, 0, 5]).map(lambda ms: Plan(by_ms=ms))
PLANS: Final = st.builds(
    lambda plan, priority: plan._replace(priority=priority),
    DELAYS | DISTANCES,
    st.none() | PRIORITIES,
)
USES_RECEIPT: Final = st.sampled_from(["none", "right", "right", "old"])


def read_stepped(name: str) -> str:
    """The text of a script, which reads the test's clock."""
    source = read(name)
    assert (STORE_CLOCK in source) == (name == "_call")
    return source.replace(STORE_CLOCK, OUR_CLOCK)


@cache
def stepped(scheduler: str, slots: int) -> Scripts:
    """All verbs, which read the test's clock; made once, not for each example."""
    return Scripts(scheduler, slots, read_stepped)


class Comparison(RuleBasedStateMachine):
    """Does the same to both, and compares them."""

    def __init__(
        self, open_redis: Callable[[], Redis], scheduler: str, *, remembers: bool = True
    ) -> None:
        """`remembers`: the store has functions, and these the last pushes; a script knows those of its call only."""
        super().__init__()
        self._remembers = remembers
        self._loop = asyncio.Runner()
        slots = WHEEL_SLOTS if scheduler == "wheel" else 0
        self._redis = self.do(self._opened(open_redis))
        plain = Bucket.over(self._redis, wheel_slots=slots)
        store = VerbStore(Servers.one(self._redis), plain.store.buckets, stepped(scheduler, slots))
        self.bucket = Bucket(self._redis, plain.keys, store, slots)
        self.topics, self.taking = Topics(store, EVERYWHERE), TakeService(store)
        # in the past, for verbs that use the store's own clock: in the end, all that is over here is over there
        self.model = Model(int(time.time() * 1000) - DAY_MS)
        self.nonces = defaultdict[str, list[str]](list)  # of all reservations, by job
        self.do(self._set_clock())

    def do(self, work: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await work

        return self._loop.run(wait())

    async def _opened(self, open_redis: Callable[[], Redis]) -> Redis:
        redis = open_redis()
        await redis.flushdb()  # of a database that belongs to this test
        return redis

    async def _set_clock(self) -> None:
        await self._redis.set(CLOCK, self.model.now_ms)

    @initialize(jobs=st.lists(JOBS, min_size=3, max_size=5))
    def begin(self, jobs: list[Job]) -> None:
        self.push(jobs)

    @rule(jobs=st.lists(JOBS, min_size=1, max_size=3))
    def push(self, jobs: list[Job]) -> None:
        jobs = [self.as_pushed(job) for job in jobs]
        self._forget()
        assert self.do(self.bucket.push(*jobs)) == [self.model.push(job) for job in jobs]

    def _forget(self) -> None:
        if not self._remembers:
            self.model.pushed = {}

    def as_pushed(self, job: Job) -> Job:
        """What is pushed for a job."""
        return job

    @rule(topics=st.permutations(TOPIC_NAMES), wanted=st.integers(1, 4))
    def pop(self, topics: list[str], wanted: int) -> None:
        jobs = self.do(self.bucket.pop(*topics, wanted=wanted))
        ids = [job.id for job in jobs]
        assert ids == self.model.pop(tuple(topics), wanted, ids)
        for job in jobs:
            self._was_given(job)

    @rule(wanted=st.integers(1, 4))
    def pop_called(self, wanted: int) -> None:
        """A topic that was paused at the last one is looked at again after a second, or when it is resumed."""
        self.time_passes(1000)
        self.pop([CALLS], wanted)

    @rule(topics=st.permutations(TOPIC_NAMES))
    def an_attempt_fails(self, topics: list[str]) -> None:
        """Often, since schedules take several failures in a row."""
        self.pop(topics, 1)
        for job_id, job in list(self.model.jobs.items()):
            if job.state == "reserved":
                self.release(job_id, "right", None, None)

    def _was_given(self, job: Reserved) -> None:
        self.nonces[job.id].append(job.nonce)
        self.model.hold(job.id, job.nonce)
        known = self.model.jobs[job.id]
        spec = known.spec
        assert (job.attempt, job.due_ms) == (known.attempt, known.due[0])
        assert (job.topic, job.body) == (spec.topic, spec.body)
        assert (job.ttr_ms, job.retry_ms) == (spec.ttr_ms, spec.retry_ms)

    def _nonce(self, job_id: str, uses: str) -> str:
        if uses == "right" and job_id in self.model.jobs:
            return self.model.jobs[job_id].holder
        made_up = "0123456789ab-1"
        return "" if uses == "none" else next(iter(self.nonces[job_id]), made_up)

    @rule(job_id=IDS, uses=USES_RECEIPT)
    def finish(self, job_id: str, uses: str) -> None:
        nonce = self._nonce(job_id, uses)
        codes = self.do(self.bucket.finish(job_id, nonce=nonce or None))
        assert codes == [self.model.end(job_id, nonce, "finished")]

    @rule(job_id=IDS, uses=USES_RECEIPT)
    def delete(self, job_id: str, uses: str) -> None:
        nonce = self._nonce(job_id, uses)
        codes = self.do(self.bucket.delete(job_id, nonce=nonce or None))
        assert codes == [self.model.end(job_id, nonce, "cancelled")]

    @rule(job_id=IDS)
    def discard(self, job_id: str) -> None:
        codes = self.do(self.bucket.store.all_of(DISCARD, [Discard(job_id)]))
        assert codes == [self.model.discard(job_id)]

    @rule(job_id=IDS)
    def reserve(self, job_id: str) -> None:
        [(code, job)], _ = self.do(self.bucket.store.reserve(0, [job_id]))
        assert code == self.model.reserve(job_id)
        if job is not None:
            assert job.id == job_id
            self._was_given(job)

    @rule(job_id=IDS, uses=st.sampled_from(["right", "right", "old"]), was_told=st.booleans())
    def requeue(self, job_id: str, uses: str, *, was_told: bool) -> None:
        nonce = self._nonce(job_id, uses)
        if nonce:
            was_buried = job_id in self.model.were_buried
            returned = Requeue(job_id, nonce, was_told=was_told, was_buried=was_buried)
            self.do(self.bucket.store.requeue(0, [returned]))
            self.model.requeue(job_id, nonce, was_told=was_told)
        self.time_passes(0)  # its expiry may have been waiting for this

    @rule(
        job_id=IDS,
        uses=USES_RECEIPT,
        delay_ms=st.none() | MAYBE_MS,
        priority=st.none() | PRIORITIES,
    )
    def release(self, job_id: str, uses: str, delay_ms: int | None, priority: int | None) -> None:
        nonce = self._nonce(job_id, uses)
        moved = self.do(
            self.bucket.release(job_id, nonce=nonce or None, delay_ms=delay_ms, priority=priority)
        )
        assert moved.code == self.model.release(job_id, nonce, delay_ms, priority)

    @rule(job_id=IDS, uses=USES_RECEIPT, ttr_ms=st.none() | DELAYS_MS)
    def touch(self, job_id: str, uses: str, ttr_ms: int | None) -> None:
        nonce = self._nonce(job_id, uses)
        moved = self.do(self.bucket.touch(job_id, nonce=nonce or None, ttr_ms=ttr_ms))
        assert moved.code == self.model.touch(job_id, nonce, ttr_ms)
        if job_id in self.model.jobs and moved.time_ms is not None:
            assert (moved.time_ms, moved.time_ms) == self.model.jobs[job_id].deadline

    @rule(
        job_id=IDS,
        uses=USES_RECEIPT,
        message=st.sampled_from(["", "why"]),
        priority=st.none() | PRIORITIES,
    )
    def bury(self, job_id: str, uses: str, message: str, priority: int | None) -> None:
        nonce = self._nonce(job_id, uses)
        codes = self.do(
            self.bucket.bury(job_id, nonce=nonce or None, message=message, priority=priority)
        )
        assert codes == [self.model.bury(job_id, nonce, priority)]

    @rule(ids=st.lists(IDS, min_size=1, max_size=3))
    def kick(self, ids: list[str]) -> None:
        assert self.do(self.bucket.kick(*ids)) == [self.model.kick(job_id) for job_id in ids]

    @rule(job_id=IDS, plan=PLANS)
    def reschedule(self, job_id: str, plan: Plan) -> None:
        moved = self.do(self.bucket.change(job_id, **plan._asdict()))
        assert moved.code == self.model.reschedule(job_id, plan)
        self.time_passes(0)  # it may be due now

    @rule(tag=TAGS)
    def cancel(self, tag: str) -> None:
        assert self.do(self.topics.cancel(tag, None)) == self.model.cancel(tag)

    @rule(
        topic=TOPICS, first=st.integers(-5, 20), length=st.integers(0, 20), most=st.integers(1, 3)
    )
    def take(self, topic: str, first: int, length: int, most: int) -> None:
        first_ms = self.model.now_ms + first
        due = Range(first_ms, first_ms + length)
        taken = self.do(self.taking.take(topic, due, most))
        assert [job.id for job in taken] == self.model.take(topic, *due, most)

    @rule(topic=TOPICS, state=st.sampled_from([*LIVE, "ended"]))
    def purge(self, topic: str, state: str) -> None:
        assert self.do(self.topics.purge(topic, state)) == self.model.purge(topic, state)

    @rule(topic=TOPICS, hold_ms=st.sampled_from([0, 7]))
    def pause(self, topic: str, hold_ms: int) -> None:
        self.do(self.topics.pause(topic, hold_ms))
        self.model.paused[topic] = self.model.now_ms + hold_ms if hold_ms else 0

    @rule(topic=TOPICS)
    def resume(self, topic: str) -> None:
        self.do(self.topics.pause(topic, None))
        self.model.paused.pop(topic, None)

    @rule(ms=st.sampled_from([1, 3, 10, 50, 1000]))
    def time_passes(self, ms: int) -> None:
        self.model.step(ms)
        self.do(self._set_clock())
        self.do(self.bucket.tick())

    @invariant()
    def both_know_and_count_the_same_jobs(self) -> None:
        views, counts = self.do(self._views_and_counts())
        self._compare_views(views)
        for topic, found in zip(TOPIC_NAMES, counts, strict=True):
            assert {state: getattr(found, state) for state in LIVE} == self.model.counts(topic)

    async def _views_and_counts(self) -> tuple[list[Any], list[TopicView]]:
        store = self.bucket.store
        return [*await store.get(0, JOB_IDS)], await store.topics(0, TOPIC_NAMES)

    def _compare_views(self, views: list[Any]) -> None:
        for job_id, view in zip(JOB_IDS, views, strict=True):
            if job_id in self.model.jobs:
                job = self.model.jobs[job_id]
                found = (view.state, view.due_ms, view.attempt)
                assert found == (job.state, job.due[0], job.attempt)
                assert pushed_with(view) == pushed_with(job.spec)
                assert [one.attempt for one in view.attempts] == self.model.failed[job_id]
            elif job_id in self.model.kept:
                kept = self.model.kept[job_id]
                assert view.state == kept.state
                assert pushed_with(view) == pushed_with(kept.spec)
            else:
                assert view is None

    def teardown(self) -> None:
        self.do(self._redis.delete(CLOCK))
        violations = self.do(self.bucket.violations())
        self.do(self._redis.aclose())
        self._loop.close()
        assert violations == []


def pushed_with(job: JobView | Spec) -> tuple[object, ...]:
    """What a job has of its push."""
    return job.topic, job.body, job.ttr_ms, job.tags, job.retry_ms, job.retain_ms, job.priority


class Grouped(Comparison):
    """Most jobs have a group, and limits of the topics' groups come and go."""

    @initialize(jobs=st.lists(JOBS, min_size=3, max_size=5), is_strict=st.booleans())
    def begin(self, jobs: list[Job], is_strict: bool) -> None:
        for topic in TOPIC_NAMES:
            self.limit_groups(topic, 1, is_strict)
        self.push(jobs)

    def as_pushed(self, job: Job) -> Job:
        group = "h" if job.priority == USUAL_PRIORITY and job.tags else "g"
        if job.id == "c" and job.tags:
            return job
        call = job.call if job.id == "b" else None
        return replace(
            job, topic="t", call=call, delay_ms=job.delay_ms // 5, texts={"group": group}
        )

    @rule(wanted=st.integers(2, 4))
    def pop_several(self, wanted: int) -> None:
        """Often, since most jobs are in one topic."""
        self.pop([*TOPIC_NAMES], wanted)

    @rule(topic=TOPICS, most=st.sampled_from([None, 1, 2]), is_strict=st.booleans())
    def limit_groups(self, topic: str, most: int | None, is_strict: bool) -> None:
        changes = {"group_concurrency": most, "group_order": is_strict}
        self.do(self.bucket.store.limit(0, topic, changes))
        self.model.group_limits.pop(topic, None)
        if most or is_strict:
            self.model.pushed = {}
        self.model.strict.discard(topic)
        if most:
            self.model.group_limits[topic] = most
        if is_strict:
            self.model.strict.add(topic)


class Bounded(Grouped):
    """Topics may have a job or two; those beyond are refused, or others give way, of groups or not."""

    @initialize(
        jobs=st.lists(JOBS, min_size=3, max_size=5), are_grouped=st.booleans(), drops=st.booleans()
    )
    def begin(self, jobs: list[Job], are_grouped: bool, drops: bool) -> None:
        self.are_grouped = are_grouped
        for topic in TOPIC_NAMES:
            self.limit_jobs(topic, 2, drops)
        self.push(jobs)

    def as_pushed(self, job: Job) -> Job:
        """Most are in one topic and ready, where one must give way."""
        grouped = super().as_pushed(job)
        return grouped if self.are_grouped else replace(grouped, texts={})

    @rule(jobs=st.lists(JOBS, min_size=1, max_size=3))
    def push(self, jobs: list[Job]) -> None:
        if not self.model.dropping:
            return super().push(jobs)
        for job in map(self.as_pushed, jobs):
            self._forget()
            codes = self.do(self.bucket.push(job))
            gone = {i for i in {*self.model.jobs} - {job.id} if self._is_gone(i)}
            assert codes == [self.model.push(job, gone)]
        return None

    def _is_gone(self, job_id: str) -> bool:
        return self.do(self.bucket.state(job_id)) in {None, "dropped"}

    @rule(topic=TOPICS, most=st.sampled_from([None, 1, 2]), drops=st.booleans())
    def limit_jobs(self, topic: str, most: int | None, drops: bool) -> None:
        drops = drops and most is not None
        changes = {"max_jobs": most, "when_full": "drop_oldest" if drops else None}
        self.do(self.bucket.store.limit(0, topic, changes))
        self.model.most_jobs.pop(topic, None)
        self.model.dropping.discard(topic)
        if most:
            self.model.most_jobs[topic] = most
        if drops:
            self.model.dropping.add(topic)


@pytest.mark.parametrize("kind", [Comparison, Grouped, Bounded])
@pytest.mark.parametrize(
    "place",
    [
        pytest.param(
            place, id="-".join(place), marks=() if place in EXAMPLES else pytest.mark.seldom
        )
        for place in product(BACK_ENDS, SCHEDULERS)
    ],
)
def test_any_sequence_of_verbs_does_what_the_model_says(
    request: pytest.FixtureRequest, place: tuple[str, str], kind: type[Comparison]
) -> None:
    back_end, scheduler = place
    server = request.getfixturevalue(f"{back_end}_server")
    database = server.new_database()
    remembers = back_end != "redis_without_functions"
    made = partial(kind, lambda: connect(server, database), scheduler, remembers=remembers)
    machine = cast("type[Comparison]", made)
    examples = EXAMPLES.get(place, RARE_EXAMPLES)
    run_state_machine_as_test(
        machine, settings=settings(SETTINGS, max_examples=examples * (40 if LONG else 1))
    )
