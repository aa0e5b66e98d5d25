"""THE table of the matrix: every row of the plan, what it runs, how large in full and in `make test`."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.faults.bed import Bed, CannotRun
from tests.faults.scenarios import (
    beanstalk,
    clients,
    crashes,
    failovers,
    inputs,
    long_run,
    outages,
    partitions,
    random_operations,
    rebalances,
    upgrades,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

Figures = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One kind of fault. `small` are the sizes of `make test`; None = only `make faults` runs it."""

    number: int
    fault: str
    passes: str
    run: Callable[..., Coroutine[Any, Any, Figures]] | None
    full: Figures = field(default_factory=dict)
    small: Figures | None = None
    not_run: str = ""  # why there is no scenario, or what it leaves out
    both_wrappings: bool = False  # in full, it runs once more on a store without functions


@dataclass(frozen=True)
class Outcome:
    """What became of a row. `failure` and `not_run` are "" where it passed."""

    row: Row
    seed: int
    took_s: float
    figures: Figures
    failure: str = ""
    not_run: str = ""
    logs: str = ""


GLOBAL: Final = "nothing lost, early, unexplained or after its end"

ROWS: Final = (
    Row(
        1,
        "none",
        "no duplicate; lateness reported",
        crashes.nothing_breaks,
        {"jobs": 20_000, "longest_delay_s": 5.0},
        {"jobs": 2000, "longest_delay_s": 1.0},
    ),
    Row(
        2,
        "server killed under load",
        f"{GLOBAL}; jobs flow within 5 s",
        crashes.server_killed,
        {"kills": 20, "pause_s": (2, 5)},
    ),
    Row(
        3,
        "server killed at each call to the store",
        f"{GLOBAL}, for every failpoint",
        crashes.server_killed_at_failpoints,
        {"rounds": 4},
        {"rounds": 1},
    ),
    Row(
        4,
        "Redis killed, appendfsync everysec",
        f"{GLOBAL}; jobs flow within 5 s",
        crashes.redis_killed,
        {"kills": 20, "fsync": "everysec"},
    ),
    Row(
        5,
        "Redis killed, durability = fsync",
        f"{GLOBAL}; jobs flow within 5 s",
        crashes.redis_killed,
        {"kills": 20, "fsync": "always"},
    ),
    Row(
        6,
        "1 to 100 bytes torn off the append-only file",
        "starts, logs it, loses at most the torn command",
        crashes.torn_file,
        {"cuts": 20, "jobs": 200},
    ),
    Row(
        7,
        "Redis frozen",
        "503 within 6 s, /healthz 200, /readyz 503, polls keep waiting",
        outages.redis_frozen,
        {"freeze_s": 15},
    ),
    Row(
        8,
        "network to Redis cut, half open, answers dropped",
        f"{GLOBAL}; back within 5 s (half open: once its silence is noticed)",
        outages.network_broken,
        {"rounds": 10},
    ),
    Row(
        9,
        "functions and scripts flushed under load; Redis restarted while idle",
        "no client sees an error",
        outages.scripts_flushed,
        {"flushes": 100, "restarts": 10},
        {"flushes": 5, "restarts": 2},
        both_wrappings=True,
    ),
    Row(
        10,
        "disk full",
        "push is 503, and counted; nothing acknowledged is missing, also after a kill",
        outages.disk_full,
        {"rounds": 5},
    ),
    Row(
        11,
        "memory full",
        "push is 503; pop, finish and delete work; nothing acknowledged is missing",
        outages.memory_full,
        {"jobs": 1000},
        both_wrappings=True,
    ),
    Row(
        12,
        "clocks wrong by an hour",
        "server's clock: no effect; store's clock: late by at most the jump",
        outages.clocks_wrong,
        {"jobs": 2000},
    ),
    Row(
        13,
        "clients vanish in a long poll",
        "nothing lost; what reached nobody is ready again within 1 s; no waiter left",
        clients.polls_vanish,
        {"polls": 1000, "jobs": 1000},
        {"polls": 200, "jobs": 200},
    ),
    Row(
        14,
        "consumer dies after pop",
        "comes again at its TTR (within 1 s), attempt + 1; then buried; all counted",
        clients.consumer_dies,
        {"jobs": 1000},
        {"jobs": 100},
    ),
    Row(
        15,
        "late finish",
        "a stale receipt is refused, the new holder undisturbed",
        clients.late_finish,
        {"jobs": 500, "ttr_s": 6},
        {"jobs": 40, "ttr_s": 2},
    ),
    Row(
        16,
        "one id pushed 100 times at once",
        "one job, of the last wave",
        clients.one_id_at_once,
        {"rounds": 50},
        {"rounds": 3},
    ),
    Row(
        17,
        "poisoned store",
        "other topics continue; broken records are set aside and counted, the rest is repaired; idle at rest",
        inputs.store_poisoned,
        {"jobs": 5000},
        {"jobs": 300},
        both_wrappings=True,
    ),
    Row(
        18,
        "bad JSON",
        "an error in the envelope within 50 ms, never 500",
        inputs.bad_json,
        small={},
    ),
    Row(
        19,
        "huge bodies",
        "413; memory grows by less than 64 MiB, and what is refused leaves nothing",
        inputs.huge_bodies,
        {"bomb_mib": 1024, "times": 50, "refusals": 10_000},
        {"bomb_mib": 256, "times": 20, "refusals": 2000},
    ),
    Row(
        20,
        "slow clients",
        "closed within 90 s; the others' p99 less than doubled",
        clients.slow_clients,
        {"clients": 500},
    ),
    Row(
        21,
        "9,000 waiting polls",
        "less than 300 MiB, at most 11 Redis connections, push to pop p99 < 100 ms",
        clients.many_polls,
        {"polls": 9000, "most_mib": 300},
    ),
    Row(
        22,
        "SIGTERM with 1,000 polls and load",
        "ends within 12 s; every poll has an answer; nothing lost",
        clients.stopped_with_polls,
        {"polls": 1000},
        {"polls": 200},
    ),
    Row(
        23,
        "two servers on one Redis, killed in turn",
        GLOBAL,
        crashes.two_servers_killed,
        {"kills": 20},
    ),
    Row(
        24,
        "embedded store: a second server; its server killed",
        "the second refuses; the store is gone within 1 s; nothing lost",
        crashes.embedded_twice_and_orphaned,
        {"kills": 20},
        {"kills": 1},
    ),
    Row(
        25,
        "Sentinel failover; Cluster master killed",
        f"service resumes by itself; what is lost is counted; with durability = replica {GLOBAL}",
        failovers.masters_killed,
        {"kills": 10, "durabilities": ("store", "replica")},
        both_wrappings=True,
    ),
    Row(
        26,
        "hostile names",
        "no key touched; shown unchanged",
        inputs.hostile_input,
        small={},
        not_run="tokens, the page, requests from other sites and webhooks: tests/api, tests/browser, tests/delivery",
    ),
    Row(
        27,
        "long run of 1, 2, 7 and 13",
        f"{GLOBAL}; memory and descriptors level",
        long_run.long_run,
        {"minutes": 12},
    ),
    Row(
        28,
        "number of buckets changed under load; movers and servers killed",
        f"{GLOBAL}; all jobs in the bucket where they belong",
        rebalances.buckets_changed,
        {"sizes": (4, 3, 1), "kills": 7, "sleepers": 50_000, "cluster": True},
        {"sizes": (3,), "kills": 1, "sleepers": 1000, "cluster": False},
        both_wrappings=True,
    ),
    Row(
        29,
        "random calls of every verb at once, two servers with stepping clocks",
        "each second every job is in a state that the answers allow, all counts are exact; at the end nothing is left",
        random_operations.random_operations,
        {
            "seconds": 60,
            "plans": (("zset", 1), ("zset", 4), ("wheel", 1), ("wheel", 4)),
            "clocks_step": True,
        },
        {"seconds": 4, "plans": (("wheel", 4),)},
    ),
    Row(
        30,
        "clients request a lot and never read",
        "memory grows by less than 256 MiB; all are closed within 90 s; the others' p99 less than doubled",
        clients.clients_never_read,
        {"clients": 300, "most_mib": 256},
    ),
    Row(
        31,
        "Sentinel: masters, replicas, servers cut off, both ways or one way; a replica lags or hangs; for 0.5 to 60 s",
        f"with durability = replica {GLOBAL}; what is lost without it is counted",
        partitions.sentinel_partitions,
        {"ways": tuple(partitions.WAYS), "longest_s": 60},
    ),
    Row(
        32,
        "Cluster: masters, replicas, servers cut off, both ways or one way; a replica lags or hangs; for 0.5 to 60 s",
        f"with durability = replica {GLOBAL}; what is lost without it is counted",
        partitions.cluster_partitions,
        {"ways": tuple(partitions.WAYS), "longest_s": 60},
    ),
    Row(
        33,
        "servers of an earlier version replaced one after the other, and put back",
        f"{GLOBAL}; both versions work together meanwhile; each second of a schedule comes once",
        upgrades.rolling_upgrade,
        {"rounds": 5, "plans": (("zset", 1), ("wheel", 4))},
        {"rounds": 1, "plans": (("wheel", 4),)},
        both_wrappings=True,
    ),
    Row(
        34,
        "as 2, through beanstalkd's protocol",
        f"{GLOBAL}; jobs flow within 5 s",
        crashes.server_killed,
        {"kills": 20, "pause_s": (2, 5), "beanstalk": True},
    ),
    Row(
        35,
        "as 13, through beanstalkd's protocol: workers vanish, waiting or with a job",
        "nothing lost; all jobs are there within 1 s; no waiter left",
        beanstalk.reserves_vanish,
        {"workers": 1000, "jobs": 1000},
        {"workers": 100, "jobs": 100},
    ),
    Row(
        36,
        "as 14, through beanstalkd's protocol: a worker falls silent",
        "comes again at its TTR (within 1 s); counted",
        beanstalk.worker_dies,
        {"jobs": 500},
    ),
    Row(
        37,
        "as 15, through beanstalkd's protocol: a late delete, release, bury, touch",
        "refused, the new holder undisturbed",
        beanstalk.late_delete,
        {"jobs": 500, "ttr_s": 6},
    ),
    Row(
        38,
        "as 20, through beanstalkd's protocol: slow clients",
        "memory grows by less than 64 MiB; the others' p99 at most twice as long and 5 ms",
        beanstalk.slow_clients,
        {"clients": 500, "most_mib": 64},
    ),
    Row(
        39,
        "as 22, through beanstalkd's protocol: SIGTERM with 1,000 waiting workers and load",
        "ends within 12 s; no worker still waits; nothing lost",
        beanstalk.stopped_with_reserves,
        {"workers": 1000},
    ),
)


