"""Rows 17 to 19 and 26: a poisoned store, requests that are not JSON, huge ones, hostile names."""

import asyncio
import gzip
import http.client
import time
import zlib
from contextlib import suppress
from typing import Final

from redis.asyncio import Redis

from bench.processes import Memory, cpu_seconds, resident_bytes
from faults.bed import KEYS, MIB, Bed, Figures, assert_whole, redis_of
from faults.load import Shape
from tests.api.test_bad_json import BAD, BAD_IN_POP, BAD_IN_PUSH
from tests.api_client import INVALID, TOO_LARGE, Api
from tests.figures import scrape
from tests.processes import LOOPBACK, QueueServer
from tests.store.bucket import HOSTILE
from tests.waiting import until_async

ANSWER_MS: Final = 50.0
GROWTH_MIB: Final = 64
LEFT_BYTES: Final = 1024  # a request and the frames of an error take several times this much
IDLE_S: Final = 3.0
IDLE_SHARE: Final = 0.1  # of a processor, for server and store together
TRIES: Final = 3


async def store_poisoned(bed: Bed, *, jobs: int) -> Figures:
    store, server = await bed.pair()
    async with redis_of(store) as redis, bed.api(server) as api:
        await _poison(redis, api)
        shape = Shape(most=jobs, ttr_s=10, longest_delay_s=0.5)
        async with bed.load(server, shape=shape) as load:
            await load.until_all_pushed()
            verdict = await load.finish(watch_s=1)
        verdict.check()
        assert verdict.duplicates == 0

        async def both_set_aside() -> bool:
            assert (await api.pop("poison", timeout=0)).ok() is None
            aside = await redis.zrange(f"{KEYS.tag}:broken", 0, -1)
            return {b"broken record", b"cut record"} <= set(aside)

        await until_async(both_set_aside, within_s=5)
        set_aside = await redis.zcard(f"{KEYS.tag}:broken")
        for topic in ("list", "zset", "reserved"):  # the server itself has set their keys aside
            job = (await api.pop(topic, timeout=20)).ok()
            assert job["id"] == topic
            (await api.finish(topic, receipt=job["receipt"])).ok()
        counted = (await scrape(api)).sum("delayqueue_repairs_total", repair="set_aside")
        busy = await _busy_share([server.pid, store.pid])
    assert counted >= set_aside
    await assert_whole(store)
    assert busy < IDLE_SHARE, f"{busy:.0%} of a processor at rest"
    figures = {"set aside": set_aside, "processor at rest %": round(busy * 100, 1)}
    return verdict.figures() | {"p99 late ms": verdict.late_ms(0.99)} | figures


async def _poison(redis: Redis, api: Api) -> None:
    """What a crash of an older version, another program or somebody with redis-cli can leave behind."""
    for topic in ("poison", "list", "zset", "reserved"):
        for job_id in ("broken record", "cut record") if topic == "poison" else (topic,):
            (await api.push(topic=topic, id=job_id, delay=0.5, ttr=1, body="x" * 100)).ok()
    record = await redis.hget(f"{KEYS.tag}:job", "cut record")
    assert record is not None
    await redis.hset(f"{KEYS.tag}:job", "cut record", record[:20])
    await redis.hset(f"{KEYS.tag}:job", "broken record", b"\xff\x00 no record")
    await redis.set(f"{KEYS.tag}:dq_queue_list", "a text where a list should be")
    await redis.set(f"{KEYS.tag}:delay:zset", "a text where a sorted set should be")
    await redis.set(f"{KEYS.tag}:reserved:reserved", "a text where a sorted set should be")
    await redis.zadd(f"{KEYS.tag}:delay:stray", {"no job has this id": 1})
    await redis.zadd(f"{KEYS.tag}:timers", {"stray": 1, "no such topic": 1})
    await redis.rpush(f"{KEYS.tag}:dq_queue_stray", "no job has this id either")


async def _busy_share(pids: list[int]) -> float:
    """The share of one processor that the processes use while there are no requests."""
    await asyncio.sleep(1)
    before_s = cpu_seconds(pids)
    await asyncio.sleep(IDLE_S)
    return (cpu_seconds(pids) - before_s) / IDLE_S


async def bad_json(bed: Bed) -> Figures:
    store, server = await bed.pair()
    cases = [(path, raw) for raw in BAD.values() for path in ("/push", "/pop", "/finish")]
    cases += [("/push", raw) for raw in BAD_IN_PUSH.values()]
    cases += [("/pop", raw) for raw in BAD_IN_POP.values()]
    slowest_ms = 0.0
    async with bed.api(server) as api:
        for path, raw in cases:
            # the machine may be busy: the best of some tries counts
            took_ms = min([await _refusal_ms(api, path, raw) for _ in range(TRIES)])
            slowest_ms = max(slowest_ms, took_ms)
    assert slowest_ms < ANSWER_MS
    await assert_whole(store)
    return {"requests": len(cases), "slowest answer ms": round(slowest_ms, 1), "answers 500": 0}


