"""Delays between attempts: the presets are those whose names they have, others grow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import pytest

from delayqueue import Worker, testing
from delayqueue.domain.retry import exponential

# as their pages on payment notifications say; the first call is at once
PUBLISHED: Final = {
    "alipay": "2m 10m 10m 1h 2h 6h 15h",
    "wechat": "15s 15s 30s 3m 10m 20m 30m 30m 30m 60m 3h 3h 3h 6h 6h",
}
UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}


@pytest.mark.parametrize("preset", PUBLISHED)
def test_a_preset_makes_the_calls_of_its_name(preset: str) -> None:
    pauses_s = [int(pause[:-1]) * UNITS_S[pause[-1]] for pause in PUBLISHED[preset].split()]
    worker = Worker()
    times_s: list[float] = []

    @worker.on("t")
    def fails(_: Any) -> None:
        times_s.append(queue.now_s)
        raise LookupError

    queue = testing.Queue(worker)
    queue.push("t", {}, id="j", retry=preset)
    queue.advance("2d")
    assert [round(later - earlier) for earlier, later in pairwise(times_s)] == pauses_s


@pytest.mark.parametrize(
    ("jitter", "random", "delays_ms"),
    [
        (0, 0.0, (1000, 3000, 9000, 10_000)),
        (0.5, 0.0, (500, 1500, 4500, 5000)),
        (0.5, 0.75, (1250, 3750, 11_250, 12_500)),
    ],
)
def test_delays_grow_by_the_factor_up_to_the_cap(
    jitter: float, random: float, delays_ms: tuple[int, ...]
) -> None:
    found = exponential(
        steps=4, base_ms=1000, factor=3, cap_ms=10_000, jitter=jitter, random=lambda: random
    )
    assert found == delays_ms
