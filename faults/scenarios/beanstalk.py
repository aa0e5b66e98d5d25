"""Rows 35 to 39: as 13 to 15, 20 and 22, by clients that speak beanstalkd's protocol. Row 34 is in crashes.py."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import ExitStack, closing
from typing import Any, Final

from faults.beanstalk import Line
from faults.bed import Bed, assert_whole, rss_bytes
from faults.load import Shape
from faults.scenarios.clients import (
    MIB,
    TTR_TOLERANCE_S,
    VISIBLE_S,
    are_connected,
    collect,
    leave,
    p99_ms,
    stop,
)
from tests.figures import scrape
from tests.processes import LOOPBACK, QueueServer
from tests.waiting import until_async

Figures = dict[str, Any]

DAY_S: Final = 86_400
HALF_BODY: Final = b"." * 30_000
# what they send, and how they continue in the end
SLOW_WAYS: Final = (
    (b"", b"put 1024 0 60 2\r\nhi\r\n"),
    (b"put 1024 0 6", b"0 2\r\nhi\r\n"),
    (b"put 1024 0 60 60000\r\n" + HALF_BODY, HALF_BODY + b"\r\n"),
)


def put(body: str, *, ttr_s: int = 60, delay_s: int = 0) -> bytes:
    return b"put 1024 %d %d %d\r\n%b\r\n" % (delay_s, ttr_s, len(body), body.encode())


async def reserves_vanish(bed: Bed, *, workers: int, jobs: int) -> Figures:
    """Workers wait in a reserve, or hold a job, and vanish at random moments. Their jobs are ready again at once."""
    store = bed.store()
    server = await bed.beanstalk_server(store)
    async with bed.api(server) as api:
        vanishing = [asyncio.create_task(_vanish(bed, server)) for _ in range(workers)]
        with closing(Line(server.beanstalk_port, b"use %b\r\n" % bed.topic.encode())) as producer:
            for number in range(jobs):
                await producer.ask(put(f"{number}", ttr_s=3600))
        reached = sum(await asyncio.gather(*vanishing))
        at_once, _ = await collect(api, bed.topic, jobs, VISIBLE_S, 0)
        later = [{"topic": bed.topic, "id": f"later/{n}", "ttr": 3600} for n in range(100)]
        (await api.push_all(later)).ok()
        came, _ = await collect(api, bed.topic, len(later), VISIBLE_S, 0)
    assert at_once == jobs, f"{jobs - at_once} of {jobs} are not there"
    assert came == len(later), "a worker that is gone was given a job"
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
    return await leave(bed, reader, writer, b"WATCHING 2\r\n")


async def worker_dies(bed: Bed, *, jobs: int) -> Figures:
    """Workers reserve and then are silent: each job is delivered again at its TTR, and counts as an attempt."""
    store = bed.store()
    server = await bed.beanstalk_server(store)
    ttr_s = 2
    with ExitStack() as stack:
        # each worker its own tube: near the end of a TTR a worker gets no other job
        lines = [
            stack.enter_context(closing(_line(server, f"{bed.topic}/{n}"))) for n in range(jobs)
        ]
        off_s = await asyncio.gather(*(_comes_again(line, ttr_s) for line in lines))
        async with bed.api(server) as api:
            samples = await scrape(api)
    timed_out = samples.sum("delayqueue_job_events_total", event="timed_out")
    assert max(off_s) < TTR_TOLERANCE_S
    assert timed_out == jobs
    await assert_whole(store)
    return {"jobs": jobs, "attempts": 2, "furthest from the TTR s": round(max(off_s), 3)}


def _line(server: QueueServer, tube: str) -> Line:
    """A connection that puts into a tube, and reserves from it."""
    name = tube.encode()
    return Line(server.beanstalk_port, b"use %b\r\n" % name, b"watch %b\r\n" % name)


async def _comes_again(line: Line, ttr_s: int) -> float:
    """Reserve a job and be silent until the next worker gets it. Returns how far from its TTR that was."""
    await line.ask(put("held", ttr_s=ttr_s))
    number, since_s = await _reserved(line)
    with closing(line.beside()) as other:
        again, came_s = await _reserved(other)
        assert again == number
        _, stats = await other.ask(b"stats-job %d\r\n" % number)
        assert "reserves: 2\n" in stats
        assert "timeouts: 1\n" in stats
        await other.told(b"delete %d\r\n" % number, "DELETED")
    return abs(came_s - since_s - ttr_s)


async def _reserved(line: Line) -> tuple[int, float]:
    """The number of the next job, and when it came."""
    words, _ = await line.ask(b"reserve-with-timeout 20\r\n")
    assert words[0] == "RESERVED", words
    return int(words[1]), time.monotonic()


async def late_delete(bed: Bed, *, jobs: int, ttr_s: int) -> Figures:
    """The first holder continues after the redelivery: all its commands are refused, the new holder is undisturbed."""
    store = bed.store()
    server = await bed.beanstalk_server(store)
    with ExitStack() as stack:
        lines = [
            stack.enter_context(closing(_line(server, f"{bed.topic}/{n}"))) for n in range(jobs)
        ]
        await asyncio.gather(*(_delete_late(line, ttr_s) for line in lines))
    async with bed.api(server) as api:
        topics = (await api.call("/topics", {})).ok()
    assert not [topic for topic in topics if topic["ready"] or topic["reserved"]]
    await assert_whole(store)
    return {"jobs": jobs, "late commands refused": 4 * jobs, "came again after the end": 0}


async def _delete_late(line: Line, ttr_s: int) -> None:
    await line.ask(put("held", ttr_s=ttr_s))
    number, _ = await _reserved(line)
    with closing(line.beside()) as other:
        assert (await _reserved(other))[0] == number
        for late in (b"touch %d", b"release %d 0 0", b"bury %d 0", b"delete %d"):
            await line.told(late % number + b"\r\n", "NOT_FOUND")
        await other.told(b"touch %d\r\n" % number, "TOUCHED")
        await other.told(b"delete %d\r\n" % number, "DELETED")


async def slow_clients(bed: Bed, *, clients: int, most_mib: int) -> Figures:
    """They are not closed: a silent client may be a worker. They cost little, and delay no other client."""
    store = bed.store()
    server = await bed.beanstalk_server(store)
    with closing(_line(server, bed.topic)) as line:
        alone_ms = await _put_p99_ms(line)
        before_bytes = rss_bytes(server.pid)
        slow = [await _begin(server, SLOW_WAYS[n % len(SLOW_WAYS)]) for n in range(clients)]
        await asyncio.sleep(2)
        grown_mib = round((rss_bytes(server.pid) - before_bytes) / MIB)
        beside_ms = await _put_p99_ms(line)
        for ending in slow:
            await ending
    assert grown_mib < most_mib
    assert beside_ms < 2 * alone_ms + 5, (alone_ms, beside_ms)
    return {
        "clients": clients,
        "memory grows by MiB": grown_mib,
        "others' p99 alone ms": alone_ms,
        "others' p99 beside them ms": beside_ms,
    }


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


async def _put_p99_ms(line: Line) -> float:
    """The p99 of puts."""
    return await p99_ms(lambda _: line.told(put("p99", delay_s=DAY_S), "INSERTED"))


async def stopped_with_reserves(bed: Bed, *, workers: int) -> Figures:
    """SIGTERM with waiting workers and load: a wait with a timeout ends, one without ends with its connection."""
    store = bed.store()
    server = await bed.beanstalk_server(store)
    async with bed.beanstalk_load(server, shape=Shape(ttr_s=1, longest_delay_s=2)) as load:
        waits = (b"reserve\r\n", b"reserve-with-timeout 600\r\n")
        waiting = [asyncio.create_task(_wait(server, waits[n % 2])) for n in range(workers)]
        await until_async(lambda: are_connected(server, workers), within_s=30)
        answers, answered_s, ended_s = await stop(server, load, waiting)
        assert answers == {b"": workers - workers // 2, b"TIMED_OUT\r\n": workers // 2}, answers
        server.launch()
        verdict = await load.finish()
    verdict.check()
    await assert_whole(store)
    return verdict.figures() | {
        "workers": workers,
        "none waits any more after s": answered_s,
        "ended after s": ended_s,
    }


async def _wait(server: QueueServer, command: bytes) -> bytes:
    """The answer to a worker that waits for a job of the default tube, which has none."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.beanstalk_port)
    writer.write(command)
    answer = await reader.readline()
    writer.close()
    return answer
