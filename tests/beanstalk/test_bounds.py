"""What a client can make large is bounded, and other clients do not suffer."""

import asyncio
import time
from typing import Final

from bench.processes import Memory
from faults.bed import MIB

from .conftest import Served
from .wire import Wire

WATCHED: Final = 20_000  # 4 MB in an answer


async def test_long_answers_that_nobody_reads_are_made_one_at_a_time(served: Served) -> None:
    async with Wire.opened(served.port) as wire, Wire.opened(served.port) as other:
        await wire.send(b"".join(b"watch %0199d\r\n" % n for n in range(WATCHED)))
        for _ in range(WATCHED):
            await wire.answer()
        memory = Memory(served.server.pid)
        wire.read_nothing()
        await wire.send(b"list-tubes-watched\r\n" * 400)
        for _ in range(20):
            assert await other.ask(b"list-tube-used") == b"USING default\r\n"
            await asyncio.sleep(0.02)
        assert memory.growth() < 60 * MIB


async def test_a_flood_of_commands_lets_others_have_their_turn(served: Served) -> None:
    async def flood(wire: Wire) -> None:
        while True:
            await wire.send(b"use a\r\nwatch b\r\nignore b\r\n" * 5000)
            for _ in range(15_000):
                await wire.answer()

    async with Wire.opened(served.port) as wire, Wire.opened(served.port) as other:
        flooding = asyncio.create_task(flood(wire))
        waits_s = []
        for _ in range(50):
            began_s = time.monotonic()
            await other.ask(b"list-tube-used")
            waits_s.append(time.monotonic() - began_s)
        flooding.cancel()
    assert sorted(waits_s)[25] < 1


async def test_what_waits_for_its_turn_is_bounded(served: Served, wire: Wire, tube: str) -> None:
    """A client that waits for a job can send more, but the server stops reading at a limit."""
    async with Wire.opened(served.port) as other:
        await other.ask(b"use " + tube.encode())
        memory = Memory(served.server.pid)
        await wire.send(b"reserve\r\n")
        line = b"use %b\r\n" % (b"x" * 200)
        sending = asyncio.create_task(wire.send(line * 200_000))  # 40 MB
        await asyncio.sleep(0.5)
        assert not sending.done()
        assert memory.growth() < 20 * MIB
        number = await other.put(b"x")
        assert await wire.answer() == b"RESERVED %d 1\r\nx\r\n" % number
        for _ in range(200_000):
            await wire.answer()
        await sending


async def test_a_tube_is_emptied_by_peeking_at_its_first_job_and_deleting_it(wire: Wire) -> None:
    jobs = 250
    await wire.send(b"put 1024 0 60 1\r\nx\r\n" * jobs)
    assert [(await wire.answer())[:8] for _ in range(jobs)] == [b"INSERTED"] * jobs
    for _ in range(jobs):
        number = (await wire.ask(b"peek-ready")).split()[1]
        assert await wire.ask(b"delete " + number) == b"DELETED\r\n"
    assert await wire.ask(b"peek-ready") == b"NOT_FOUND\r\n"
