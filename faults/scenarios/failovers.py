"""Row 25: masters are killed under load, and Sentinels or the Cluster promote their replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from redis.exceptions import ConnectionError as RedisConnectionError

from faults.bed import DATABASE, Bed, Figures, assert_fsck_finds_nothing, labelled, restart
from faults.load import Shape
from tests.api_client import Api
from tests.clusters import StoreCluster, WatchedStore, ask
from tests.processes import Process, StoreServer
from tests.waiting import until, until_async

Replicated = WatchedStore | StoreCluster

RESUMES_S: Final = 30.0
FOLLOWS_S: Final = 30.0
MARKED_S: Final = 20.0  # a server adds to the history every ten seconds or so
BUCKETS: Final = 8
PLAIN: Final = "store"
SHAPE: Final = Shape(ttr_s=2)


async def masters_killed(bed: Bed, *, kills: int, durabilities: Sequence[str]) -> Figures:
    figures: Figures = {}
    for durability in durabilities:
        found = await of_both_kinds(bed, partial(_killed, bed, durability, kills))
        suffix = "" if durability == PLAIN else f", {durability}"
        figures |= labelled({f"{kind}{suffix}": of_kind for kind, of_kind in found.items()})
    return figures


async def of_both_kinds(
    bed: Bed, work: Callable[[Replicated, int], Awaitable[Figures]]
) -> dict[str, Figures]:
    """What the work finds with a store behind Sentinels and a Cluster at the same time, and a number of buckets."""
    stores: list[Replicated] = [WatchedStore(bed.processes), StoreCluster(bed.processes)]
    found = await asyncio.gather(*map(work, stores, (1, BUCKETS)))
    for store in stores:
        store.close()
    return dict(zip(("Sentinel", "Cluster"), found, strict=True))


async def _killed(
    bed: Bed, durability: str, kills: int, store: Replicated, bucket_size: int
) -> Figures:
    settings = store.settings(DATABASE) | {"bucket_size": bucket_size, "durability": durability}
    server = await bed.server(None, **settings)
    nodes: list[Any] = list(store.nodes)
    resumed_s, loop = [], asyncio.get_running_loop()
    async with bed.load(server, shape=SHAPE) as load:
        for _ in range(kills):
            await load.until_finished(200)
            load.history.fault("kill a master")
            since_s = loop.time()
            master = await _kill_master(bed, nodes)
            if durability != PLAIN:  # it needs a replica to continue
                await _come_back(master, nodes)
            await load.until_none_fails(within_s=RESUMES_S)
            resumed_s.append(round(loop.time() - since_s, 2))
            if durability == PLAIN:
                await _come_back(master, nodes)
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
    await _come_back(await _kill_master(bed, nodes), nodes)


async def _kill_master(bed: Bed, nodes: list[Any]) -> StoreServer:
    """Kill one, and wait until there are as many without it. Returns it."""
    masters = [node for node in nodes if _is_master(node)]
    master: StoreServer = bed.random.choice(masters)
    await _until_replicated(master)
    master.kill()
    await until(lambda: sum(map(_is_master, nodes)) == len(masters), within_s=RESUMES_S)
    return master


async def _come_back(master: StoreServer, nodes: list[StoreServer]) -> None:
    """Restart a killed master, usually as a replica: Sentinels on a busy machine may change their minds."""
    masters = sum(_is_master(node) for node in nodes)
    await restart(master)
    await until(lambda: is_whole(nodes, masters), within_s=FOLLOWS_S)


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


async def _until_replicated(master: StoreServer) -> None:
    """Wait until a replica has all that the master has now: one that has just come lacks what followed its copy."""
    _, written, _ = role_of(master)
    await until(
        lambda: any(int(offset) >= written for *_, offset in role_of(master)[2]),
        within_s=FOLLOWS_S,
    )
