"""heartbeat, servers: which server processes live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.store.turning import DAY_MS, coarse

if TYPE_CHECKING:
    from tests.store.bucket import Bucket
    from tests.store.turning import Clock

SILENCE_MS: Final = 15_000


@coarse
@pytest.mark.parametrize("step_ms", [SILENCE_MS + 1, 400 * DAY_MS, -400 * DAY_MS])
async def test_one_that_fell_silent_is_dropped_also_when_the_clock_was_put_back(
    wheel: Bucket, clock: Clock, step_ms: int
) -> None:
    await wheel.store.heartbeat("gone", "{}", SILENCE_MS)
    clock.pass_ms(step_ms)
    assert await wheel.store.servers(SILENCE_MS) == []
    await wheel.store.heartbeat("here", "{}", SILENCE_MS)
    clock.pass_ms(-step_ms)
    await wheel.store.heartbeat("there", "{}", SILENCE_MS)
    assert [name for name, _, _ in await wheel.store.servers(SILENCE_MS)] == ["there"]
