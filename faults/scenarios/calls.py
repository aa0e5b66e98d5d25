"""Row 40: servers, their store and the target are killed while jobs call their URLs."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from aiohttp import web

from faults.bed import assert_whole, restart
from tests.delivery.receiver import Receiver
from tests.processes import LOOPBACK, free_port
from tests.waiting import until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from faults.bed import Bed
    from tests.api_client import Api, Json
    from tests.processes import Process

Figures = dict[str, Any]

LONGEST_DELAY_S: Final = 4.0
TTR_S: Final = 2
DRAINED_S: Final = 90.0
CLOCK_S: Final = 0.005  # between the store's milliseconds and ours
GRACE_S: Final = 0.5  # for a request that a killed server had sent
STATES_TOGETHER: Final = 500


async def killed_while_calling(bed: Bed, *, jobs: int, kills: int) -> Figures:
    store = bed.store(fsync="always")
    settings = {"durability": "fsync", "calls": "yes", "call_allow": LOOPBACK}
    servers = [await bed.server(store, **settings) for _ in range(2)]
    target = Target(free_port())
    pushed = Pushed({}, set())
    async with target.open(), bed.api(servers[0]) as one, bed.api(servers[1]) as two:
        pushing = asyncio.create_task(_push(bed, pushed, jobs, target, one, two))
        victims: list[Process | Target] = [*servers, store, target]
        for kill in range(kills):
            await bed.pause(0.5, 1.5)
            victim = victims[kill % len(victims)]
            if isinstance(victim, Target):
                async with target.closed():
                    await bed.pause(0.2, 1)
            else:
                victim.kill()
                await bed.pause(0, 0.5)
                await restart(victim)
        await pushing
        ended = await _until_ended(one, [*pushed.due_s])
    calls = target.receiver.calls
    first: dict[str, float] = {}
    for call in calls:
        first.setdefault(call.id, call.at_s)
    assert not [job_id for job_id, state in ended.items() if state["state"] != "finished"]
    assert not {*pushed.due_s} - first.keys(), "never called"
    early = [i for i, due_s in pushed.due_s.items() if first[i] < due_s - CLOCK_S]
    late = [each.id for each in calls if each.at_s > ended.get(each.id, _NEVER)["ended"] + GRACE_S]
    assert not early, f"called early: {early[:3]}"
    assert not late, f"called after its end: {late[:3]}"
    assert not pushed.cancelled & first.keys(), "called after it was cancelled"
    await assert_whole(store)
    repeated = len(calls) - len(first)
    return {
        "jobs": len(pushed.due_s),
        "calls": len(calls),
        "repeated": repeated,
        "cancelled": len(pushed.cancelled),
        "kills": kills,
    }


_NEVER: Final[Json] = {"ended": float("inf")}


class Pushed:
    """The jobs that are to be called, with their due times, and those that were cancelled in time."""

    def __init__(self, due_s: dict[str, float], cancelled: set[str]) -> None:
        self.due_s = due_s
        self.cancelled = cancelled


class Target:
    """What the jobs call; it can be away."""

    def __init__(self, port: int) -> None:
        self.receiver = Receiver()
        self.receiver.port = port
        self._runner: web.AppRunner | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        await self._begin()
        try:
            yield
        finally:
            await self._end()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        await self._end()
        yield
        await self._begin()

    async def _begin(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.receiver.handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, self.receiver.port).start()

    async def _end(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


async def _push(bed: Bed, pushed: Pushed, jobs: int, target: Target, *apis: Api) -> None:
    """Push them through any server, until each is acknowledged; cancel some of them before they are due."""
    for number in range(jobs):
        job_id = f"{bed.topic}-{number}"
        due_s = time.time() + bed.random.uniform(0, LONGEST_DELAY_S)
        await _surely(
            apis,
            "/push",
            {
                "topic": bed.topic,
                "id": job_id,
                "ttr": TTR_S,
                "due": due_s,
                "retain": 3600,
                "retry": {"delays": [0.3] * 60},
                "call": {"url": target.receiver.url(bed.topic), "timeout": 1},
            },
        )
        if number % 5:
            pushed.due_s[job_id] = due_s
        else:
            await _surely(apis, "/delete", {"id": job_id})
            if time.time() < due_s - CLOCK_S:
                pushed.cancelled.add(job_id)
        await asyncio.sleep(0.002)


async def _surely(apis: tuple[Api, ...], path: str, payload: Json) -> None:
    while True:
        for api in apis:
            try:
                if (await api.call(path, payload)).code == 0:
                    return
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(0.05)


async def _until_ended(api: Api, ids: list[str]) -> dict[str, Json]:
    """The jobs, by id, once all of them have ended."""
    found: dict[str, Json] = {}

    async def have_all() -> bool:
        try:
            for at in range(0, len(ids), STATES_TOGETHER):
                some = (await api.call("/get", {"ids": ids[at : at + STATES_TOGETHER]})).ok()
                found.update({job["id"]: job for job in some})
        except (aiohttp.ClientError, TimeoutError, AssertionError):
            return False
        return all(job["ended"] for job in found.values())

    await until_async(have_all, within_s=DRAINED_S)
    return found
