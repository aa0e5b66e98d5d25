"""Rows 7 to 12: the store is frozen, cut off, forgets its scripts, is full, or has a wrong clock."""

import asyncio
import http.client
import resource
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from redis.exceptions import ResponseError

from faults.bed import BACK_S, Bed, Figures, assert_back, assert_whole, judged, redis_of, restart
from faults.checker import SETTLED_S
from faults.clock import Clock
from faults.history import FREEZE, THAW
from faults.load import MOST_IDS, Shape
from faults.proxy import Proxy
from faults.scenarios.clients import take
from tests.api_client import OK, UNAVAILABLE, Api, Envelope
from tests.figures import scrape
from tests.processes import redis_binary, valkey_binary
from tests.waiting import until_async

ANSWER_S: Final = 6.0  # a store that is silent for longer than 5 s counts as away
SILENCE_S: Final = 5.0  # until then no side knows that a connection is half open
HOUR_S: Final = 3600
UNLIMITED: Final = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
REFUSALS: Final = 50


async def redis_frozen(bed: Bed, *, freeze_s: float) -> Figures:
    store, server = await bed.pair()
    async with bed.api(server) as api, bed.load(server, shape=Shape(ttr_s=5)) as load:
        poll = asyncio.create_task(api.pop(f"{bed.topic}-poll", timeout=freeze_s + 10))
        await load.until_finished(100)
        load.history.fault(FREEZE)
        store.freeze()
        try:
            answers_s = await _all_refused_for(api, freeze_s, bed.topic)
            assert server.probe("/healthz") == http.client.OK
            assert server.probe("/readyz") == http.client.SERVICE_UNAVAILABLE
            assert not poll.done()
        finally:
            store.thaw()
            load.history.fault(THAW)
        back_s = await assert_back(api)
        (await api.push(topic=f"{bed.topic}-poll", id="for the poll")).ok()
        assert (await poll).ok()["id"] == "for the poll"
        (await api.finish("for the poll")).ok()
        await load.until_finished(100)
        verdict = await judged(load, store)
    slowest = {"slowest 503 s": round(max(answers_s), 2), "back after s": back_s}
    return verdict.figures() | {"asked while frozen": len(answers_s)} | slowest


async def _all_refused_for(api: Api, duration_s: float, topic: str) -> list[float]:
    """Send every verb, again and again; each answer must be a 503 in time. Returns how long each took."""
    asking = []
    until_s = time.monotonic() + duration_s - ANSWER_S
    while time.monotonic() < until_s:
        requests = [*_every_verb(api, topic), api.pop(f"{topic},{time.monotonic()}", timeout=60)]
        asking += [asyncio.create_task(_refused(request)) for request in requests]
        await asyncio.sleep(0.3)
    return await asyncio.gather(*asking)


def _every_verb(api: Api, topic: str) -> list[Coroutine[Any, Any, Envelope]]:
    """A request of each kind, none of which waits for a job."""
    job = {"topic": topic, "id": "every verb", "delay": HOUR_S}
    return [
        api.push(**job),
        api.push_all([job] * 20),
        api.pop(f"{topic}/empty", timeout=0),
        api.get("every verb"),
        *(
            api.call(f"/{verb}", {"id": "every verb"})
            for verb in ("finish", "delete", "release", "touch", "bury", "kick")
        ),
        api.call("/topics", {}),
    ]


async def _refused(request: Coroutine[Any, Any, Envelope]) -> float:
    since_s = time.monotonic()
    answer = await request
    took_s = time.monotonic() - since_s
    assert (answer.status, answer.code) == (http.client.SERVICE_UNAVAILABLE, UNAVAILABLE), answer
    assert took_s < ANSWER_S, f"an answer after {took_s:.1f} s"
    return took_s


