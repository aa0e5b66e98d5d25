"""Row 28: the number of buckets is changed under load, and who changes it is killed again and again.

Each change is ended by two at once, while a server sleeps and the store starts again, or a master of it is replaced.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from delayqueue.config.failpoint import EXIT_STATUS
from faults.bed import DATABASE, Bed, Figures, assert_fsck_finds_nothing, labelled, program, restart
from faults.load import Load, Shape
from faults.scenarios.failovers import replace_master
from tests.clusters import UNHURRIED, StoreCluster
from tests.processes import QueueServer, StoreServer
from tests.waiting import until

Break = Callable[[], Awaitable[None]]

STEPS: Final = ("export", "import", "confirm", "drop_ghosts", "split_limits")
PLACES: Final = [f"{step}.{when}" for step in STEPS for when in ("before", "after")]
BATCH: Final = 500
FAR_S: Final = 86_400
MOVE_S: Final = 240.0  # a failover in it takes seconds, and then it looks through everything again
BROKEN: Final = 0.3  # of the movers that are killed: beside them, the store breaks, too
KILLED: Final = -9
UNREACHABLE: Final = 3
OTHER: Final = "somebody else is changing the number of buckets"
USAGE: Final = 2


async def buckets_changed(
    bed: Bed, *, sizes: Sequence[int], kills: int, sleepers: int, cluster: bool
) -> Figures:
    """On one Redis, and with `cluster` also on three masters."""
    store = bed.store()
    breaks: Break = partial(_start_again, store)
    runs = {"one Redis": _changed(bed, store.settings(DATABASE), breaks, sizes, kills, sleepers)}
    if cluster:
        # only a master that is killed shall be replaced, not one that a busy machine holds up
        masters = StoreCluster(bed.processes, *UNHURRIED)
        settings = masters.settings(DATABASE) | {"durability": "replica"}
        breaks = partial(replace_master, bed, list(masters.nodes))
        runs["Cluster"] = _changed(bed, settings, breaks, sizes, kills, sleepers)
    found = await asyncio.gather(*runs.values())
    return labelled(dict(zip(runs, found, strict=True)))


async def _start_again(store: StoreServer) -> None:
    """To another process of it the mover's cursors mean nothing."""
    await asyncio.to_thread(store.stop)
    await restart(store)


async def _changed(
    bed: Bed,
    settings: dict[str, object],
    breaks: Break,
    sizes: Sequence[int],
    kills: int,
    sleepers: int,
) -> Figures:
    servers = [await bed.server(None, bucket_size=1, **settings) for _ in range(2)]
    await _push_sleepers(bed, servers[0], sleepers)
    ended = 0
    async with bed.load(*servers, shape=Shape(ttr_s=2)) as load:
        await load.until_finished(100)
        before = 1
        for size in sizes:
            settings = settings | {"bucket_size": before}
            for _ in range(kills):
                ended += await _moved_and_killed(bed, load, settings, breaks, size)
                await _restarted(bed, load, servers)
            asleep = bed.random.choice(servers)
            load.history.fault("a server sleeps")
            asleep.freeze()
            moving = asyncio.gather(
                *(asyncio.to_thread(_moved_to_the_end, settings, size) for _ in range(2))
            )
            await bed.pause(0.3, 1.5)
            load.history.fault("the store breaks")
            await breaks()
            outputs = await moving
            while not any("moved" in output for output in outputs):  # the last one's begin was lost
                outputs.append(await asyncio.to_thread(_moved_to_the_end, settings, size))
            asleep.thaw()
            load.history.fault("; ".join(outputs))
            await load.until_finished(100)
            before = size
        verdict = await load.finish()
    verdict.check()
    settings = settings | {"bucket_size": before}
    assert "moved 0 jobs" in await asyncio.to_thread(_moved_to_the_end, settings, before)
    await asyncio.to_thread(assert_fsck_finds_nothing, settings)
    await _count_sleepers(bed, servers[1], sleepers)
    return verdict.figures() | {"changes": len(sizes), "movers killed": ended}


async def _moved_and_killed(
    bed: Bed, load: Load, settings: dict[str, object], breaks: Break, size: int
) -> int:
    """1 if the mover was killed before it was done: at one of its steps, or anywhere."""
    place = bed.random.choice([*PLACES, ""])
    named = settings | ({"failpoint": f"{place}:{bed.random.randint(1, 20)}"} if place else {})
    mover = program(named, "rebalance", "--buckets", str(size))
    if bed.random.random() < BROKEN:
        await bed.pause(0.3, 1.5)
        load.history.fault("the store breaks")
        await breaks()
    with suppress(AssertionError):
        await until(lambda: mover.poll() is not None, within_s=bed.random.uniform(0.5, 3))
    mover.kill()
    output, _ = mover.communicate()
    load.history.fault(f"mover to {size} ended at {place or 'any place'}: {output}")
    assert mover.returncode in {0, EXIT_STATUS, KILLED, UNREACHABLE, USAGE}, output
    return int(mover.returncode != 0)


async def _restarted(bed: Bed, load: Load, servers: Sequence[QueueServer]) -> None:
    """One of them is killed, every other time."""
    if bed.random.random() < 0.5:
        server = bed.random.choice(servers)
        load.history.fault("kill a server")
        server.kill()
        server.launch()  # it is ready once the number of buckets is changed


def _moved_to_the_end(settings: dict[str, object], size: int) -> str:
    """What the mover prints. It is started again, as by a person, if it cannot reach the store."""
    until_s = time.monotonic() + MOVE_S
    while True:
        mover = program(settings, "rebalance", "--buckets", str(size))
        output, _ = mover.communicate(timeout=MOVE_S)
        if mover.returncode == 0 or OTHER in output:
            return output
        assert mover.returncode in {USAGE, UNREACHABLE}, output
        assert time.monotonic() < until_s, output


async def _push_sleepers(bed: Bed, server: QueueServer, count: int) -> None:
    async with bed.api(server) as api:
        for first in range(0, count, BATCH):
            jobs = [
                {"topic": "sleepers", "id": f"sleeper/{n}", "delay": FAR_S, "body": "z"}
                for n in range(first, first + BATCH)
            ]
            (await api.push_all(jobs)).ok()


async def _count_sleepers(bed: Bed, server: QueueServer, count: int) -> None:
    async with bed.api(server) as api:
        [topic] = (await api.call("/topics", {"topics": ["sleepers"]})).ok()
        assert topic["delayed"] == count, topic
        found = (await api.call("/get", {"ids": [f"sleeper/{n}" for n in range(BATCH)]})).ok()
        assert {job["state"] for job in found} == {"delayed"}
