"""Delays between attempts: the presets are those whose names they have, others grow."""

import math
from itertools import pairwise
from typing import Any, Final

import pytest

from delayqueue import Worker, testing
from delayqueue.domain.retry import MAX_DELAY_MS, MAX_STEPS, duration_ms, explicit, exponential
from delayqueue.errors import BadValue

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


def test_no_jitter_makes_a_delay_longer_than_the_store_holds() -> None:
    longest: dict[str, Any] = {"steps": 1, "base_ms": MAX_DELAY_MS, "cap_ms": MAX_DELAY_MS}
    assert exponential(**longest, factor=1, jitter=0.5, random=lambda: 0.9) == (MAX_DELAY_MS,)


def test_a_schedule_has_so_many_steps_at_most() -> None:
    plain: dict[str, Any] = {"base_ms": 1, "factor": 1, "cap_ms": 1, "jitter": 0}
    for steps in (1, MAX_STEPS):
        assert exponential(**plain, steps=steps, random=lambda: 0.0) == (1,) * steps
        assert explicit([0.001] * steps) == (1,) * steps
    with pytest.raises(BadValue, match="must be 1 to 64"):
        exponential(**plain, steps=MAX_STEPS + 1, random=lambda: 0.0)
    with pytest.raises(BadValue, match="must be at most 64"):
        explicit([1] * (MAX_STEPS + 1))


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        (0, 0),
        (1.5, 1500),
        ("500ms", 500),
        (" 15s ", 15_000),
        ("2m", 120_000),
        ("1.5h", 5_400_000),
        ("1d", 86_400_000),
        (2**31, MAX_DELAY_MS),
    ],
)
def test_a_length_of_time(written: float | str, ms: int) -> None:
    assert duration_ms(written) == ms


@pytest.mark.parametrize(
    "written", ["", "15", "s", "1m30s", "1 m", "-1s", "1e3s", ".5h", -1, math.nan, 2**31 + 1]
)
def test_what_is_no_length_of_time(written: float | str) -> None:
    with pytest.raises(BadValue, match="must be seconds or a text like"):
        duration_ms(written)
