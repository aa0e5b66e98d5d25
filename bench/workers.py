"""What it costs that workers tell their names: the processor, the store's memory, and the list of them."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, Final

from bench.lists import Connection, begin, connect
from bench.measure import Figure, Measure, Outcome, Scale, new_topic
from bench.processes import cpu_seconds, listeners
from bench.target import Server

WORKERS: Final = 1_000
IN_HAND: Final = 10  # jobs of each
PAUSE_S: Final = 10  # a worker ends one of them so often, and takes another
SETTLE_S: Final = 20.0
MEASURED_S: Final = 30
BATCH: Final = 1_000  # jobs of a push
TTR_S: Final = 3_600
ROUNDS: Final = 5  # of /workers and /metrics
KEYS: Final = {"workers": "{dq_bucket_1}:workers", "jobs in hand": "{dq_bucket_1}:holders:*"}


def workers(server: Server, _scale: Scale) -> Outcome:
    """The cost of workers that do the same without names and with them."""
    without, named = (asyncio.run(working(server, named=named)) for named in (False, True))
    return Outcome({f"without names: {name}": each for name, each in without.items()} | named)


async def working(server: Server, *, named: bool) -> dict[str, Figure]:
    """All hold their jobs, end one now and then, and take another."""
    async with AsyncExitStack() as stack:
        topic, control = new_topic(), await connect(server.port, stack)
        jobs = [
            {"topic": topic, "id": f"{topic}-{number}", "ttr": TTR_S, "body": ""}
            for number in range(WORKERS * (IN_HAND + 2 * (MEASURED_S + round(SETTLE_S)) // PAUSE_S))
        ]
        for start in range(0, len(jobs), BATCH):
            await control.post("/push", jobs[start : start + BATCH])
        for number in range(WORKERS):
            asked: dict[str, Any] = {"topic": topic, "timeout": 0}
            if named:
                host = f"web-{number % 50}.shop.internal"
                asked["worker"] = {
                    "name": f"billing@{host}:{number}",
                    "version": "2.4.0",
                    "host": host,
                    "pid": number,
                    "concurrency": IN_HAND,
                }
            begin(work(await connect(server.port, stack), asked, number), stack)
        await asyncio.sleep(SETTLE_S)
        figures = await cost(server)
        figures |= await scraping(server, control)
        if named:
            for name, keys in KEYS.items():
                figures[f"in the store: {name}"] = Figure(server.seen().memory(keys) / 1024, "KiB")
            figures |= await listing(server, control)
        for start in range(0, len(jobs), BATCH):  # so that what follows begins as this did
            await control.post(
                "/delete", {"ids": [job["id"] for job in jobs[start : start + BATCH]]}
            )
        return figures


async def work(connection: Connection, asked: dict[str, Any], number: int) -> None:
    """One worker; they do not act all at once."""
    held: list[Any] = []
    while len(held) < IN_HAND:
        held += await connection.post("/pop", asked | {"count": IN_HAND - len(held)})
    await asyncio.sleep(PAUSE_S * number / WORKERS)
    while True:
        job = held.pop(0)
        await connection.post("/finish", {"id": job["id"], "receipt": job["receipt"]})
        held.append(await connection.post("/pop", asked))
        await asyncio.sleep(PAUSE_S)


async def cost(server: Server) -> dict[str, Figure]:
    """The processor time of server and store, and what the store writes into its append-only file."""
    store = server.seen()
    pids = {"server": listeners(server.port), "store": [int(store.info("process_id"))]}
    before_s = {name: cpu_seconds(each) for name, each in pids.items()}
    written, commands = int(store.info("aof_current_size")), store.commands()
    await asyncio.sleep(MEASURED_S)
    figures = {
        name: Figure(100 * (cpu_seconds(each) - before_s[name]) / MEASURED_S, "% of a core")
        for name, each in pids.items()
    }
    return figures | {
        "commands": Figure((store.commands() - commands) / MEASURED_S, "/s"),
        "append-only file": Figure(
            (int(store.info("aof_current_size")) - written) / 1024 / MEASURED_S, "KiB/s"
        ),
    }


async def scraping(server: Server, connection: Connection) -> dict[str, Figure]:
    """The processor time of the server for /metrics, which counts the workers."""
    pids = listeners(server.port)
    before_s = cpu_seconds(pids)
    for _ in range(ROUNDS):
        await connection.read("/metrics")
    return {"/metrics": Figure(1000 * (cpu_seconds(pids) - before_s) / ROUNDS, "ms of the server")}


async def listing(server: Server, connection: Connection) -> dict[str, Figure]:
    """The processor time of the server for /workers, and how large the answer is."""
    pids = listeners(server.port)
    before_s = cpu_seconds(pids)
    found = [await connection.post("/workers", {}) for _ in range(ROUNDS)]
    used_s = cpu_seconds(pids) - before_s
    return {
        "/workers": Figure(1000 * used_s / ROUNDS, "ms of the server"),
        "/workers: answer": Figure(len(json.dumps(found[0])) / 1024, "KiB"),
    }


MEASURES: Final = (
    Measure(
        "workers",
        f"what it costs that {WORKERS:,} workers tell their names",
        workers,
        repeated=False,
        by_default=False,
    ),
)
