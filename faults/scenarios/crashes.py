"""Rows 1 to 6, 23 and 24: nothing breaks; servers and stores are killed; a file is torn."""

import asyncio
import os
from pathlib import Path
from typing import Final

from delayqueue.config.failpoint import EXIT_STATUS
from faults.bed import BACK_S, Bed, Figures, judged, restart
from faults.history import KILL_EVERYSEC
from faults.load import Load, Shape
from tests.processes import LOOPBACK, Process, StoreServer, free_port
from tests.waiting import until

VERBS: Final = ("push", "pop", "tick", "finish")
FAILPOINTS: Final = [f"{verb}.{when}" for verb in VERBS for when in ("before", "after")]
CHILD_GONE_S: Final = 1.0
FAR_S: Final = 3600


async def nothing_breaks(bed: Bed, *, jobs: int, longest_delay_s: float) -> Figures:
    store, server = await bed.pair()
    shape = Shape(most=jobs, longest_delay_s=longest_delay_s, ttr_s=30, batch=20)
    async with bed.load(server, shape=shape) as load:
        await load.until_all_pushed()
        await load.until_finished(jobs - load.finished)
        verdict = await judged(load, store, watch_s=1)
    assert verdict.duplicates == 0
    late = {f"p{share * 100:g} late ms": verdict.late_ms(share) for share in (0.5, 0.99, 1)}
    return verdict.figures() | late


async def server_killed(
    bed: Bed, *, kills: int, pause_s: tuple[float, float], beanstalk: bool = False
) -> Figures:
    store, server = await bed.pair(beanstalk=beanstalk)
    loading = bed.beanstalk_load if beanstalk else bed.load
    async with loading(server, shape=Shape(longest_delay_s=5, ttr_s=2)) as load:
        what = "kill the server"
        return await _killed(bed, load, store, server, what=what, kills=kills, pause_s=pause_s)


async def redis_killed(bed: Bed, *, kills: int, fsync: str) -> Figures:
    store = bed.store(fsync=fsync)
    server = await bed.server(store, durability="fsync" if fsync == "always" else "store")
    what = KILL_EVERYSEC if fsync == "everysec" else "kill Redis"
    async with bed.load(server, shape=Shape(longest_delay_s=3, ttr_s=2)) as load:
        return await _killed(bed, load, store, store, what=what, kills=kills, pause_s=(1, 3))


async def _killed(
    bed: Bed,
    load: Load,
    store: StoreServer,
    victim: Process,
    *,
    what: str,
    kills: int,
    pause_s: tuple[float, float],
) -> Figures:
    """Kill again and again. How long the restart and the first jobs after it took, which must flow within BACK_S."""
    flowing_s, loop = [], asyncio.get_running_loop()
    for _ in range(kills):
        await bed.pause(*pause_s)
        load.history.fault(what)
        victim.kill()
        await bed.pause(0, 1)
        since_s = loop.time()
        await restart(victim)
        await load.until_finished(1, within_s=BACK_S)
        flowing_s.append(round(loop.time() - since_s, 2))
    verdict = await judged(load, store)
    assert load.failures > 0
    return verdict.figures() | {"kills": kills, "longest until jobs flow s": max(flowing_s)}


async def server_killed_at_failpoints(bed: Bed, *, rounds: int) -> Figures:
    """All failpoints at the same time, each with a server, a database and a load of its own."""
    totals: Figures = {}
    for _ in range(rounds):
        found = await asyncio.gather(*(_killed_at(bed, place) for place in FAILPOINTS))
        for figures in found:
            totals = {key: totals.get(key, 0) + value for key, value in figures.items()}
    return totals | {"failpoints": len(FAILPOINTS), "rounds": rounds}


async def _killed_at(bed: Bed, place: str) -> Figures:
    store = bed.store()
    address = f"{LOOPBACK}:{free_port()}"
    number = bed.random.randint(2, 12)
    doomed = await bed.server(store, bind_address=address, failpoint=f"{place}:{number}")
    successor = bed.new_server(store, bind_address=address)
    async with bed.load(doomed, shape=Shape(producers=1, consumers=2, pause_s=0.05)) as load:
        await until(lambda: doomed.exit_status() is not None, within_s=60)
        assert doomed.exit_status() == EXIT_STATUS, place
        load.history.fault(f"ended at {place}, reached {number} times")
        await restart(successor)
        await load.until_finished(50)
        verdict = await judged(load, store)
    successor.close()
    store.close()
    return verdict.figures()


async def torn_file(bed: Bed, *, cuts: int, jobs: int) -> Figures:
    """A crash of the machine in the middle of a write: the embedded store's file ends in half a command."""
    lost_at_most = 0
    for cut in range(cuts):
        server = await bed.server()
        async with bed.api(server) as api:
            ids = [f"{bed.topic}/{cut}/{n}" for n in range(jobs)]
            for job_id in ids:
                (await api.push(topic=bed.topic, id=job_id, delay=FAR_S)).ok()
        child = server.children()[0]
        server.kill()
        await _gone_after(child)
        [file] = (server.home / "data").rglob("*.incr.aof")
        os.truncate(file, file.stat().st_size - bed.random.randint(1, 100))
        server.start()
        assert "runcat" in server.logged(), "the log does not tell"
        async with bed.api(server) as api:
            found = (await api.call("/get", {"ids": ids})).ok()
            kept = [job is not None for job in found]
            assert kept == sorted(kept, reverse=True), "a job before the tail is missing"
            lost_at_most = max(lost_at_most, kept.count(False))
            (await api.push(topic=bed.topic, id="after")).ok()
            assert (await api.pop(bed.topic)).ok()["id"] == "after"
        server.close()
    assert lost_at_most <= 1
    return {"cuts": cuts, "jobs": cuts * jobs, "most lost by a cut": lost_at_most}


async def two_servers_killed(bed: Bed, *, kills: int) -> Figures:
    store = bed.store()
    servers = [await bed.server(store) for _ in range(2)]
    async with bed.load(*servers, shape=Shape(longest_delay_s=2, ttr_s=2)) as load:
        for kill in range(kills):
            await bed.pause(0.5, 2)
            load.history.fault("kill one of two servers")
            servers[kill % 2].kill()
            await load.until_finished(50, within_s=BACK_S)
            await restart(servers[kill % 2])
        verdict = await judged(load, store)
    return verdict.figures() | {"kills": kills}


async def embedded_twice_and_orphaned(bed: Bed, *, kills: int) -> Figures:
    server = await bed.server()
    second = bed.new_server(None, data_dir=server.home / "data")
    second.launch()
    refusal = second.wait()
    assert refusal != 0
    assert "data" in second.logged(), second.logged()
    gone_s = []
    async with bed.load(server, shape=Shape(ttr_s=1)) as load:
        for _ in range(kills):
            await load.until_acknowledged(100)
            child = server.children()[0]
            load.history.fault("kill the server that owns the store")
            server.kill()
            gone_s.append(await _gone_after(child))
            await restart(server)
        verdict = await load.finish()
    verdict.check()
    return verdict.figures() | {
        "kills": kills,
        "the second server's status": refusal,
        "longest until the child is gone s": max(gone_s),
    }


async def _gone_after(pid: int) -> float:
    loop = asyncio.get_running_loop()
    since_s = loop.time()

    def gone() -> bool:
        try:
            status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return True
        return status.rpartition(")")[2].split()[0] == "Z"

    await until(gone, within_s=CHILD_GONE_S)
    return round(loop.time() - since_s, 3)
