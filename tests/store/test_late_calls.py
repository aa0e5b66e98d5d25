"""A call whose time is over changes nothing; a call that is on time is done, whatever the store's clock shows."""

import asyncio
import re
from contextlib import suppress
from typing import Final

import pytest
from redis.exceptions import ResponseError

from delayqueue.config.config import Config
from delayqueue.errors import Code, Unavailable
from delayqueue.store import server as pipeline
from delayqueue.store.durability import Durability
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from tests.store.bucket import HOUR_MS, Bucket, job, scripts
from tests.store.contents import snapshot
from tests.store.turning import DAY_MS, Clock, coarse

OVER_S: Final = -1.0  # the time that a call has


@pytest.mark.parametrize("durability", ["store", "replica"])
async def test_a_call_whose_time_is_over_is_refused_and_changes_nothing(
    bucket: Bucket, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "OVERTAKEN_S", 60)  # so that the server is asked, and refuses
    for state in ("delayed", "ready", "reserved", "buried"):
        await bucket.put_in(state, state, topic=state)
    before = await snapshot(bucket.redis)
    config = Config(durability=durability, redis_replicate="all", redis_replica_timeout_ms=1)
    built = scripts(bucket.wheel_slots)
    late = Store(
        Servers.one(bucket.redis, answer_s=OVER_S),
        bucket.store.buckets,
        built,
        durability=Durability.of(config),
    )
    with suppress(ResponseError):  # it has no functions, or has them already
        await bucket.redis.function_load(built.library.source)
    for verb in built.verbs:
        await bucket.redis.script_load(built.script(verb).source)
        await refused(late, verb)
    assert (await snapshot(bucket.redis)).values == before.values


async def refused(store: Store, verb: str, *args: str) -> None:
    with pytest.raises(Unavailable) as refusal:
        await store.bucket(0).run(verb, args)
    assert re.match(r"LATE \d{13} is the time here", str(refusal.value.__cause__))


async def test_calls_on_time_are_done_though_the_clock_is_unknown(bucket: Bucket) -> None:
    calls = [bucket.push(job(str(n))) for n in range(40)]
    assert await asyncio.gather(*calls) == [[Code.OK]] * 40


@coarse
@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS, DAY_MS, -DAY_MS])
async def test_a_step_of_the_clock_refuses_nothing_that_is_on_time(
    wheel: Bucket, clock: Clock, step_ms: int
) -> None:
    await wheel.push(job("before"))
    clock.pass_ms(step_ms)
    assert await wheel.push(job("after")) == [Code.OK]
    assert await wheel.pop_ids() == ["before", "after"]
    assert await wheel.finish("before", "after") == [Code.OK, Code.OK]


@coarse
async def test_after_a_step_back_a_late_call_is_refused_as_before(
    wheel: Bucket, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step_ms in (0, -HOUR_MS):
        clock.pass_ms(step_ms)
        await wheel.delete("me")
        clock.pass_ms(1)
        with monkeypatch.context() as late:
            late.setattr(wheel.store.bucket(0), "answer_s", -60)
            await refused(wheel.store, "delete", "me")
