"""Costs: memory per job, waiting polls, growth, the processor at rest."""

import time

from bench.load import fill, loading
from bench.measure import SLEEP_FROM_S, SLEEP_TO_S, Figure, Figures, Measure, Scale, new_topic
from bench.processes import (
    BenchError,
    connections,
    cpu_seconds,
    listeners,
    raise_file_limit,
    resident_bytes,
    wait_until,
)
from bench.rates import BODY_BYTES, push
from bench.target import Server
from bench.timing import lateness

LONG_BODY_BYTES = 200
SETTLE_S = 2.0  # for buffers to be freed
CONNECT_LIMIT_S = 60.0
REWRITE_LIMIT_S = 300.0  # for the append-only file, which a fill triggers
SPARE_FILES = 100


def memory(server: Server, scale: Scale) -> Figures:
    """Bytes of Redis per sleeping job, with a body of 40 and of 200 bytes."""
    return {
        f"body {size} B": Figure(_bytes_per_job(server, scale, size), "bytes/job")
        for size in (BODY_BYTES, LONG_BODY_BYTES)
    }


def _bytes_per_job(server: Server, scale: Scale, body_bytes: int) -> float:
    before = _settled_memory(server)
    filled = _put_to_sleep(server, scale.weighed_jobs, body_bytes)
    return (_settled_memory(server) - before) / filled


def _put_to_sleep(server: Server, jobs: int, body_bytes: int = BODY_BYTES) -> int:
    return fill(
        server,
        new_topic(),
        jobs,
        body_bytes=body_bytes,
        delay_from=SLEEP_FROM_S,
        delay_to=SLEEP_TO_S,
    ).jobs


def _settled_memory(server: Server) -> int:
    _settle(server)
    return int(server.store.info("used_memory"))


def _settle(server: Server) -> None:
    time.sleep(SETTLE_S)
    store = server.store
    wait_until(
        lambda: (
            not store.info("aof_rewrite_in_progress") and not store.info("aof_rewrite_scheduled")
        ),
        "rewriting the append-only file",
        REWRITE_LIMIT_S,
    )


def polls(server: Server, scale: Scale) -> Figures:
    """Clients that wait in /pop: the server's memory, its connections to Redis."""
    if scale.polls + SPARE_FILES > raise_file_limit():
        raise BenchError(f"{scale.polls} connections need more open files: raise ulimit -Hn")
    pids = listeners(server.port)
    before = resident_bytes(pids)
    with loading("wait.lua", server, new_topic(), connections=scale.polls):
        wait_until(lambda: connections(server.port) >= scale.polls, "polls", CONNECT_LIMIT_S)
        time.sleep(SETTLE_S)
        with_polls = resident_bytes(pids)
        clients = server.store.info("connected_clients") - 1  # ours
    return {
        "server": Figure(with_polls / 2**20, "MiB"),
        "a poll": Figure((with_polls - before) / scale.polls / 1000, "kB"),
        "Redis connections": Figure(clients, ""),
    }


def growth(server: Server, scale: Scale) -> Figures:
    """Push rate and lateness with more and more sleeping jobs."""
    figures: dict[str, Figure] = {}
    asleep = 0
    for level in sorted(scale.sleeping):
        if level > asleep:
            asleep += _put_to_sleep(server, level - asleep)
        _settle(server)
        late = lateness(server, scale)["p99"]
        rate = push(server, scale)["jobs"]
        asleep += round(rate.value * scale.seconds)
        figures |= {f"push at {level:,}": rate, f"p99 at {level:,}": late}
    return figures


def idle(server: Server, scale: Scale) -> Figures:
    """Processor time of server and Redis while many jobs sleep and no requests come."""
    _put_to_sleep(server, scale.idle_jobs)
    _settle(server)
    server_pids, store_pids = listeners(server.port), [int(server.store.info("process_id"))]
    before = cpu_seconds(server_pids), cpu_seconds(store_pids)
    time.sleep(scale.idle_seconds)
    after = cpu_seconds(server_pids), cpu_seconds(store_pids)
    used = [
        100 * (end - start) / scale.idle_seconds for start, end in zip(before, after, strict=True)
    ]
    return {
        "server": Figure(used[0], "% of a core"),
        "store": Figure(used[1], "% of a core"),
        "both": Figure(sum(used), "% of a core"),
    }


MEASURES = (
    Measure("memory", "bytes of Redis a sleeping job", memory, repeated=False),
    Measure("growth", "push rate and lateness over sleeping jobs", growth, repeated=False),
    Measure("idle", "processor at rest with a million sleeping jobs", idle, repeated=False),
    Measure("polls", "memory and Redis connections of waiting polls", polls, repeated=False),
)
