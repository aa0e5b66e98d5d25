"""The lateness that /stats tells: not the edges of a histogram."""

from typing import Final

import pytest

from delayqueue.engine.heartbeat import quantile
from delayqueue.metrics import LATENESS_S, Histogram

WORST_S: Final = 1361.0  # 22m 41s, in the bucket from 5 minutes to an hour


def told(late_s: list[float], share: float) -> float | None:
    histogram = Histogram(LATENESS_S)
    for each in late_s:
        histogram.observe(each)
    return quantile(histogram.counts, share, histogram.take_worst_s())


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_no_lateness_is_above_the_worst(share: float) -> None:
    assert told([WORST_S] * 100, share) == WORST_S


def test_within_a_bucket_jobs_are_taken_as_spread_evenly() -> None:
    assert told([0.006] * 50 + [0.1], 0.5) == pytest.approx(0.00755, abs=1e-4)


def test_above_the_last_edge_jobs_are_spread_up_to_the_worst() -> None:
    assert told([7200.0] * 4, 0.5) == (LATENESS_S[-1] + 7200) / 2


def test_without_deliveries_nothing_is_told() -> None:
    assert told([], 0.99) is None


def test_the_worst_is_that_since_it_was_taken() -> None:
    histogram = Histogram(LATENESS_S)
    histogram.observe(5.0)
    assert (histogram.take_worst_s(), histogram.take_worst_s()) == (5.0, 0.0)
