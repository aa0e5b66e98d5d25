"""Rows 40, 42 and 43: what happens while jobs call their URLs."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

import aiohttp

from delayqueue.tasks import batched
from faults.bed import (
    DATABASE,
    Bed,
    Figures,
    assert_fsck_finds_nothing,
    assert_whole,
    labelled,
    restart,
)
from faults.load import MOST_IDS, Shape
from faults.scenarios.clients import others_p99
from faults.scenarios.failovers import Replicated, of_both_kinds, replace_master
from tests.api_client import Api, Json
from tests.delivery.receiver import Receiver, receiving
from tests.delivery.strangers import BEHIND_A_BODY, ENDLESS, IN_A_BODY, sending, serving
from tests.hangups import NO_LINGER
from tests.processes import LOOPBACK, Process, QueueServer, free_port
from tests.waiting import until_async

LONGEST_DELAY_S: Final = 4.0
PUSH_PAUSE_S: Final = 0.002
TTR_S: Final = 2
DRAINED_S: Final = 90.0  # in which some more end
TRIES: Final = 3
MANY: Final = 60  # attempts
CLOCK_S: Final = 0.005  # between the store's milliseconds and ours
GRACE_S: Final = 0.5  # for a request that a killed server had sent
STATES_TOGETHER: Final = 500
AT_ONCE: Final = 100  # calls: all bad targets are one host
SWITCHES_MS: Final = 20  # calls are made in another thread of the same process


async def killed_while_calling(bed: Bed, *, jobs: int, kills: int) -> Figures:
    store = bed.store(fsync="always")
    settings = {"durability": "fsync", "calls": "yes", "call_allow": LOOPBACK}
    servers = [await bed.server(store, **settings) for _ in range(2)]
    pushed = Pushed()
    async with Target() as target, bed.api(servers[0]) as one, bed.api(servers[1]) as two:
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
        figures = await _judged(one, pushed, target)
    await assert_whole(store)
    return figures | {"kills": kills}


async def masters_killed_while_calling(bed: Bed, *, jobs: int, kills: int) -> Figures:
    return labelled(await of_both_kinds(bed, partial(_masters_killed, bed, jobs, kills)))


async def _masters_killed(
    bed: Bed, jobs: int, kills: int, store: Replicated, bucket_size: int
) -> Figures:
    settings = store.settings(DATABASE) | {"bucket_size": bucket_size, "durability": "replica"}
    settings |= {"calls": "yes", "call_allow": LOOPBACK}
    server = await bed.server(None, **settings)
    pushed = Pushed()
    async with Target() as target, bed.api(server) as api:
        pushing = asyncio.create_task(_push(bed, pushed, jobs, target, api))
        for _ in range(kills):
            await bed.pause(0.5, 1.5)
            await replace_master(bed, list(store.nodes))
        killed_while_pushing = not pushing.done()
        await pushing
        figures = await _judged(api, pushed, target)
    await asyncio.to_thread(assert_fsck_finds_nothing, settings)
    return figures | {"kills": kills, "all while pushing": killed_while_pushing}


async def _judged(api: Api, pushed: "Pushed", target: "Target") -> Figures:
    """The figures, once all have ended. Proves that each was called, and none too early or too late."""
    ended = await _until_ended(api, [*pushed.due_s])
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
    return {
        "jobs": len(pushed.due_s),
        "calls": len(calls),
        "repeated": len(calls) - len(first),
        "cancelled": len(pushed.cancelled),
    }


async def bad_targets(bed: Bed, *, jobs: int, calls: int) -> Figures:
    """Other topics' jobs, alone and while calls are made to targets that misbehave, each in another way."""
    settings = {"calls": "yes", "call_allow": LOOPBACK, "call_concurrency": AT_ONCE}
    server = await bed.server(bed.store(), **settings)
    alone_ms = await _others_p99_ms(bed, server, jobs)
    async with AsyncExitStack() as stack, bed.api(server) as api:
        ports = {way: stack.enter_context(serving(answer)) for way, answer in ANSWERS.items()}
        for way, what in ENDLESS.items():
            ports[way] = stack.enter_context(sending(what)).port
        pushed = [
            {
                "topic": f"{bed.topic}-calls",
                "id": f"{way}-{number}",
                "ttr": TTR_S,
                "retain": 3600,
                # on a busy machine even a status that counts may take longer than the timeout
                "retry": {"delays": [0.1] * (MANY if way in IN_A_BODY else 2)},
                "call": {"url": f"http://{LOOPBACK}:{port}/", "timeout": 1},
            }
            for number in range(calls)
            for way, port in ports.items()
        ]
        for part in batched(pushed, MOST_IDS):
            (await api.push_all(part)).ok()
        beside_ms = await _others_p99_ms(bed, server, jobs)
        ended = await _until_ended(api, [str(job["id"]) for job in pushed])
    by_way = {way: {ended[f"{way}-{n}"]["state"] for n in range(calls)} for way in ports}
    # a status counts although its body has no end; what follows a body may be read with it, or not
    wanted = {way: {"finished" if way in IN_A_BODY else "buried"} for way in ports}
    assert by_way == wanted | {way: by_way[way] for way in BEHIND_A_BODY}, by_way
    assert all(job["message"] or job["state"] == "finished" for job in ended.values())
    figures = {"ways": len(ports), "calls pushed": len(pushed)}
    return figures | others_p99(alone_ms, beside_ms, more_ms=SWITCHES_MS)


