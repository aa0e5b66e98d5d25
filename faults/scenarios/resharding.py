"""Row 44: the slot of a bucket moves back and forth between the masters of a Cluster, under load.

Redis moves a slot key by key: until all of its keys are there, every call for the bucket is refused. Valkey 9 can also
move it as a whole (`CLUSTER MIGRATESLOTS`): only the last moment of a move is noticed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from redis.crc import key_slot

from delayqueue.store.keys import BucketKeys
from faults.bed import DATABASE, Bed, Figures, assert_fsck_finds_nothing, labelled
from faults.load import Shape
from tests.clusters import UNHURRIED, ClusterNode, StoreCluster, ask
from tests.processes import redis_binary, valkey_binary
from tests.waiting import until_async

Move = Callable[[StoreCluster, int, ClusterNode, ClusterNode], Awaitable[None]]

SERVERS: Final = 2
BUCKETS: Final = 2
MASTERS: Final = 2
AT_ONCE: Final = 20  # keys
MOVE_S: Final = 30.0
SHAPE: Final = Shape(producers=8, consumers=24, ttr_s=2)


async def slots_move(bed: Bed, *, seconds: float) -> Figures:
    """On Redis key by key, and on Valkey as a whole."""
    ways = {"Redis": (redis_binary(), key_by_key), "Valkey": (valkey_binary(), as_a_whole)}
    figures: Figures = {}
    for name, (binary, move) in ways.items():
        cluster = StoreCluster(bed.processes, *UNHURRIED, shards=MASTERS, replicas=0, binary=binary)
        found = await _moved(bed, cluster, move, seconds)
        figures |= labelled({name: found})
        cluster.close()
    return figures


async def _moved(bed: Bed, cluster: StoreCluster, move: Move, seconds: float) -> Figures:
    settings = cluster.settings(DATABASE) | {"bucket_size": BUCKETS}
    servers = [await bed.server(None, **settings) for _ in range(SERVERS)]
    tag = BucketKeys.of(1, str(settings["bucket_name"]), "%s").tag
    slot, moves = key_slot(tag.encode()), 0
    until_s = asyncio.get_running_loop().time() + seconds
    async with bed.load(*servers, shape=SHAPE) as load:
        while asyncio.get_running_loop().time() < until_s:
            await load.until_finished(100)
            source = await asyncio.to_thread(cluster.holder, tag)
            target = bed.random.choice(
                [each for each in cluster.nodes[:MASTERS] if each is not source]
            )
            load.history.fault(f"slot {slot} moves from {source.address} to {target.address}")
            await move(cluster, slot, source, target)
            load.history.fault("it is there")
            moves += 1
        verdict = await load.finish()
    verdict.check()
    await asyncio.to_thread(assert_fsck_finds_nothing, settings)
    for server in servers:
        assert server.stop() == 0, server.log_tail()
        assert "Traceback" not in server.logged(), server.logged()
    return verdict.figures() | {"moves": moves}


async def key_by_key(
    cluster: StoreCluster, slot: int, source: ClusterNode, target: ClusterNode
) -> None:
    """As `redis-cli --cluster reshard` does it."""

    async def set_slot(node: ClusterNode, *words: str) -> None:
        assert await asyncio.to_thread(ask, node, "CLUSTER", "SETSLOT", slot, *words) == "OK"

    await set_slot(target, "IMPORTING", source.node_id)
    await set_slot(source, "MIGRATING", target.node_id)
    place = (target.host, target.port, "", 0, int(1000 * MOVE_S))
    while keys := await asyncio.to_thread(ask, source, "CLUSTER", "GETKEYSINSLOT", slot, AT_ONCE):
        await asyncio.to_thread(ask, source, "MIGRATE", *place, "KEYS", *keys)
    for node in (target, source, *cluster.nodes[:MASTERS]):
        await set_slot(node, "NODE", target.node_id)


async def as_a_whole(
    cluster: StoreCluster, slot: int, source: ClusterNode, target: ClusterNode
) -> None:
    """As Valkey does it from version 9 on."""

    async def is_there() -> bool:
        slots = await asyncio.to_thread(ask, source, "CLUSTER", "SLOTS")
        return any(
            first <= slot <= last and port == target.port
            for first, last, (_, port, *_), *_ in slots
        )

    words = ("SLOTSRANGE", slot, slot, "NODE", target.node_id)
    assert await asyncio.to_thread(ask, source, "CLUSTER", "MIGRATESLOTS", *words) == "OK"
    await until_async(is_there, within_s=MOVE_S)