async def network_broken(bed: Bed, *, rounds: int, holds: int) -> Figures:
    """Between server and store, in turn: connections reset, answers swallowed, silence, slowness.

    Then it holds back what was sent, until long after clients were told that nobody knows.
    """
    store = bed.store()
    backs_s: dict[str, float] = {}
    async with Proxy(store.port) as proxy:
        server = await bed.server(store, redis__host=proxy.address)
        faults: dict[str, Callable[[], None]] = {
            "cut": proxy.cut,
            "answers dropped": proxy.drop_next_answers,
            "half open": proxy.half_open,
        }
        async with bed.api(server) as api, bed.load(server, shape=Shape(ttr_s=2)) as load:
            for _ in range(rounds):
                for name, fault in faults.items():
                    await load.until_finished(100)
                    proxy.delay_s = bed.random.choice([0, 0.05])
                    load.history.fault(name)
                    fault()
                    back_s = await _duration_s(
                        until_async(partial(_all_work, api, bed.topic), within_s=20)
                    )
                    backs_s[name] = max(backs_s.get(name, 0), back_s)
            proxy.delay_s = 0
            for _ in range(holds):
                await load.until_finished(100)
                load.history.fault("held back")
                proxy.hold()
                await asyncio.sleep(SILENCE_S + SETTLED_S)
                await load.until_pushed_again()
                await proxy.let_go()
                load.history.fault("arrives late")
            verdict = await load.finish()
            pushed_again = load.pushed_again
    verdict.check()
    await assert_whole(store)
    assert backs_s["cut"] < BACK_S
    assert backs_s["answers dropped"] < BACK_S
    assert backs_s["half open"] < SILENCE_S + BACK_S
    backs = {f"{name}: back after s": s for name, s in backs_s.items()}
    return verdict.figures() | {"pushed again after a 503": pushed_again} | backs


async def _all_work(api: Api, topic: str) -> bool:
    """Whether every verb is served, all of them sent at the same time."""
    answers = await asyncio.gather(*_every_verb(api, topic))
    return all(answer.code != UNAVAILABLE for answer in answers)


async def _duration_s(flow: Awaitable[None]) -> float:
    since_s = time.monotonic()
    await flow
    return round(time.monotonic() - since_s, 2)


async def scripts_flushed(bed: Bed, *, flushes: int, restarts: int) -> Figures:
    store, server = await bed.pair()
    async with redis_of(store) as redis, bed.load(server) as load:
        for _ in range(flushes):
            await load.until_finished(20)
            await redis.script_flush()
            with suppress(ResponseError):  # it has none
                await redis.function_flush()
        verdict = await load.finish()
    verdict.check()
    assert load.failures == 0
    async with bed.api(server) as api:
        for number in range(restarts):
            store.stop()
            store.start()
            job = f"after restart {number}"
            (await api.push(topic=bed.topic, id=job)).ok()
            assert (await api.pop(bed.topic)).ok()["id"] == job
            (await api.finish(job)).ok()
            (await api.delete(job)).ok()
    await assert_whole(store)
    return verdict.figures() | {"flushes": flushes, "restarts": restarts, "errors": 0}


