"""Row 25: masters are killed under load, and Sentinels or the Cluster promote their replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from redis.exceptions import ConnectionError as RedisConnectionError

from faults.bed import DATABASE, Bed, assert_fsck_finds_nothing, restart
from faults.load import Load, Shape
from tests.api_client import Api
from tests.clusters import StoreCluster, WatchedStore, ask
from tests.processes import Process, StoreServer
from tests.waiting import until, until_async

Figures = dict[str, Any]

RESUMES_S: Final = 30.0
FOLLOWS_S: Final = 30.0
MARKED_S: Final = 20.0  # a server adds to the history every ten seconds or so
BUCKETS: Final = 8
PLAIN: Final = "store"
SHAPE: Final = Shape(ttr_s=2)


async def masters_killed(bed: Bed, *, kills: int, durabilities: Sequence[str]) -> Figures:
    figures: Figures = {}
    for durability in durabilities:
        watched, cluster = WatchedStore(bed.processes), StoreCluster(bed.processes)
        found = await asyncio.gather(
            _killed(bed, watched, durability, 1, kills),
            _killed(bed, cluster, durability, BUCKETS, kills),
        )
        for name, of_kind in zip(("Sentinel", "Cluster"), found, strict=True):
            label = name if durability == PLAIN else f"{name}, {durability}"
            figures |= {f"{label}: {figure}": value for figure, value in of_kind.items()}
        watched.close()
        cluster.close()
    return figures


async def _killed(
    bed: Bed, store: WatchedStore | StoreCluster, durability: str, bucket_size: int, kills: int
) -> Figures:
    settings = store.settings(DATABASE) | {"bucket_size": bucket_size, "durability": durability}
    server = await bed.server(None, **{k.replace(".", "__"): v for k, v in settings.items()})
    nodes: list[Any] = list(store.nodes)
    resumed_s = []
    async with bed.load(server, shape=SHAPE) as load:
        for _ in range(kills):
            await load.until_finished(200)
            master = bed.random.choice([node for node in nodes if _is_master(node)])
            _until_replicated(master)
            come_back = partial(_come_back, master, nodes)
            if durability == PLAIN:
                resumed_s.append(await _kill(load, master, nodes))
                await come_back()
            else:  # it needs a replica to continue
                resumed_s.append(await _kill(load, master, nodes, come_back))
        verdict = await load.finish()
    async with bed.api(server) as api:
        await until_async(partial(_is_marked, api), within_s=MARKED_S)
    # what a master had not passed on is lost: pushes, and ends, whose jobs are then delivered again
    verdict.check(but=("lost", "after_end", "unexplained") if durability == PLAIN else ())
    await asyncio.to_thread(assert_fsck_finds_nothing, settings)
    return verdict.figures() | {
        "kills": kills,
        "after their end": len(verdict.after_end),
        "longest until all jobs flow again s": max(resumed_s),
    }


async def _is_marked(api: Api) -> bool:
    """Whether the history has a failover."""
    marks = (await api.call("/history", {})).ok()["marks"]
    return any(mark["kind"] == "failover" for mark in marks)


async def replace_master(bed: Bed, nodes: list[Any]) -> None:
    """Kill a master, and start it again once its replica is one, which needs it as its own replica to go on."""
    master = bed.random.choice([node for node in nodes if _is_master(node)])
    _until_replicated(master)
    masters = sum(_is_master(node) for node in nodes)
    master.kill()
    await _until_promoted(master, nodes, masters)
    await _come_back(master, nodes)


async def _until_promoted(master: StoreServer, nodes: list[StoreServer], masters: int) -> None:
    """Wait until there are as many masters without the killed one."""
    await until(
        lambda: sum(_is_master(node) for node in nodes if node is not master) == masters,
        within_s=RESUMES_S,
    )


async def _come_back(master: StoreServer, nodes: list[StoreServer]) -> None:
    """Restart a killed master, usually as a replica: Sentinels on a busy machine may change their minds."""
    masters = sum(_is_master(node) for node in nodes)
    await restart(master)
    await until(lambda: is_whole(nodes, masters), within_s=FOLLOWS_S)


async def _kill(
    load: Load,
    master: StoreServer,
    nodes: list[StoreServer],
    afterwards: Callable[[], Awaitable[None]] | None = None,
) -> float:
    """Kill the master. Returns how long it took until requests stopped failing, without a restart of the server."""
    loop = asyncio.get_running_loop()
    since_s = loop.time()
    load.history.fault("kill a master")
    masters = sum(_is_master(node) for node in nodes)
    master.kill()
    await _until_promoted(master, nodes, masters)
    if afterwards:
        await afterwards()
    failures = -1
    while failures != load.failures:
        failures = load.failures
        await load.until_finished(50, within_s=RESUMES_S)
    return round(loop.time() - since_s, 2)


def _is_master(node: Process) -> bool:
    return node.exit_status() is None and role_of(node)[0] == "master"


def role_of(node: Process) -> Any:
    """The role of a server. Sentinels that change it close all its connections, so it is asked again."""
    try:
        return ask(node, "ROLE")
    except RedisConnectionError:
        return ask(node, "ROLE")


def is_whole(nodes: Sequence[Process], masters: int) -> bool:
    """Whether there are this many masters, and all other servers follow one."""
    roles = [role_of(node) for node in nodes]
    followers = [role for role in roles if role[0] == "slave"]
    return len(roles) - len(followers) == masters and all(
        role[3] == "connected" for role in followers
    )


def _until_replicated(master: StoreServer) -> None:
    """A replica that does not follow yet cannot take over."""
    assert ask(master, "WAIT", 1, int(FOLLOWS_S * 1000)) >= 1
