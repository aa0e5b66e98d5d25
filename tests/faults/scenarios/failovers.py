"""Row 25: masters are killed under load, and Sentinels or the Cluster put their replicas in their place."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tests.clusters import StoreCluster, WatchedStore, ask
from tests.faults.bed import DATABASE, assert_fsck_finds_nothing, restart
from tests.faults.load import Shape
from tests.waiting import until

if TYPE_CHECKING:
    from tests.faults.bed import Bed
    from tests.faults.checker import Verdict
    from tests.faults.load import Load
    from tests.processes import Process, Store, StoreServer

Figures = dict[str, Any]

RESUMES_S: Final = 30.0
FOLLOWS_S: Final = 30.0
BUCKETS: Final = 8
SHAPE: Final = Shape(ttr_s=2)


async def masters_killed(bed: Bed, *, kills: int) -> Figures:
    watched, cluster = WatchedStore(bed.processes), StoreCluster(bed.processes)
    found = await asyncio.gather(
        _killed(bed, watched, [watched.master, watched.replica], 1, kills),
        _killed(bed, cluster, cluster.nodes, BUCKETS, kills),
    )
    return {
        f"{name}: {figure}": value
        for name, figures in zip(("Sentinel", "Cluster"), found, strict=True)
        for figure, value in figures.items()
    }


async def _killed(
    bed: Bed, store: Store, nodes: list[Any], bucket_size: int, kills: int
) -> Figures:
    settings = store.settings(DATABASE) | {"bucket_size": bucket_size}
    server = await bed.server(None, **{k.replace(".", "__"): v for k, v in settings.items()})
    resumed_s = []
    async with bed.load(server, shape=SHAPE) as load:
        for _ in range(kills):
            await load.until_finished(200)
            master = bed.random.choice([node for node in nodes if _is_master(node)])
            _until_replicated(master)
            resumed_s.append(await _kill(load, master, nodes))
            await restart(master)
            await until(lambda master=master: _follows(master), within_s=FOLLOWS_S)  # type: ignore[misc]
        verdict = await load.finish()
    _check(verdict)
    await asyncio.to_thread(assert_fsck_finds_nothing, settings)
    return verdict.figures() | {
        "kills": kills,
        "late by the end": len(verdict.after_end),
        "longest until all jobs flow s": max(resumed_s),
    }


async def _kill(load: Load, master: StoreServer, nodes: list[StoreServer]) -> float:
    """Kill the master. Returns how long it took until no request failed any more, without a restart of the server."""
    loop = asyncio.get_running_loop()
    since_s = loop.time()
    load.history.fault("kill a master")
    masters = sum(_is_master(node) for node in nodes)
    master.kill()
    await until(
        lambda: sum(_is_master(node) for node in nodes if node is not master) == masters,
        within_s=RESUMES_S,
    )
    failures = -1
    while failures != load.failures:
        failures = load.failures
        await load.until_finished(50, within_s=RESUMES_S)
    return round(loop.time() - since_s, 2)


def _is_master(node: Process) -> bool:
    return node.exit_status() is None and ask(node, "ROLE")[0] == "master"


def _follows(node: Process) -> bool:
    role = ask(node, "ROLE")
    return bool(role[0] == "slave" and role[3] == "connected")


def _until_replicated(master: StoreServer) -> None:
    """A replica that does not follow yet cannot take over."""
    assert ask(master, "WAIT", 1, int(FOLLOWS_S * 1000)) >= 1


def _check(verdict: Verdict) -> None:
    """What a master had not passed on yet is lost: pushes (counted), and ends, so that their jobs come again."""
    assert not verdict.unexpected
    assert not verdict.early
