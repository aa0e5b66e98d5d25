"""Rows 13 to 16, 20 to 22, 30: clients vanish, die, are late, simultaneous, slow, many; a server is stopped."""

import asyncio
import json
import signal
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, TypeVar

import aiohttp

from bench.processes import open_files, resident_bytes
from faults.bed import MIB, Bed, Figures, assert_whole, judged, redis_of
from faults.load import Load, Shape
from tests.api_client import Api, Json
from tests.figures import scrape
from tests.hangups import NO_LINGER
from tests.processes import LOOPBACK, QueueServer, StoreServer
from tests.waiting import until, until_async

T = TypeVar("T")

STALE_RECEIPT: Final = 4
EVENTS: Final = "delayqueue_job_events_total"
POLL_S: Final = 60
VISIBLE_S: Final = 1.0
LATER: Final = 100  # jobs
IN_WRITING: Final = 0.05  # share of the answers that may be on their way when their client vanishes
TTR_TOLERANCE_S: Final = 1.0
EXIT_S: Final = 12.0
TRIES: Final = 5
HEAD: Final = b"POST /push HTTP/1.1\r\nHost: faults\r\n"
SLOW_WAYS: Final = {
    "silent": b"",
    "half a header": HEAD[:-10],
    "half a body": HEAD + b'Content-Length: 1000\r\n\r\n{"topic":',
}
CLOSED_IN_S: Final = 90.0
STORE_FILES: Final = 11  # connections to the store, which come and go
LARGE_JOBS: Final = 4
LARGE_BYTES: Final = 1_000_000


async def polls_vanish(bed: Bed, *, polls: int, jobs: int) -> Figures:
    """Polls are closed or reset at random moments while jobs come; none of them finishes its job.

    Jobs that reached a client wait for their TTR. All others must be ready at once, except those being written in the
    moment when their client vanished. Jobs that are pushed afterwards must come at once: no waiter is left behind.
    """
    store, server = await bed.pair()
    ttr_s = 3
    topic = bed.topic
    ids = [f"{topic}/{n}" for n in range(jobs)]
    async with bed.api(server) as api:
        vanishing = [
            asyncio.create_task(vanish(bed, server, topic, waits_s=bed.random.choice((0, POLL_S))))
            for _ in range(polls)
        ]
        for job_id in ids:
            (await api.push(topic=topic, id=job_id, ttr=ttr_s)).ok()
            await asyncio.sleep(0)
        reached = sum(await asyncio.gather(*vanishing))
        at_once, after_ttr = await collect(api, topic, len(ids), ttr_s)
    assert reached
    assert at_once + after_ttr == len(ids), f"{len(ids) - at_once - after_ttr} lost"
    assert after_ttr - reached <= IN_WRITING * jobs
    await assert_whole(store)
    return {
        "polls": polls,
        "jobs": jobs,
        "lost": 0,
        "reached a client": reached,
        "there within 1 s": at_once,
        "after their TTR": after_ttr,
    }


async def vanish(bed: Bed, server: QueueServer, topic: str, *, waits_s: float = 0) -> bool:
    """Poll, wait for the answer for up to `waits_s`, and vanish at a random moment. Returns whether it had come."""
    content = json.dumps({"topic": topic, "timeout": POLL_S}).encode()
    await bed.pause(0, 0.5)
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(b"POST /pop HTTP/1.1\r\nHost: faults\r\n")
    writer.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
    return await leave(bed, reader, writer, waits_s=waits_s)


async def leave(
    bed: Bed,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    first: bytes = b"",
    *,
    waits_s: float = 0,
) -> bool:
    """Vanish at a random moment, in one way or another. Returns whether something had come, behind `first`.

    It waits for that for up to `waits_s`.
    """
    answer = asyncio.create_task(_answered(reader, first))
    await asyncio.wait([answer], timeout=waits_s)
    await bed.pause(0, 0.5)
    reached = answer.done() and answer.result()
    answer.cancel()
    if bed.random.random() < 0.5:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return reached


async def _answered(reader: asyncio.StreamReader, first: bytes) -> bool:
    with suppress(OSError, EOFError):
        if first:
            await reader.readuntil(first)
        return bool(await reader.read(1))
    return False


async def collect(api: Api, topic: str, wanted: int, ttr_s: float) -> tuple[int, int]:
    """How many jobs came at once, and how many until all TTRs had run out; then it proves that no waiter is left."""
    found = await _collect(api, topic, wanted, ttr_s)
    later = [{"topic": topic, "id": f"{topic}/later/{n}", "ttr": 3600} for n in range(LATER)]
    (await api.push_all(later)).ok()
    came, _ = await _collect(api, topic, LATER, 0)
    assert came == LATER, "a client that is gone was given a job"
    return found


