"""Any sequence of verbs does what it does in one bucket, though their number changes, and who changes it dies."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from redis.asyncio import Redis

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.engine.rebalance import Rebalance
from delayqueue.engine.take_service import TakeService
from delayqueue.store.bucket import Bucket
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.call import ScriptCall
from delayqueue.store.census import TopicView
from delayqueue.store.layout import decoded, parse
from delayqueue.store.servers import Servers
from delayqueue.store.topics import Topics
from delayqueue.store.types import Change, Demand, Popped, Range, Ticked
from delayqueue.store.verbs import Verb
from tests.engine.moving import LAYOUT
from tests.store.between import Send, intercept
from tests.store.bucket import SCHEDULERS, WHEEL_SLOTS, VerbStore
from tests.store.conftest import connect
from tests.store.invariants import violations
from tests.store.model import LIVE
from tests.store.test_model import (
    CLOCK,
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


class Died(Exception):
    """Who changes the number of buckets is no more."""


class Everywhere(VerbStore):
    """A store of many buckets as if they were one: it routes as a server does."""

    def __init__(self, store: VerbStore) -> None:
        self.whole = store

    async def run_verb(
        self,
        verb: Verb[Any, Any],
        bucket: int,  # noqa: ARG002
        items: Sequence[Any],
        scope: Scope = EVERYWHERE,
    ) -> Any:
        return await self.whole.run(verb, items, scope), QUIET

    async def pop(self, _bucket: int, demands: Sequence[Demand]) -> Popped:
        [(topics, wanted, _)] = demands
        found: list[Any] = []
        for topic in topics:
            for bucket in self._each():
                demand = Demand((topic,), wanted - len(found))
                found += (await self.whole.pop(bucket, [demand])).jobs[0] if demand.wanted else []
        return Popped([found], 1, QUIET)

    async def tick(self, _bucket: int, _limit: int = 0) -> Ticked:
        ticks = [await self.whole.tick(bucket) for bucket in self._each()]
        more = any(ticked.change.next_due_ms == 0 for ticked in ticks)
        return Ticked(Change([], 0 if more else None), 0, 0, 0, 0)

    async def topics(self, _bucket: int, topics: Sequence[str]) -> list[TopicView]:
        found = [await self.whole.topics(bucket, topics) for bucket in self._each()]
        return [_sum(counts) for counts in zip(*found, strict=True)]

    def _each(self) -> range:
        return range(self.whole.buckets.count)


def _sum(found: Sequence[TopicView]) -> TopicView:
    sums: dict[str, Any] = {state: sum(getattr(each, state) for each in found) for state in LIVE}
    return replace(found[0], **sums)


class Moving(Comparison):
    """Two servers, and a process that changes the number of buckets between their calls, and often dies."""

    def __init__(self, open_redis: Callable[[], Redis], scheduler: str) -> None:
        super().__init__(open_redis, scheduler)
        self._slots = WHEEL_SLOTS if scheduler == "wheel" else 0
        self._scheduler = scheduler
        self._layout = Layout()
        self.model.is_one_bucket = False
        self._start_servers()

    def _new_store(self) -> VerbStore:
        buckets = Buckets("dq_bucket_%d", "dq_queue_%s", self._layout)
        scripts = stepped(self._scheduler, self._slots)
        return VerbStore(Servers.one(self._redis), buckets, scripts)

    def _start_servers(self) -> None:
        self._servers = [self._new_store() for _ in range(2)]
        self.another_server_works(0)

    @rule(number=st.integers(0, 1))
    def another_server_works(self, number: int) -> None:
        store = self._servers[number]
        self.everywhere = Everywhere(store)
        self.bucket = replace(self.bucket, store=self.everywhere)
        whole = self.everywhere.whole
        self.topics, self.taking = Topics(whole, EVERYWHERE), TakeService(whole)

    @rule(size=st.sampled_from(SIZES), deaths=st.lists(st.integers(1, 60), max_size=3))
    def the_number_of_buckets_changes(self, size: int, deaths: list[int]) -> None:
        """Who changes it dies after so many calls; then the next one goes on."""
        for calls in deaths:
            with suppress(Died):
                self.do(self._change(size, calls))
        self.do(self._change(size, 10**6))
        self._layout = parse(decoded(self.do(self._redis.hgetall(LAYOUT))), 0).layout
        assert self._layout.size == size
        self._start_servers()
        self.do(
            self.bucket.tick()
        )  # what was moved is looked at: until then a push queues behind it

    async def _change(self, size: int, calls: int) -> None:
        store = self._new_store()
        left = iter(range(calls))

        def mortal(_: Bucket, call: ScriptCall, sends: Send) -> None:
            if next(left, None) is None:
                raise Died
            sends(call)

        store.buckets.know(max(SIZES))
        intercept(store, mortal)
        await Rebalance(store, size).run()

    @rule(topic=TOPICS, first=st.integers(-5, 20), length=st.integers(0, 20))
    def take(self, topic: str, first: int, length: int) -> None:
        due = Range(self.model.now_ms + first, self.model.now_ms + first + length)
        taken = self.do(self.taking.take(topic, due, len(JOB_IDS)))
        assert [job.id for job in taken] == self.model.take(topic, *due, len(JOB_IDS))

    def teardown(self) -> None:
        self.do(self._redis.delete(CLOCK))
        buckets = self._new_store().buckets
        buckets.know(max(SIZES))
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
