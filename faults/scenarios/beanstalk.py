"""Rows 35 to 39: as 13 to 15, 20 and 22, by clients that speak beanstalkd's protocol. Row 34 is in crashes.py."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from bench.processes import resident_bytes
from faults.bed import MIB, Bed, Figures, assert_whole
from faults.load import Shape
from faults.scenarios.clients import (
    TTR_TOLERANCE_S,
    are_connected,
    collect,
    leave,
    others_p99,
    p99_ms,
    stop,
)
from tests.beanstalk.wire import Wire
from tests.figures import scrape
from tests.processes import LOOPBACK, QueueServer
from tests.waiting import until_async

DAY_S: Final = 86_400
USUAL_PRIORITY: Final = 1024
WAITS_S: Final = 600.0
HALF_BODY: Final = b"." * 30_000
# what they send, and how they continue in the end
SLOW_WAYS: Final = (
    (b"", b"put 1024 0 60 2\r\nhi\r\n"),
    (b"put 1024 0 6", b"0 2\r\nhi\r\n"),
    (b"put 1024 0 60 60000\r\n" + HALF_BODY, HALF_BODY + b"\r\n"),
)


async def reserves_vanish(bed: Bed, *, workers: int, jobs: int) -> Figures:
    """Workers wait in a reserve, or hold a job, and vanish at random moments. Their jobs are ready again at once."""
    store, server = await bed.pair(beanstalk=True)
    async with bed.api(server) as api:
        vanishing = [asyncio.create_task(_vanish(bed, server)) for _ in range(workers)]
        async with _wired(server, bed.topic) as producer:
            for number in range(jobs):
                await producer.put(b"%d" % number, USUAL_PRIORITY, 0, 3600)
        reached = sum(await asyncio.gather(*vanishing))
        at_once, _ = await collect(api, bed.topic, jobs, 0)
    assert at_once == jobs, f"{jobs - at_once} of {jobs} are not there"
    assert reached
    await assert_whole(store)
    return {
        "workers": workers,
        "jobs": jobs,
        "lost": 0,
        "reached a worker": reached,
        "there within 1 s": at_once,
    }


async def _vanish(bed: Bed, server: QueueServer) -> bool:
    """Reserve, and vanish at a random moment, with or without a job. Returns whether one had come."""
    await bed.pause(0, 0.5)
    reader, writer = await asyncio.open_connection(LOOPBACK, server.beanstalk_port)
    writer.write(b"watch %b\r\nreserve\r\n" % bed.topic.encode())
    waits_s = bed.random.choice((0, WAITS_S))
    return await leave(bed, reader, writer, b"WATCHING 2\r\n", waits_s=waits_s)


async def worker_dies(bed: Bed, *, jobs: int) -> Figures:
    """Workers reserve and then are silent: each job is delivered again at its TTR, and counts as an attempt."""
    store, server = await bed.pair(beanstalk=True)
    ttr_s = 2
    # each worker its own tube: near the end of a TTR a worker gets no other job
    tubes = [f"{bed.topic}/{n}" for n in range(jobs)]
    off_s = await asyncio.gather(*(_comes_again(server, tube, ttr_s) for tube in tubes))
    async with bed.api(server) as api:
        samples = await scrape(api)
    timed_out = samples.sum("delayqueue_job_events_total", event="timed_out")
    assert max(off_s) < TTR_TOLERANCE_S
    assert timed_out == jobs
    await assert_whole(store)
    return {"jobs": jobs, "attempts": 2, "furthest from the TTR s": round(max(off_s), 3)}


@asynccontextmanager
async def _wired(server: QueueServer, tube: str) -> AsyncIterator[Wire]:
    """A connection that puts into a tube, and reserves from it."""
    async with Wire.opened(server.beanstalk_port) as wire:
        for verb in (b"use", b"watch"):
            await wire.ask(b"%b %b" % (verb, tube.encode()))
        yield wire


async def _comes_again(server: QueueServer, tube: str, ttr_s: int) -> float:
    """Reserve a job and be silent until the next worker gets it. Returns how far from its TTR that was."""
    async with _wired(server, tube) as wire, _wired(server, tube) as other:
        await wire.put(b"held", USUAL_PRIORITY, 0, ttr_s)
        number, _ = await wire.reserve()
        since_s = time.monotonic()
        again, _ = await other.reserve()
        off_s = abs(time.monotonic() - since_s - ttr_s)
        assert again == number
        stats = await other.stats(b"stats-job %d" % number)
        assert (stats["reserves"], stats["timeouts"]) == ("2", "1")
        assert await other.ask(b"delete %d" % number) == b"DELETED\r\n"
    return off_s


async def late_delete(bed: Bed, *, jobs: int, ttr_s: int) -> Figures:
    """The first holder continues after the redelivery: all its commands are refused, the new holder is undisturbed."""
    store, server = await bed.pair(beanstalk=True)
    tubes = [f"{bed.topic}/{n}" for n in range(jobs)]
    await asyncio.gather(*(_delete_late(server, tube, ttr_s) for tube in tubes))
    async with bed.api(server) as api:
        topics = (await api.call("/topics", {})).ok()
    assert not [topic for topic in topics if topic["ready"] or topic["reserved"]]
    await assert_whole(store)
    return {"jobs": jobs, "late commands refused": 4 * jobs, "came again after the end": 0}


async def _delete_late(server: QueueServer, tube: str, ttr_s: int) -> None:
    async with _wired(server, tube) as wire, _wired(server, tube) as other:
        await wire.put(b"held", USUAL_PRIORITY, 0, ttr_s)
        number, _ = await wire.reserve()
        assert (await other.reserve())[0] == number
        for late in (b"touch %d", b"release %d 0 0", b"bury %d 0", b"delete %d"):
            assert await wire.ask(late % number) == b"NOT_FOUND\r\n"
        assert await other.ask(b"touch %d" % number) == b"TOUCHED\r\n"
        assert await other.ask(b"delete %d" % number) == b"DELETED\r\n"


async def slow_clients(bed: Bed, *, clients: int, most_mib: int) -> Figures:
    """They are not closed: a silent client may be a worker. They cost little, and delay no other client."""
    _, server = await bed.pair(beanstalk=True)
    async with _wired(server, bed.topic) as wire:
        alone_ms = await _put_p99_ms(wire)
        before_bytes = resident_bytes([server.pid])
        slow = [await _begin(server, SLOW_WAYS[n % len(SLOW_WAYS)]) for n in range(clients)]
        await asyncio.sleep(2)
        grown_mib = round((resident_bytes([server.pid]) - before_bytes) / MIB)
        beside_ms = await _put_p99_ms(wire)
        for ending in slow:
            await ending
    assert grown_mib < most_mib
    figures = {"clients": clients, "memory grows by MiB": grown_mib}
    return figures | others_p99(alone_ms, beside_ms)


async def _begin(server: QueueServer, way: tuple[bytes, bytes]) -> Coroutine[Any, Any, None]:
    """Send the first part. Returns a coroutine that sends the rest and checks that the job was put."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.beanstalk_port)
    begun, rest = way
    writer.write(begun)

    async def end() -> None:
        writer.write(rest)
        assert (await reader.readline()).startswith(b"INSERTED ")
        writer.close()

    return end()


async def _put_p99_ms(wire: Wire) -> float:
    """The p99 of puts."""
    return await p99_ms(lambda _: wire.put(b"p99", USUAL_PRIORITY, DAY_S))


async def stopped_with_reserves(bed: Bed, *, workers: int) -> Figures:
    """SIGTERM with waiting workers and load: a wait with a timeout ends, one without ends with its connection."""
    store, server = await bed.pair(beanstalk=True)
    async with bed.beanstalk_load(server, shape=Shape(ttr_s=1, longest_delay_s=2)) as load:
        waits = (b"reserve\r\n", b"reserve-with-timeout 600\r\n")
        waiting = [asyncio.create_task(_wait(server, waits[n % 2])) for n in range(workers)]
        await until_async(lambda: are_connected(server, workers), within_s=30)
        answers, figures = await stop(server, store, load, waiting)
    assert answers == {b"": workers - workers // 2, b"TIMED_OUT\r\n": workers // 2}, answers
    return {"workers": workers} | figures


async def _wait(server: QueueServer, command: bytes) -> bytes:
    """The answer to a worker that waits for a job of the default tube, which has none."""
    async with Wire.opened(server.beanstalk_port) as wire:
        await wire.send(command)
        return await wire.answer(WAITS_S)