async def _collect(api: Api, topic: str, wanted: int, ttr_s: float) -> tuple[int, int]:
    since_s = time.monotonic()
    came_s: dict[str, float] = {}
    while len(came_s) < wanted and time.monotonic() - since_s < VISIBLE_S + 2 * ttr_s + 1:
        jobs = (await api.pop(topic, count=1000, timeout=0.2)).ok()
        for job in jobs:
            came_s.setdefault(job["id"], time.monotonic() - since_s)
        if jobs:
            (await api.call("/finish", {"ids": [job["id"] for job in jobs]})).ok()
    at_once = sum(after_s <= VISIBLE_S for after_s in came_s.values())
    return at_once, len(came_s) - at_once


async def consumer_dies(bed: Bed, *, jobs: int) -> Figures:
    """Consumers never finish: each job is delivered again at its TTR, and is buried when its schedule ends."""
    store, server = await bed.pair()
    topic = bed.topic
    off_s: list[float] = []
    async with bed.api(server) as api:
        schedule = {"delays": ["0s", "1s"]}
        job = {"topic": topic, "ttr": 1, "retry": schedule}
        (await api.push_all([job | {"id": f"{topic}/{n}"} for n in range(jobs)])).ok()
        seen: dict[str, list[tuple[int, float]]] = {}
        for attempt, wait_s in ((1, 0.0), (2, 1.0), (3, 2.0)):
            for found in await take(api, topic, jobs):
                assert found["attempt"] == attempt
                times = seen.setdefault(found["id"], [])
                if times:
                    off_s.append(abs(time.monotonic() - times[-1][1] - wait_s))
                times.append((attempt, time.monotonic()))
        await until_async(lambda: _all_buried(api, topic, jobs), within_s=5)
        assert (await api.pop(topic, timeout=0)).ok() is None
        samples = await scrape(api)
        counted = {event: samples.sum(EVENTS, event=event) for event in ("timed_out", "buried")}
    assert counted == {"timed_out": 3 * jobs, "buried": jobs}
    assert max(off_s) < TTR_TOLERANCE_S
    await assert_whole(store)
    return {"jobs": jobs, "attempts": 3, "furthest from the TTR s": round(max(off_s), 3)}


async def take(api: Api, topic: str, wanted: int) -> list[Json]:
    """This many jobs. Raises AssertionError if they do not come."""
    jobs: list[Json] = []
    while len(jobs) < wanted:
        more = (await api.pop(topic, count=wanted - len(jobs), timeout=10)).ok()
        assert more, f"{len(jobs)} of {wanted} came"
        jobs += more
    return jobs


async def _all_buried(api: Api, topic: str, jobs: int) -> bool:
    listed = (await api.call("/topics", {})).ok()
    return any(one["topic"] == topic and one["buried"] == jobs for one in listed)


async def late_finish(bed: Bed, *, jobs: int, ttr_s: int) -> Figures:
    """The first holder finishes after the redelivery: its receipt is refused; without one the job ends.

    `ttr_s` is long enough for the second holders of all jobs to do their part.
    """
    store, server = await bed.pair()
    topic = bed.topic
    async with bed.api(server) as api:
        ids = [f"{topic}/{n}" for n in range(jobs)]
        (await api.push_all([{"topic": topic, "id": i, "ttr": ttr_s} for i in ids])).ok()
        old = {job["id"]: job["receipt"] for job in await take(api, topic, jobs)}
        new = {job["id"]: job["receipt"] for job in await take(api, topic, jobs)}
        half = jobs // 2
        late = (_finish_late(api, job_id, old[job_id], new[job_id]) for job_id in ids[:half])
        await asyncio.gather(*late)
        for answer in await asyncio.gather(*map(api.finish, ids[half:])):
            answer.ok()
        found = (await api.call("/get", {"ids": ids})).ok()
        assert found == [None] * jobs
        await asyncio.sleep(ttr_s + 0.2)  # the TTR of all of them
        assert (await api.pop(topic, timeout=0)).ok() is None
    await assert_whole(store)
    return {"jobs": jobs, "stale receipts refused": half, "came again after the end": 0}


async def _finish_late(api: Api, job_id: str, old: str, new: str) -> None:
    """The first holder is refused; the second still holds the job, and ends it."""
    assert (await api.finish(job_id, receipt=old)).code == STALE_RECEIPT
    assert (await api.call("/touch", {"id": job_id, "receipt": new})).ok()
    assert (await api.get(job_id)).ok()["state"] == "reserved"
    (await api.finish(job_id, receipt=new)).ok()


