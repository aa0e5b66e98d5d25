"""The original server (ouqiang/delay-queue or a fork) under faults, beside ours: `--against PROGRAM`.

Both get the same clients, faults and checker: rows 2, 3 and 13, by the original's endpoints and in whole seconds. The
original has no failpoints: for row 3 a proxy makes each call to the store slow, and the server is killed at random.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from faults.bed import Bed, redis_of, restart
from faults.checker import Verdict
from faults.load import Load, Shape
from faults.proxy import Proxy
from faults.scenarios.clients import vanish
from tests.processes import LOOPBACK, Process, StoreServer, free_port

Scenario = Callable[[Bed, str], Coroutine[Any, Any, Verdict]]

OURS: Final = ""  # the program, if it is this project's server
KILLS: Final = 20
POLLS: Final = 100  # that vanish in a wave
WAVES: Final = 20
POLL_S: Final = 2  # the original waits for as long as its config says, whatever a client asks for
SLOW_S: Final = 0.02  # an answer of the store
PATIENCE_S: Final = 10.0  # TTR, tick and poll, and a margin
STEADY: Final = Shape(  # the original accepts no delay of 0
    batch=1, whole_seconds=True, least_delay_s=1, longest_delay_s=3, ttr_s=2
)
HEAVY: Final = replace(STEADY, producers=16, consumers=32, pause_s=0.0)
HEAD: Final = (
    "| server | row | pushed | acknowledged | lost | repeated | without a reason | early "
    "| after their end | seed |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


class OriginalServer(Process):
    """A server of the original's kind, which takes its settings from a file."""

    def __init__(self, program: str, home: Path, store_address: str) -> None:
        port = free_port()
        config = home / "delay-queue.conf"
        config.write_text(
            f"bind_address = {LOOPBACK}:{port}\n"
            f"redis.host = {store_address}\n"
            f"queue_block_timeout = {POLL_S}\n",
            encoding="utf-8",
        )
        super().__init__("original", home, [program, "-c", str(config)], port=port)
        self.url = f"http://{self.address}"


def compare(programs: Sequence[str], home: Path, seed: int | None) -> Iterator[str]:
    """The lines of a table: each scenario with each program, and with ours."""
    seed = random.randrange(10**6) if seed is None else seed
    yield HEAD
    for row, scenario in SCENARIOS.items():
        for number, program in enumerate([*programs, OURS]):
            bed = Bed(home / f"against-{row.partition(':')[0]}-{number}", seed)
            try:
                verdict = asyncio.run(scenario(bed, program))
            finally:
                bed.close()
            name = program.rpartition("/")[2] or "this server"
            yield f"| {name} | {row} | {' | '.join(map(str, _figures(verdict)))} | {seed} |"


def _figures(verdict: Verdict) -> tuple[int, ...]:
    broken = (verdict.unexplained, verdict.early, verdict.after_end)
    counts = verdict.attempted, verdict.acknowledged, len(verdict.lost), verdict.duplicates
    return *counts, *map(len, broken)


async def _killed(bed: Bed, program: str) -> Verdict:
    store = bed.store()
    return await _killed_at(bed, program, store, store.address, HEAVY)


async def _killed_between_calls(bed: Bed, program: str) -> Verdict:
    store = bed.store()
    async with Proxy(store.port) as proxy:
        proxy.delay_s = SLOW_S
        return await _killed_at(bed, program, store, proxy.address, STEADY)


async def _killed_at(
    bed: Bed, program: str, store: StoreServer, address: str, shape: Shape
) -> Verdict:
    server = await _server(bed, program, address)
    async with bed.load(server, shape=shape) as load:
        for _ in range(KILLS):
            await load.until_finished(1)
            await bed.pause(0.5, 2)
            load.history.fault("kill the server")
            server.kill()
            await restart(server)
        return await _judged(load, store)


async def _polls_vanish(bed: Bed, program: str) -> Verdict:
    """Waves of clients that vanish beside others that finish their jobs."""
    store = bed.store()
    server = await _server(bed, program, store.address)
    async with bed.load(server, shape=HEAVY) as load:
        for _ in range(WAVES):
            await load.until_finished(1)
            load.history.fault("clients vanish")
            await asyncio.gather(*(vanish(bed, server, load.topic) for _ in range(POLLS)))
        return await _judged(load, store)


async def _server(bed: Bed, program: str, store_address: str) -> Any:
    """A running server: one with a `url`."""
    if program == OURS:
        return await bed.server(redis__host=store_address, redis__db=1, queue_block_timeout=POLL_S)
    home = bed.processes.home("original")
    server = bed.processes.adopt(OriginalServer(program, home, store_address))
    await restart(server)
    return server


async def _judged(load: Load, store: StoreServer) -> Verdict:
    """The verdict; jobs that it calls lost are in no list and no set of the store, so they cannot come any more."""
    verdict = await load.finish(patience_s=PATIENCE_S)
    waiting: set[Any] = set()
    async with redis_of(store) as redis:
        async for key in redis.scan_iter(_type="zset"):
            waiting.update(await redis.zrange(key, 0, -1))
        async for key in redis.scan_iter(_type="list"):
            waiting.update(await redis.lrange(key, 0, -1))
    assert not waiting.intersection(job_id.encode() for job_id in verdict.lost)
    return verdict


SCENARIOS: Final[dict[str, Scenario]] = {
    "2: killed": _killed,
    "3: killed between calls": _killed_between_calls,
    "13: clients vanish in a long poll": _polls_vanish,
}
