"""A call whose time is over changes nothing; a call that is on time is done, whatever the store's clock shows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest
from redis.exceptions import ResponseError

from delayqueue.errors import Code
from delayqueue.store.servers.functions import Functions, Terms
from delayqueue.store.servers.pipeline import Wait
from tests.store.bucket import HOUR_MS, Bucket, job, scripts
from tests.store.contents import snapshot
from tests.store.turning import DAY_MS, coarse

if TYPE_CHECKING:
    from tests.store.turning import Clock

GENERATION: Final = 0
NO_ARGUMENTS: Final = ()  # a verb that looked at its arguments would fail in another way


@pytest.mark.parametrize("wait", [None, Wait(0, 1)], ids=["", "waiting for replicas"])
async def test_a_call_whose_time_is_over_is_refused_and_changes_nothing(
    bucket: Bucket, wait: Wait | None
) -> None:
    for state in ("delayed", "ready", "reserved", "buried"):
        await bucket.put_in(state, state, topic=state)
    before = await snapshot(bucket.redis)
    built = scripts(bucket.wheel_slots)
    functions, keys = Functions(built), [bucket.keys.tag, bucket.keys.queue_name]
    late = Terms(GENERATION, asyncio.get_running_loop().time() - 0.001, "me")
    for verb in built.verbs:
        with pytest.raises(ResponseError, match=r"LATE \d{13} is the time here"):
            await functions.call(verb, keys, NO_ARGUMENTS, late, bucket.redis, wait)
    assert (await snapshot(bucket.redis)).values == before.values


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
    wheel: Bucket, clock: Clock
) -> None:
    functions, keys = Functions(scripts(wheel.wheel_slots)), [wheel.keys.tag, wheel.keys.queue_name]
    loop = asyncio.get_running_loop()
    for step_ms in (0, -HOUR_MS):
        clock.pass_ms(step_ms)
        on_time = Terms(GENERATION, loop.time() + 60, "me")
        late = Terms(GENERATION, loop.time() - 1, "me")
        await functions.call("delete", keys, [], on_time, wheel.redis, None)
        clock.pass_ms(1)
        with pytest.raises(ResponseError, match="LATE"):
            await functions.call("delete", keys, [], late, wheel.redis, None)