async def _refusal_ms(api: Api, path: str, raw: bytes) -> float:
    since_s = time.perf_counter()
    answer = await api.request("POST", path, raw)
    took_ms = (time.perf_counter() - since_s) * 1000
    if answer.status == http.client.OK:
        first = answer.data[0] if isinstance(answer.data, list) else {"code": answer.code}
        assert first["code"] == INVALID, (raw[:80], answer)
    else:
        assert answer.status < http.client.INTERNAL_SERVER_ERROR, (raw[:80], answer)
    return took_ms


async def huge_bodies(bed: Bed, *, bomb_mib: int, times: int, refusals: int) -> Figures:
    """Huge requests cost no memory while they are refused or afterwards, and neither do many small ones."""
    server = await bed.server(bed.store())
    async with bed.api(server) as api:
        (await api.push(topic=bed.topic, id="warm")).ok()
        refused_bytes = await _refusals_leave(api, server, refusals)
        before = resident_bytes([server.pid])
        answer = await api.push(topic=bed.topic, id="2 MiB", body="x" * 2 * MIB)
        answer.refused(TOO_LARGE, http.client.REQUEST_ENTITY_TOO_LARGE)
        packed, chunk = bomb(bomb_mib), b"100000\r\n" + b" " * MIB + b"\r\n"
        zipped = b"Content-Encoding: gzip\r\nContent-Length: %d" % len(packed)
        kinds = {
            "1 GiB chunked": (b"Transfer-Encoding: chunked", chunk, 1024),
            "gzip bomb": (zipped, packed, 1),
        }
        grown_mib = dict.fromkeys(kinds, 0)
        for kind in [*kinds] * times:
            memory = Memory(server.pid)
            assert await _status_of(server, *kinds[kind]) == http.client.REQUEST_ENTITY_TOO_LARGE
            grown_mib[kind] = max(grown_mib[kind], memory.growth() // MIB)
        assert (await api.get("warm")).ok()
        kept_mib = (resident_bytes([server.pid]) - before) // MIB
    assert max(grown_mib.values()) < GROWTH_MIB, grown_mib
    assert kept_mib < GROWTH_MIB, f"{kept_mib} MiB are kept"
    assert refused_bytes < LEFT_BYTES * refusals, f"{refused_bytes} bytes are left"
    figures = {f"{kind}: memory grows by MiB": mib for kind, mib in grown_mib.items()}
    refused = {"refusals": refusals, "left by each bytes": refused_bytes // refusals}
    return {"bomb MiB": bomb_mib, "times": times, "kept MiB": kept_mib} | figures | refused


async def _refusals_leave(api: Api, server: QueueServer, refusals: int) -> int:
    """How many bytes the server's memory grows by when it refuses small compressed requests."""
    since = resident_bytes([server.pid])
    for _ in range(refusals):
        answer = await api.request("POST", "/push", b"x", {"Content-Encoding": "gzip"})
        answer.refused(TOO_LARGE, http.client.REQUEST_ENTITY_TOO_LARGE)
    return resident_bytes([server.pid]) - since


def bomb(size_mib: int) -> bytes:
    """This much white space, compressed: one block, again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    head = packer.compress(b" ") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    assert gzip.decompress(head + block + packer.flush()) == b" " * (MIB + 1)
    return head + block * size_mib


async def _status_of(server: QueueServer, headers: bytes, piece: bytes, times: int) -> int:
    """Send pieces until there is an answer. Returns its status."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    writer.write(b"POST /push HTTP/1.1\r\nHost: faults\r\n" + headers + b"\r\n\r\n")
    answer = asyncio.create_task(reader.readline())
    for _ in range(times):
        if answer.done():
            break
        writer.write(piece)
        with suppress(ConnectionError):
            await writer.drain()
    async with asyncio.timeout(10):
        line = await answer
    writer.close()
    return int(line.split()[1])


async def hostile_input(bed: Bed) -> Figures:
    """Names that are keys, patterns, commands or markup somewhere; and a job that none of them may touch."""
    store, server = await bed.pair()
    names = [*HOSTILE, "<script>alert(1)</script>", "a\r\nSet-Cookie: x=1", "../../etc/passwd"]
    async with bed.api(server) as api:
        (await api.push(topic="bystander", id="bystander", body="untouched")).ok()
        for name in names:
            for topic, job_id in ((name, "plain"), ("plain", name), (name, name)):
                if job_id == "*":  # asks the server for an id
                    continue
                (await api.push(topic=topic, id=job_id, body=name)).ok()
                found = (await api.get(job_id)).ok()
                assert found is not None, (topic, job_id)
                assert found["body"] == name, (topic, job_id)
                job, kept = (await api.pop(topic)).ok(), (topic.strip(), job_id.strip(), name)
                assert (job["topic"], job["id"], job["body"]) == kept
                (await api.delete(job_id)).ok()
        await assert_whole(store)
        assert (await api.pop("bystander")).ok()["body"] == "untouched"
    return {"names": len(names), "keys touched": 0}
