"""The sizing model grows with what it models: with the jobs, and with nothing else."""

from dataclasses import replace

import pytest

from bench.model import GIB, Costs, Need, plan

NEED = Need()
COSTS = Costs()


def test_a_small_installation_is_one_of_each() -> None:
    found = plan(replace(NEED, delayed=1000, due_per_s=100), COSTS)
    assert (found.masters, found.servers) == (1, 1)


@pytest.mark.parametrize(
    ("more", "grows", "stays"),
    [
        ({"delayed": 10 * NEED.delayed}, "masters_for_memory", "masters_for_time"),
        ({"due_per_s": 10 * NEED.due_per_s}, "masters_for_time", "masters_for_memory"),
        ({"due_per_s": 10 * NEED.due_per_s}, "servers", "masters_for_memory"),
    ],
    ids=["jobs that wait", "jobs that fall due", "servers"],
)
def test_ten_times_as_much_takes_ten_times_as_many(
    more: dict[str, int], grows: str, stays: str
) -> None:
    before, after = plan(NEED, COSTS), plan(replace(NEED, **more), COSTS)
    assert getattr(after, grows) == pytest.approx(10 * getattr(before, grows), rel=0.1)
    assert getattr(after, stays) == getattr(before, stays)


def test_the_masters_have_the_memory_and_the_time_that_is_used() -> None:
    found = plan(NEED, COSTS)
    assert found.masters * NEED.master_bytes >= NEED.delayed * (COSTS.job_bytes + 160)
    store_s = NEED.due_per_s * (1 + 8 + 9 + 9) / 1e6
    assert found.masters * NEED.busy >= store_s
    assert found.memory_bytes > 2 * NEED.delayed * COSTS.job_bytes
    assert found.memory_bytes < 4096 * GIB


def test_requests_with_one_job_take_more_servers_than_arrays() -> None:
    assert plan(replace(NEED, array=1), COSTS).servers > 2 * plan(NEED, COSTS).servers