async def disk_full(bed: Bed, *, rounds: int) -> Figures:
    """The store's file cannot grow any more. Redis learns from its first failed write that the disk is full."""
    store = bed.wrapped_store(["env", "--ignore-signal=XFSZ"], redis_binary())
    server = await bed.server(store)
    refused = 0
    async with bed.api(server) as api, bed.load(server, shape=Shape(ttr_s=2)) as load:
        for number in range(rounds):
            await load.until_finished(100)
            load.history.fault("disk full")
            resource.prlimit(store.pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
            await until_async(partial(_is_answered, UNAVAILABLE, api, f"{bed.topic}/full/{number}"))
            answers = [await api.push(topic="full", id=f"{number}/{n}") for n in range(50)]
            codes = {(answer.status, answer.code) for answer in answers}
            assert codes == {(http.client.SERVICE_UNAVAILABLE, UNAVAILABLE)}
            refused += len(answers)
            resource.prlimit(store.pid, resource.RLIMIT_FSIZE, UNLIMITED)
            load.history.fault("disk has room")
            await until_async(partial(_is_answered, OK, api, f"{bed.topic}/room/{number}"))
            await load.until_finished(100)
            store.kill()
            await restart(store)
        verdict = await load.finish()
        counted = (await scrape(api)).one(
            "delayqueue_requests_total", path="/push", code=str(UNAVAILABLE)
        )
    verdict.check()
    assert counted >= refused
    await assert_whole(store)
    return verdict.figures() | {"rounds": rounds, "pushes refused with 503": refused}


async def _is_answered(code: int, api: Api, job_id: str) -> bool:
    """Whether a push is answered with this code."""
    return (await api.push(topic="full", id=job_id, delay=HOUR_S)).code == code


async def memory_full(bed: Bed, *, jobs: int) -> Figures:
    store = bed.store("--maxmemory-policy", "noeviction")
    server = await bed.server(store)
    topic = bed.topic
    async with redis_of(store) as redis, bed.api(server) as api:
        (await api.push_all([{"topic": topic, "id": f"{n}"} for n in range(jobs)])).ok()
        used = (await redis.info("memory"))["used_memory"]
        await redis.config_set("maxmemory", used + (1 << 20))
        filled = await _filled(api, f"{topic}-filling")
        ids, half = [job["id"] for job in await take(api, topic, jobs)], jobs // 2
        for path, some in (("/finish", ids[:half]), ("/delete", ids[half:])):
            results = (await api.call(path, {"ids": some})).ok()
            assert {result["code"] for result in results} == {OK}
        await redis.config_set("maxmemory", 0)
        assert await _is_answered(OK, api, f"{topic}/room")
        kept = (await api.call("/get", {"ids": filled[:MOST_IDS]})).ok()
        assert None not in kept
    await assert_whole(store)
    return {"accepted until full": len(filled), "popped and ended while full": jobs}


async def _filled(api: Api, topic: str) -> list[str]:
    """Push until there is no room, which must be answered with 503. Returns the ids of the jobs that fit."""
    body = "x" * 10_000
    accepted: list[str] = []
    refused_in_a_row = 0
    while refused_in_a_row < REFUSALS:
        job_id = f"filling {len(accepted)}"
        answer = await api.push(topic=topic, id=job_id, body=body, delay=HOUR_S)
        if answer.code == OK:
            accepted.append(job_id)
            refused_in_a_row = 0
        else:
            answer.refused(UNAVAILABLE, http.client.SERVICE_UNAVAILABLE)
            refused_in_a_row += 1
    return accepted


async def clocks_wrong(bed: Bed, *, jobs: int) -> Figures:
    """Servers an hour ahead and behind beside a right store: no effect. Then the store's clock jumps.

    The store is Valkey: Redis's allocator (jemalloc) cannot start under libfaketime.
    """
    clock = Clock(bed.home / "clock")
    store = bed.wrapped_store(clock.wrapper, valkey_binary())
    servers = [bed.new_server(store) for _ in range(2)]
    for server, hours in zip(servers, (1, -1), strict=True):
        its_clock = Clock(server.home / "clock")
        its_clock.set(hours * HOUR_S)
        server.wrap(*its_clock.wrapper)
        await restart(server)
    shape = Shape(most=jobs, ttr_s=5)
    async with bed.load(*servers, shape=shape) as load:
        await load.until_all_pushed()
        verdict = await load.finish(watch_s=1)
    verdict.check()
    assert verdict.duplicates == 0
    late_ms = verdict.late_ms(0.99)
    async with bed.load(*servers, shape=Shape(ttr_s=2)) as load:
        real_s = time.time() - time.monotonic()
        # what is pushed or popped while the clock is ahead is late by the jump back; the last one ends the lateness
        for jump_s in (HOUR_S, 0, HOUR_S):
            await load.until_acknowledged(200)
            load.history.set_clock(real_s + jump_s)
            clock.set(jump_s)
        verdict = await judged(load, store)
    return {"p99 late ms beside wrong servers": late_ms, "jumps of an hour": 3} | verdict.figures()
