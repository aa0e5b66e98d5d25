"""Several processes, several buckets: the same for clients, except for the order, which only one bucket promises."""

import asyncio
from collections import Counter

import pytest

from tests.processes import Processes, StoreServer
from tests.waiting import until

from .conftest import at_home, opened
from .wire import Wire

CONNECTIONS = 12
JOBS = 30  # of each


@pytest.mark.parametrize(
    "settings",
    [{"workers": 2}, {"bucket_size": 4, "scheduler": "wheel"}],
    ids=["workers", "buckets"],
)
async def test_each_job_has_a_number_of_its_own_and_goes_to_one_worker(
    processes: Processes, valkey_server: StoreServer, tube: str, settings: dict[str, object]
) -> None:
    server, port = opened(processes, valkey_server, **settings)
    started = int(str(settings.get("workers", 1)))
    await until(lambda: server.logged().count("serving on") == started)

    async def produce() -> list[int]:
        async with Wire.opened(port) as wire:
            await at_home(wire, tube)
            return [await wire.put(b"x", n) for n in range(JOBS)]

    taken = Counter[int]()

    async def consume() -> None:
        async with Wire.opened(port) as wire:
            await at_home(wire, tube)
            while taken.total() < CONNECTIONS * JOBS:
                answer = await wire.ask(b"reserve-with-timeout 1")
                if answer != b"TIMED_OUT\r\n":
                    number = int(answer.split()[1])
                    assert await wire.ask(b"delete %d" % number) == b"DELETED\r\n"
                    taken[number] += 1
            assert await wire.ask(b"reserve-with-timeout 0") == b"TIMED_OUT\r\n"

    async with asyncio.timeout(180), asyncio.TaskGroup() as group:
        producing = [group.create_task(produce()) for _ in range(CONNECTIONS)]
        for _ in range(CONNECTIONS):
            group.create_task(consume())
    put = Counter(number for numbers in producing for number in numbers.result())
    assert set(put.values()) == {1}
    assert taken == put
    async with Wire.opened(port) as wire:
        await at_home(wire, tube)
        for n in (9, 3, 6):
            await wire.put(b"%d" % n, n, 1000)
        assert await wire.ask(b"kick 10") == b"KICKED 3\r\n"
        assert (await wire.ask(b"peek-ready")).endswith(b"\r\n3\r\n")
        stats = await wire.stats(b"stats-tube " + tube.encode())
        assert (stats["current-jobs-ready"], stats["current-jobs-urgent"]) == ("3", "3")
        for _ in range(3):
            number, _ = await wire.reserve()
            assert await wire.ask(b"bury %d 1" % number) == b"BURIED\r\n"
        assert (await wire.ask(b"peek-buried")).startswith(b"FOUND")
    assert "Traceback" not in server.logged()
    server.close()