async def _others_p99_ms(bed: Bed, server: QueueServer, jobs: int) -> float:
    """The p99 of the lateness of other jobs. The machine may be busy, so the best of some tries counts."""
    tries_ms = []
    for _ in range(TRIES):
        async with bed.load(server, shape=Shape(batch=1, most=jobs // TRIES)) as load:
            await load.until_all_pushed()
            verdict = await load.finish()
        verdict.check()
        tries_ms.append(verdict.late_ms(0.99))
    return min(tries_ms)


def _hang(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.recv(65536)
        connection.recv(1)  # until the caller gives up


def _reset(connection: socket.socket) -> None:
    with connection:
        connection.recv(65536)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)


def _redirect(connection: socket.socket) -> None:
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")


ANSWERS: Final = {"hang": _hang, "reset": _reset, "redirect": _redirect}


_NEVER: Final[Json] = {"ended": float("inf")}


@dataclass
class Pushed:
    """The jobs that are to be called, with their due times, and those that were cancelled in time."""

    due_s: dict[str, float] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)


class Target:
    """What the jobs call while the `async with` block runs; it can be away."""

    def __init__(self) -> None:
        self.receiver = Receiver()
        self.receiver.port = free_port()
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(receiving(self.receiver))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        await self._open.aclose()
        yield
        await self._open.enter_async_context(receiving(self.receiver))


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
                "retry": {"delays": [0.3] * MANY},
                "call": {"url": target.receiver.url(bed.topic), "timeout": 1},
            },
        )
        if number % 5:
            pushed.due_s[job_id] = due_s
        else:
            await _surely(apis, "/delete", {"id": job_id})
            if time.time() < due_s - CLOCK_S:
                pushed.cancelled.add(job_id)
        await asyncio.sleep(PUSH_PAUSE_S)


async def _surely(apis: tuple[Api, ...], path: str, payload: Json) -> None:
    while True:
        for api in apis:
            try:
                if (await api.call(path, payload)).code == 0:
                    return
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(0.05)


async def _until_ended(api: Api, ids: list[str]) -> dict[str, Json]:
    """The jobs, by id, once all of them have ended or are buried. Raises AssertionError if no more do."""
    found: dict[str, Json] = {}
    ended = -1

    def count() -> int:
        return sum(bool(job["ended"]) or job["state"] == "buried" for job in found.values())

    async def have_more() -> bool:
        with suppress(aiohttp.ClientError, TimeoutError, AssertionError):
            for part in batched(ids, STATES_TOGETHER):
                some = (await api.call("/get", {"ids": part})).ok()
                found.update({job["id"]: job for job in some})
        return count() > ended

    while ended < len(ids):
        await until_async(have_more, within_s=DRAINED_S)
        ended = count()
    return found
