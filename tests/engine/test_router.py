"""Requests for several buckets."""

from typing import Final

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Code, Unavailable
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.connect import connect
from delayqueue.store.health import AILMENTS_BY_CLASS
from delayqueue.store.store import Store
from delayqueue.store.verbs import GET, PUSH
from tests.engine.moving import Installation
from tests.processes import LOOPBACK, Processes
from tests.store.between import before_send, intercept
from tests.store.bucket import job

MIB: Final = 1 << 20
NAMES: Final = [f"job-{n:03}" for n in range(60)]


async def test_if_no_bucket_answers_a_request_for_several_fails(ours: Installation) -> None:
    store = ours.server()

    intercept(store, lambda _bucket, call, _sends: call.end(Unavailable()))
    with pytest.raises(Unavailable):
        await store.run(PUSH, [job(name) for name in NAMES], EVERYWHERE)


async def test_what_was_done_before_a_change_is_told(ours: Installation) -> None:
    """A call has got to some jobs of a bucket; those that are left are lost with the change."""
    store = ours.server()
    before_send(store, 3, ours.rebalance)
    jobs = [job(name, body="x" * MIB, if_exists="fail") for name in NAMES[:12]]
    pushed = await store.run(PUSH, jobs, EVERYWHERE)
    assert {each.code for each in pushed} == {Code.OK, Code.UNAVAILABLE}
    there = await ours.server().run(GET, NAMES[:12], EVERYWHERE)
    assert [view is not None for view in there] == [each.code == Code.OK for each in pushed]


async def test_a_bucket_that_went_while_the_store_was_away_is_no_trouble_afterwards(
    processes: Processes,
) -> None:
    server = processes.redis()
    async with connect(Config(redis_host=Address(LOOPBACK, server.port)), None) as servers:
        store = Store(servers, Buckets("dq_bucket_%d", "dq_queue_%s", Layout(2)))
        server.kill()
        for bucket in store.in_force:
            with pytest.raises(Unavailable):
                await bucket.tick()
        assert (await store.unreachable_buckets(), store.ailment()) == (
            {0, 1},
            AILMENTS_BY_CLASS[RedisConnectionError],
        )
        server.start()
        store.buckets.adopt(Layout(1))
        await store.bucket(0).tick()
        assert (await store.unreachable_buckets(), store.ailment()) == (set(), None)