async def one_id_at_once(bed: Bed, *, rounds: int) -> Figures:
    """100 pushes of one id in four waves; within a wave any may be the last."""
    store, server = await bed.pair()
    topic = bed.topic
    async with bed.api(server) as api:
        for number in range(rounds):
            job_id = f"{topic}/{number}"
            for wave in range(4):
                bodies = [f"{wave}/{n}" for n in range(25)]
                pushes = [api.push(topic=topic, id=job_id, body=body) for body in bodies]
                for answer in await asyncio.gather(*pushes):
                    answer.ok()
            [job] = (await api.pop(topic, count=100, timeout=5)).ok()
            assert (job["id"], job["body"][:2]) == (job_id, "3/")
            (await api.finish(job_id, receipt=job["receipt"])).ok()
            assert (await api.pop(topic, count=100, timeout=0)).ok() == []
    await assert_whole(store)
    return {"rounds": rounds, "pushes of one id": 100, "jobs each": 1}


async def slow_clients(bed: Bed, *, clients: int) -> Figures:
    server = await bed.server(bed.store())
    async with bed.api(server) as api:
        alone_ms = await _push_p99_ms(api, bed.topic)
        ways = list(SLOW_WAYS)
        slow = [
            asyncio.create_task(_stay(server, ways[n % len(ways)], n, clients))
            for n in range(clients)
        ]
        await asyncio.sleep(2)
        beside_ms = await _push_p99_ms(api, bed.topic)
        closed_s: dict[str, float] = {}
        for way, lasted_s in await asyncio.gather(*slow):
            closed_s[way] = max(closed_s.get(way, 0), round(lasted_s, 1))
        await until(lambda: server.probe("/healthz") is not None)
    assert max(closed_s.values()) < CLOSED_IN_S, closed_s
    figures = {f"{way}: closed after s": lasted_s for way, lasted_s in closed_s.items()}
    return {"clients": clients} | figures | others_p99(alone_ms, beside_ms)


async def _stay(server: QueueServer, way: str, number: int, clients: int) -> tuple[str, float]:
    """Send what this kind of slow client sends, and stay until the server closes. Returns how long that took."""
    await asyncio.sleep(number / clients)
    since_s = time.monotonic()
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(SLOW_WAYS[way])
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSED_IN_S + 10):
            while await reader.read(4096):
                pass
    writer.close()
    return way, time.monotonic() - since_s


async def clients_never_read(bed: Bed, *, clients: int, most_mib: int) -> Figures:
    """Each requests a lot, and reads one byte of it."""
    server = await bed.server(bed.store())
    ids = [f"{bed.topic}/large/{n}" for n in range(LARGE_JOBS)]
    async with bed.api(server) as api, AsyncExitStack() as stack:
        for job_id in ids:
            (await api.push(topic=bed.topic, id=job_id, body="x" * LARGE_BYTES, delay=3600)).ok()
        alone_ms = await _push_p99_ms(api, bed.topic)
        before_bytes, most_bytes, before_files = (
            resident_bytes([server.pid]),
            0,
            open_files([server.pid]),
        )
        since_s = time.monotonic()
        for _ in range(clients):
            stack.enter_context(await _ask_and_not_read(server, ids))
            most_bytes = max(most_bytes, resident_bytes([server.pid]))
        asked_s = time.monotonic() - since_s
        beside_ms = await _push_p99_ms(api, bed.topic)

        async def are_closed() -> bool:
            nonlocal most_bytes
            most_bytes = max(most_bytes, resident_bytes([server.pid]))
            await asyncio.sleep(0.1)
            return open_files([server.pid]) <= before_files + STORE_FILES

        await until_async(are_closed, within_s=CLOSED_IN_S)
        closed_s = time.monotonic() - since_s
    grown_mib = round((most_bytes - before_bytes) / MIB)
    assert grown_mib < most_mib, grown_mib
    return {
        "clients": clients,
        "asked for by all MiB": round(clients * LARGE_JOBS * LARGE_BYTES / MIB),
        "memory grows by MiB": grown_mib,
        "all have asked after s": round(asked_s, 1),
        "all are closed after s": round(closed_s, 1),
        **others_p99(alone_ms, beside_ms),
    }


