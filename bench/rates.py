"""How many jobs a second: push, pop, the whole cycle."""

from typing import Any

from bench.load import LARGE_BATCH, Tally, fill, run
from bench.measure import (
    SLEEP_FROM_S,
    SLEEP_TO_S,
    Figure,
    Figures,
    Measure,
    Scale,
    new_topic,
    per_second,
)
from bench.processes import cpu_seconds, listeners, wait_until
from bench.target import Server

BODY_BYTES = 40
# the smallest delay that ouqiang/delay-queue takes
SHORTEST_DELAY_S = 1
READY_LIMIT_S = 120.0
# wrk needs a moment to stop, and an empty list would be measured as waiting
POPPED_SHARE = 0.75


class Processor:
    """The processor time of a server and its store, from now on.

    It is steadier than a rate on a shared machine, and it is what people pay for.
    """

    def __init__(self, server: Server) -> None:
        self._servers = listeners(server.port)
        self._stores = [int(server.store.info("process_id"))]
        self._before_s = self._used_s()

    def _used_s(self) -> tuple[float, float]:
        return cpu_seconds(self._servers), cpu_seconds(self._stores)

    def spent(self, jobs: int) -> dict[str, Figure]:
        """The figures of a load of `jobs` jobs."""
        server_us, store_us = (
            1e6 * (after - before) / jobs
            for before, after in zip(self._before_s, self._used_s(), strict=True)
        )
        parts = {"server": server_us, "store": store_us, "both": server_us + store_us}
        return {part: Figure(value, "µs of processor a job") for part, value in parts.items()}


def _rate(
    server: Server, script: str, topic: str, **options: Any
) -> tuple[Tally, dict[str, Figure]]:
    """Run a load: its tally, and the figures of every rate."""
    processor = Processor(server)
    tally = run(script, server, topic, **options)
    return tally, {"jobs": per_second(tally.rate)} | processor.spent(tally.jobs)


def _push(
    server: Server, scale: Scale, connections: int, batch: int = 1, *, connect: bool = False
) -> Figures:
    tally, figures = _rate(
        server,
        "push.lua",
        new_topic(),
        connections=connections,
        connect=connect,
        seconds=scale.seconds,
        batch=batch,
        body_bytes=BODY_BYTES,
        delay_from=SLEEP_FROM_S,
        delay_to=SLEEP_TO_S,
    )
    return figures | {"answer p99": Figure(tally.answer_ms_p99, "ms")}


def push(server: Server, scale: Scale) -> Figures:
    """One job a request, 32 connections."""
    return _push(server, scale, connections=32)


def push128(server: Server, scale: Scale) -> Figures:
    """One job a request, 128 connections."""
    return _push(server, scale, connections=128)


def connect(server: Server, scale: Scale) -> Figures:
    """One job a request on a new connection, 32 at once: what curl in PHP-FPM does."""
    return _push(server, scale, connections=32, connect=True)


def batch(server: Server, scale: Scale) -> Figures:
    """Arrays of 100 jobs, 8 connections; one by one if the server does not know arrays."""
    return _push(server, scale, connections=8, batch=LARGE_BATCH)


def _ready(server: Server, wanted: int) -> tuple[str, int]:
    """A topic with about `wanted` ready jobs, and their number."""
    topic = new_topic()
    filled = fill(
        server,
        topic,
        wanted,
        body_bytes=BODY_BYTES,
        delay_from=SHORTEST_DELAY_S,
        delay_to=SHORTEST_DELAY_S,
    )
    wait_until(lambda: server.ready(topic) >= filled.jobs, "jobs to pop", READY_LIMIT_S)
    return topic, filled.jobs


def pop(server: Server, scale: Scale) -> Figures:
    """Ready jobs, one a request, 32 connections; the list is never empty."""
    topic, jobs = _ready(server, scale.pop_jobs)
    count = jobs * POPPED_SHARE
    tally, figures = _rate(server, "pop.lua", topic, connections=32, seconds=60, count=count)
    return figures | {"answer p99": Figure(tally.answer_ms_p99, "ms")}


def cycle(server: Server, scale: Scale) -> Figures:
    """Push, pop and finish in balance, 32 connections; counted when finished."""
    topic, _ = _ready(server, scale.cycle_depth)
    _, figures = _rate(
        server,
        "cycle.lua",
        topic,
        connections=32,
        seconds=2 * scale.seconds,
        body_bytes=BODY_BYTES,
    )
    return figures


MEASURES = (
    Measure("push", "push, one job a request, 32 connections", push),
    Measure("push128", "push, one job a request, 128 connections", push128),
    Measure("connect", "push, a new connection for each, 32 at once", connect),
    Measure("batch", "push in batches of 100 (one by one where there are none)", batch),
    Measure("pop", "pop ready jobs, 32 connections", pop),
    Measure("cycle", "push, pop, finish in balance, 32 connections", cycle),
)
