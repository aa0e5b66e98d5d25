"""While jobs move between buckets, any sequence of verbs does what it does in one bucket, even if movers die."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from redis.asyncio import Redis

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.engine.rebalance import Rebalance
from delayqueue.engine.take_service import TakeService
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.buckets import Buckets
from delayqueue.store.bucket.transfers import Transfers
from delayqueue.store.servers.shards import Shards
from delayqueue.store.store import Store
from delayqueue.store.topics import Topics
from delayqueue.store.types import Change, Demand, Popped, Range, Ticked, TopicCounts
from delayqueue.store.verbs import Verb
from tests.store.bucket import SCHEDULERS, WHEEL_SLOTS, VerbStore
from tests.store.conftest import connect
from tests.store.invariants import violations
from tests.store.model import LIVE
from tests.store.test_model import (
    JOB_IDS,
    LONG,
    SETTINGS,
    TOPICS,
    Comparison,
    stepped,
)

QUIET: Final = Change([])
SIZES: Final = (1, 2, 3, 5)  # in which the ids of the model have different buckets
BY_ID: Final = (
    *(
        "finish",
        "delete",
        "bury",
        "release",
        "requeue",
        "touch",
        "reschedule",
        "kick",
        "get",
        "reserve",
    ),
)


class Everywhere(VerbStore):
    """A store of many buckets as if they were one: it routes and fetches as a server does."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self.whole = Store(store)
        self.migration = self.whole.migration

    async def run_verb(
        self, verb: Verb[Any, Any], _bucket: int, items: Sequence[Any], scope: Scope
    ) -> Any:
        return await self.whole.run(verb, items, scope), QUIET

    async def pop(self, _bucket: int, demands: Sequence[Demand]) -> Popped:
        [(topics, wanted, _)] = demands
        await self.migration.forward()
        found: list[Any] = []
        for topic in topics:
            for bucket in self._each():
                demand = Demand((topic,), wanted - len(found))
                found += (await self._store.pop(bucket, [demand])).jobs[0] if demand.wanted else []
        return Popped([found], 1, QUIET)

    async def tick(self, _bucket: int, _limit: int = 0) -> Ticked:
        await self.migration.forward()
        ticks = [await self._store.tick(bucket) for bucket in self._each()]
        more = any(ticked.change.next_due_ms == 0 for ticked in ticks)
        return Ticked(Change([], 0 if more else None), 0, 0, 0, 0)

    async def topics(self, _bucket: int, topics: Sequence[str]) -> list[TopicCounts]:
        await self.migration.forward()
        found = [await self._store.topics(bucket, topics) for bucket in self._each()]
        return [_sum(counts) for counts in zip(*found, strict=True)]

    def _each(self) -> range:
        return range(self._store.buckets.count)


def _sum(found: Sequence[TopicCounts]) -> TopicCounts:
    sums: dict[str, Any] = {state: sum(getattr(each, state) for each in found) for state in LIVE}
    return found[0]._replace(**sums)


class Moving(Comparison):
    """Two servers, which learn of the moves from the scripts only, and a mover of jobs that often dies."""

    def __init__(self, open_redis: Callable[[], Redis], scheduler: str) -> None:
        super().__init__(open_redis, scheduler)
        self._slots = WHEEL_SLOTS if scheduler == "wheel" else 0
        self._scheduler = scheduler
        self._servers = [self._new_store() for _ in range(2)]
        self._mover = self._new_store()
        self._transfers: list[tuple[int, int, Any]] = []  # all that ever existed
        self.model.is_one_bucket = False
        self.another_server_works(0)

    def _new_store(self) -> BucketStore:
        buckets = Buckets("dq_bucket_%d", "dq_queue_%s")
        scripts = stepped(self._scheduler, self._slots)
        return BucketStore(Shards.one(self._redis), buckets, scripts)

    @rule(number=st.integers(0, 1))
    def another_server_works(self, number: int) -> None:
        store = self._servers[number]
        self.everywhere = Everywhere(store)
        self.bucket = replace(self.bucket, store=self.everywhere)
        whole = self.everywhere.whole
        self.topics, self.taking = Topics(whole, EVERYWHERE), TakeService(whole)

    @precondition(lambda self: not self._mover.buckets.layout.moving)
    @rule(size=st.sampled_from(SIZES))
    def a_move_begins(self, size: int) -> None:
        self.do(Rebalance(self._mover, size).begin())

    @rule(ids=st.lists(st.sampled_from(JOB_IDS), min_size=1, max_size=3))
    def jobs_are_sent_off(self, ids: list[str]) -> None:
        """By a mover that dies then."""
        buckets = self._mover.buckets
        for source in range(buckets.count):
            mine = [job_id for job_id in ids if buckets.of(job_id) == buckets.of(ids[0]) != source]
            if mine:
                target = buckets.of(ids[0])
                transfer = self.do(Transfers(self._mover).export(source, target, mine))
                self._transfers += [(source, target, transfer)] if transfer.number else []

    @precondition(lambda self: self._transfers)
    @rule(at=st.integers(0), confirms=st.booleans())
    def a_parcel_arrives(self, at: int, confirms: bool) -> None:
        """Maybe again, and long after; the mover may die then."""
        source, target, transfer = self._transfers[-1 - at % len(self._transfers)]
        self.do(Transfers(self._mover).import_(source, target, transfer))
        if confirms:
            self.do(Transfers(self._mover).confirm(source, target, transfer))

    @precondition(lambda self: self._mover.buckets.layout.moving)
    @rule()
    def the_move_ends(self) -> None:
        self.do(Rebalance(self._mover, self._mover.buckets.layout.size).run())
        assert not self._mover.buckets.layout.moving

    @rule(topic=TOPICS, first=st.integers(-5, 20), length=st.integers(0, 20))
    def take(self, topic: str, first: int, length: int) -> None:
        self.do(self.everywhere.migration.forward())
        due = Range(self.model.now_ms + first, self.model.now_ms + first + length)
        taken = self.do(self.taking.take(topic, due, len(JOB_IDS)))
        assert [job.id for job in taken] == self.model.take(topic, *due, len(JOB_IDS))

    def teardown(self) -> None:
        self.do(Rebalance(self._mover, self._mover.buckets.layout.size).run())
        self.do(self._redis.delete("clock of the model"))
        buckets = self._mover.buckets
        found: list[str] = []
        for number, keys in enumerate(buckets.keys):
            found += self.do(violations(self._redis, keys, self._slots, among=buckets.keys))
            ids = self.do(self._redis.hkeys(f"{keys.tag}:job"))
            found += [
                f"{i!r} is astray in {number}" for i in ids if buckets.of(i.decode()) != number
            ]
        self.do(self._redis.aclose())
        self._loop.close()
        assert found == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_moves_are_seen_by_nobody(request: pytest.FixtureRequest, scheduler: str) -> None:
    server = request.getfixturevalue("valkey_server")
    database = server.new_database()
    machine = cast("type[Moving]", partial(Moving, lambda: connect(server, database), scheduler))
    run_state_machine_as_test(
        machine, settings=settings(SETTINGS, max_examples=4000 if LONG else 20)
    )
