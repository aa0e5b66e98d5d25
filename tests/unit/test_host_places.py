"""How many jobs call a host, or wait for it, and how long the others are delayed."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from delayqueue.delivery.host_places import (
    FIRST_S,
    LONGEST_S,
    NEAR_S,
    RETURNS_A_S,
    HostPlaces,
)

LIMIT: Final = 2


@pytest.fixture
async def host() -> HostPlaces:
    return HostPlaces(LIMIT)


@pytest.fixture
async def calls(host: HostPlaces) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Calls that last until they are cancelled."""
    begun: list[asyncio.Task[None]] = []
    yield begun
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)
    assert host.users == 0


async def hold(host: HostPlaces) -> None:
    async with host.place():
        await asyncio.Event().wait()


async def begin(host: HostPlaces, calls: list[asyncio.Task[None]], count: int) -> None:
    calls += [asyncio.create_task(hold(host)) for _ in range(count)]
    await asyncio.sleep(0)


async def test_as_many_wait_as_call(host: HostPlaces, calls: list[asyncio.Task[None]]) -> None:
    await begin(host, calls, LIMIT)
    assert (host.is_free, host.is_full) == (False, False)
    await begin(host, calls, LIMIT)
    assert host.is_full
    calls[0].cancel()
    await asyncio.gather(calls[0], return_exceptions=True)
    assert (host.is_full, host.is_free) == (False, False)


async def test_each_that_is_sent_away_comes_behind_the_one_before(host: HostPlaces) -> None:
    began_s = time.monotonic()
    delays_ms = [host.next_delay_ms() for _ in range(100)]
    passed_ms = 1000 * (time.monotonic() - began_s)
    expected_ms = 1000 * FIRST_S / LIMIT
    for number, delay_ms in enumerate(delays_ms, start=1):
        least_ms = 0.85 * number * expected_ms - passed_ms
        assert least_ms <= delay_ms <= 1.15 * number * expected_ms + passed_ms


async def test_no_delay_is_longer_than_an_hour(host: HostPlaces) -> None:
    delays_ms = [host.next_delay_ms() for _ in range(400_000)]
    assert 1000 * LONGEST_S < max(delays_ms) <= 1500 * LONGEST_S
    last_ms = delays_ms[-1000:]
    assert min(last_ms) >= 400 * LONGEST_S
    assert max(last_ms) - min(last_ms) >= 800 * LONGEST_S  # so that they do not come together


@pytest.mark.parametrize("full_hosts", [1, 50])
async def test_jobs_of_hosts_that_hang_come_back_at_a_rate_however_many_they_are(
    host: HostPlaces, full_hosts: int
) -> None:
    """With the delays of half a minute that they had, a hundred thousand kept the store busy."""
    host._took_s = 30.0 * LIMIT
    jobs = 100_000 // full_hosts
    delays_ms = [host.next_delay_ms(full_hosts) for _ in range(jobs)]
    assert min(delays_ms) <= 1500 * NEAR_S  # the first tries the host soon
    mean_s = sum(delays_ms) / jobs / 1000
    assert full_hosts * jobs / mean_s <= 2.1 * RETURNS_A_S


async def test_a_fast_host_gets_its_jobs_as_it_takes_them(host: HostPlaces) -> None:
    host._took_s = 0.001
    delays_ms = [host.next_delay_ms(50) for _ in range(100_000)]
    assert max(delays_ms) <= 1500 * 100_000 * 0.001 / LIMIT + 1000


async def test_a_call_that_hangs_is_taken_for_the_usual_one(
    host: HostPlaces, calls: list[asyncio.Task[None]]
) -> None:
    await begin(host, calls, 1)
    await asyncio.sleep(3 * FIRST_S)
    assert host.next_delay_ms() >= 0.5 * 1000 * 3 * FIRST_S / LIMIT - 1
