"""Row 41: a shop commits jobs with its data, and everything on their way is killed in turn."""

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest

from delayqueue.client import AsyncClient, QueueError, TransportError
from faults import shop
from faults.bed import Bed, CannotRun, Figures, labelled
from tests.processes import POLL_S, Process, environment
from tests.relay.databases import KINDS, Database, running
from tests.waiting import until, until_async

DRAINED_S: Final = 120.0
DRAINED: Final = 10_000  # rows that are moved in that time, if they move at all
RELAYS: Final = 2
LEASE_S: Final = 3


class Program(Process):
    """A program that has nothing to get ready for."""

    def is_ready(self) -> bool:
        return True


class Worker:
    """Works on all jobs that are due, and notes what it got."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.bodies: dict[str, str] = {}  # of the jobs that it got
        self.ended: set[str] = set()  # those whose end was acknowledged
        self.after_their_end: list[str] = []
        self.again = 0  # deliveries of jobs that it had got before

    def has_ended_more_than(self, count: int) -> bool:
        """Whether jobs flow."""
        return len(self.ended) > count

    async def run(self) -> None:
        """Work until it is cancelled."""
        while True:
            try:
                for job in await self._client.pop_many(shop.NOW, count=100, wait=1):
                    if job.id in self.ended:
                        self.after_their_end.append(f"{job.id}, attempt {job.attempt}")
                    self.again += job.id in self.bodies
                    self.bodies[job.id] = job.body
                    await self._client.finish(job)
                    self.ended.add(job.id)
            except (TransportError, QueueError):
                await asyncio.sleep(0.05)


async def everything_killed(bed: Bed, *, kills: int) -> Figures:
    """With each database in turn."""
    figures: Figures = {}
    for kind in KINDS:
        try:
            with running(kind) as database:
                found = await _killed(bed, database, kills)
        except pytest.skip.Exception as missing:
            raise CannotRun(str(missing)) from None
        figures |= labelled({kind: found})
    return figures


async def _killed(bed: Bed, database: Database, kills: int) -> Figures:
    store = bed.store(fsync="always")  # what it has acknowledged it keeps, also on a slow disk
    server = await bed.server(store)
    database.execute(shop.LEDGER.format(serial=shop.SERIAL[database.kind]))
    settings: dict[str, object] = {"relay_dsn": database.dsn, "url": server.url}
    init = _program(bed, "init", settings, "delayqueue", "relay", "--init")
    await _start(init)
    assert await asyncio.to_thread(init.wait) == 0, init.log_tail()
    program = _program(bed, "shop", {}, "faults.shop", database.kind, str(database.port))
    relay = ("delayqueue", "relay", "--lease", str(LEASE_S))
    relays = [_program(bed, "relay", settings, *relay) for _ in range(RELAYS)]
    for process in (program, *relays):
        await _start(process)
    victims: Sequence[Process] = (program, *relays, server, store, database)
    killed: Counter[str] = Counter()
    async with AsyncClient(server.url, token="", retries=0) as client:
        worker = Worker(client)
        async with asyncio.TaskGroup() as group:
            working = group.create_task(worker.run())
            for number in range(kills):
                before = len(worker.ended)
                await until(partial(worker.has_ended_more_than, before), within_s=DRAINED_S)
                await bed.pause(0.05, 0.3)
                victim = victims[number % len(victims)]
                victim.kill()
                killed[victim.name] += 1
                await _start(victim)
            program.kill()
            while waiting := _waiting(database):  # the shop was quicker than the relays
                fewer = partial(_are_at_most, max(0, waiting - DRAINED), database)
                await until(fewer, within_s=DRAINED_S)
            committed = database.execute("SELECT job, body FROM ledger ORDER BY n")
            last = dict(committed)
            due = last.keys() - {*shop.TURNING}
            await until(lambda: worker.bodies.keys() >= due, within_s=DRAINED_S)
            # a finish that had no answer may not have been done
            await until_async(partial(_is_empty, client, shop.NOW), within_s=DRAINED_S)
            working.cancel()
        jobs = await client.get_many(shop.TURNING)
    assert worker.bodies == {job: last[job] for job in due}, "not what was committed"
    assert worker.after_their_end == [], f"delivered after their end: {worker.after_their_end}"
    left = {job.id: job.body for job in jobs if job and job.ended is None}
    turned = {job: last[job] for job in last.keys() - due}
    assert left == {job: body for job, body in turned.items() if body}, "not the last push"
    of_each = ", ".join(f"{name} {count}" for name, count in killed.items())
    return {
        "kills": f"{kills} ({of_each})",
        "jobs": len(due),
        "delivered again": worker.again,
        "changes of 20 ids": len(committed) - len(due),
    }


def _program(bed: Bed, name: str, settings: dict[str, object], *command: str) -> Program:
    home = bed.processes.home(name)
    python = [sys.executable, "-m", *command]
    program = Program(name, home, python, port=0, environment=environment(settings))
    return bed.processes.adopt(program)


async def _start(process: Process) -> None:
    """Start it, again if it ends: PostgreSQL does while the children of the one that was killed still end."""
    while True:
        process.launch()
        await until(lambda: process.exit_status() is not None or process.is_ready())
        if process.exit_status() in {None, 0}:
            return
        await asyncio.sleep(POLL_S)


async def _is_empty(client: AsyncClient, topic: str) -> bool:
    """Whether all jobs of the topic have ended."""
    (counts,) = await client.topics(topic)
    return not any((counts.delayed, counts.ready, counts.reserved, counts.buried))


def _waiting(database: Database) -> int:
    """How many rows wait. Raises AssertionError if one has failed."""
    [(count, failed)] = database.execute(f"SELECT COUNT(*), COUNT(failed) FROM {shop.OUTBOX}")
    assert not failed, f"{failed} rows have failed"
    return int(count)


def _are_at_most(count: int, database: Database) -> bool:
    return _waiting(database) <= count
