"""The presets call as often, and when, as those do whose names they have."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import pytest

from delayqueue import Worker, testing

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