def run(
    row: Row, home: Path, *, small: bool, seed: int | None = None, minutes: int | None = None
) -> Outcome:
    """Try a row; one that says how long it takes, for so long. What fails is part of the outcome, not raised."""
    assert row.run is not None, f"row {row.number} has nothing to run: {row.not_run}"
    seed = random.randrange(10**6) if seed is None else seed
    since_s = time.monotonic()
    sizes = (row.small or {}) if small else row.full
    if minutes and "minutes" in sizes:
        sizes = sizes | {"minutes": minutes}
    figures: Figures = {}
    failure = not_run = logs = ""
    for functions in (True, False) if row.both_wrappings and not small else (True,):
        name = f"row-{row.number}-{seed}" + ("" if functions else "-without-functions")
        bed = Bed(home / name, seed, functions=functions)
        try:
            found = asyncio.run(row.run(bed, **sizes))
            figures |= (
                found if functions else {f"without functions: {k}": v for k, v in found.items()}
            )
        except CannotRun as reason:
            not_run = str(reason)
        except Exception as error:
            failure = f"{'' if functions else 'without functions: '}{type(error).__name__}: {error}"
            logs = bed.logs()
        finally:
            bed.close()
        if failure or not_run:
            break
    took_s = round(time.monotonic() - since_s, 1)
    return Outcome(row, seed, took_s, figures, failure, not_run, logs)