async def _ask_and_not_read(server: QueueServer, ids: list[str]) -> socket.socket:
    content = json.dumps({"ids": ids}).encode()
    head = b"POST /get HTTP/1.1\r\nHost: faults\r\nContent-Length: %d\r\n\r\n" % len(content)
    connection = socket.socket()
    # the system reads little on its behalf
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, (LOOPBACK, server.port))
    await loop.sock_sendall(connection, head + content)
    await loop.sock_recv(connection, 1)
    return connection


async def _push_p99_ms(api: Api, topic: str) -> float:
    """The p99 of pushes."""

    async def push(number: int) -> None:
        (await api.push(topic=f"{topic}-p99", id=f"p99/{number}", delay=3600)).ok()

    return await p99_ms(push)


def others_p99(alone_ms: float, beside_ms: float, *, more_ms: float = 5) -> Figures:
    """The figures of the others' p99, which may be twice as long and a little more beside those that misbehave."""
    assert beside_ms < 2 * alone_ms + more_ms, (alone_ms, beside_ms)
    return {"others' p99 alone ms": alone_ms, "others' p99 beside them ms": beside_ms}


async def p99_ms(ask: Callable[[int], Awaitable[object]], requests: int = 1000) -> float:
    """The time that 99 of 100 requests do not exceed. The machine may be busy, so the best of some tries counts."""
    tries_ms = []
    for _ in range(TRIES):
        took_s = []
        for number in range(requests):
            since_s = time.perf_counter()
            await ask(number)
            took_s.append(time.perf_counter() - since_s)
        tries_ms.append(round(sorted(took_s)[int(0.99 * requests)] * 1000, 2))
    return min(tries_ms)


async def many_polls(bed: Bed, *, polls: int, most_mib: int) -> Figures:
    store, server = await bed.pair()
    topic = bed.topic
    async with bed.api(server) as api, redis_of(store) as redis:
        before = resident_bytes([server.pid])
        waiting = [
            asyncio.create_task(api.pop(f"{topic}/{n % 100}", timeout=120)) for n in range(polls)
        ]
        await until_async(lambda: are_connected(server, polls), within_s=60)

        async def push_and_pop(number: int) -> None:
            (await api.push(topic=topic, id=f"{number}")).ok()
            assert (await api.pop(topic, timeout=5)).ok()["id"] == f"{number}"

        took_ms = await p99_ms(push_and_pop, 500)
        used_mib = round((resident_bytes([server.pid]) - before) / MIB)
        connections = (await redis.info("clients"))["connected_clients"] - 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert used_mib < most_mib
    assert connections <= STORE_FILES
    assert took_ms < 100
    return {
        "polls": polls,
        "memory MiB": used_mib,
        "Redis connections": connections,
        "push to pop p99 ms": took_ms,
    }


async def are_connected(server: QueueServer, polls: int) -> bool:
    await asyncio.sleep(0.2)
    return open_files([server.pid]) > polls


async def stopped_with_polls(bed: Bed, *, polls: int) -> Figures:
    """SIGTERM with waiting polls and load: all get an answer, and the process ends."""
    store, server = await bed.pair()
    async with (
        bed.api(server) as api,
        bed.load(server, shape=Shape(ttr_s=1, longest_delay_s=2)) as load,
    ):
        waiting = [
            asyncio.create_task(api.pop(f"{bed.topic}/polls", timeout=60)) for _ in range(polls)
        ]
        await until_async(lambda: are_connected(server, polls), within_s=30)
        answers, figures = await stop(server, store, load, map(_kind_of, waiting))
    assert answers == {"empty": polls}, answers
    return {"polls": polls} | figures


async def stop(
    server: QueueServer, store: StoreServer, load: Load, waiting: Iterable[Awaitable[T]]
) -> tuple[Counter[T], Figures]:
    """Stop a loaded server, and start it again. Returns the answers to those that wait, and the figures."""
    await load.until_finished(100)
    load.history.fault("stop the server")
    server.send(signal.SIGTERM)
    since_s = time.monotonic()
    answers = Counter(await asyncio.gather(*waiting))
    answered_s = round(time.monotonic() - since_s, 2)
    await until(lambda: server.exit_status() is not None, within_s=EXIT_S)
    ended_s = round(time.monotonic() - since_s, 2)
    assert server.exit_status() == 0
    server.launch()
    verdict = await judged(load, store)
    took = {"none waits any more after s": answered_s, "ended after s": ended_s}
    return answers, verdict.figures() | took


async def _kind_of(poll: Awaitable[Any]) -> str:
    try:
        answer = await poll
    except (aiohttp.ClientError, TimeoutError) as error:
        return type(error).__name__
    return "empty" if answer.ok() is None else "a job"
