"""python -m bench.model: how many machines an installation needs, computed from what was measured on one.

Everything that goes in is a field of `Costs` or `Need` with its source, and can be given on the command line:
`python -m bench.model --delayed 1000000000 --due-per-s 1000000`.
"""

import argparse
import math
from dataclasses import dataclass, fields
from typing import Final

GIB: Final = 2**30


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The cost of one job: round figures; replace them by what `python -m bench.scaling` reports on your machine."""

    store_push_us: float = 8.0  # in arrays; a master's own time
    store_tick_us: float = 1.0
    store_pop_us: float = 9.0
    store_finish_us: float = 9.0
    # a server's time for one request with one job, at 32 connections
    server_request_us: float = 65.0
    server_array_job_us: float = 15.0  # and for a job of an array of 100
    job_bytes: float = 260.0  # a delayed job with a body of 40 bytes, scheduler = zset
    poll_bytes: float = 10_000.0  # a client that waits in /pop


@dataclass(frozen=True, kw_only=True)
class Need:
    """The requirements, and how much room is left."""

    delayed: int = 1_000_000_000  # jobs that wait at once
    # jobs that are pushed, fall due, are popped and finished each second
    due_per_s: int = 1_000_000
    body_bytes: int = 200
    array: int = 100  # jobs a request; 1 = the original's endpoints
    busy: float = 0.6  # of a core's time that may be used: the rest is for bursts and failovers
    master_bytes: int = 16 * GIB  # of data a master: larger ones take long to copy and to load
    fork_factor: float = 1.5  # memory while the append-only file is rewritten
    replicas: int = 1  # of each master
    spread: float = 1.15  # the fullest master's share, with the buckets that docs/scaling.md says


@dataclass(frozen=True)
class Plan:
    """The machines that it takes. A master and a server process use a core each."""

    masters: int
    masters_for_memory: int
    masters_for_time: int
    servers: int
    memory_bytes: float

    @property
    def buckets(self) -> int:
        """Enough for an even spread, up to the maximum."""
        return min(1024, 1 << math.ceil(math.log2(max(1, self.masters * 40))))


def plan(need: Need, costs: Costs) -> Plan:
    """The smallest installation that meets the need."""
    job_bytes = costs.job_bytes - 40 + need.body_bytes
    data_bytes = need.delayed * job_bytes
    for_memory = math.ceil(data_bytes * need.spread / need.master_bytes)
    store_us = (
        costs.store_push_us + costs.store_tick_us + costs.store_pop_us + costs.store_finish_us
    )
    for_time = math.ceil(need.due_per_s * store_us * need.spread / 1e6 / need.busy)
    masters = max(1, for_memory, for_time)
    return Plan(
        masters=masters,
        masters_for_memory=for_memory,
        masters_for_time=for_time,
        servers=max(1, math.ceil(need.due_per_s * _server_us(need, costs) / 1e6 / need.busy)),
        memory_bytes=data_bytes * need.fork_factor * (1 + need.replicas),
    )


def _server_us(need: Need, costs: Costs) -> float:
    """A job passes through /push, /pop and /finish: a request for each, shared by the jobs of an array."""
    return 3 * (costs.server_request_us / need.array + costs.server_array_job_us * (need.array > 1))


def main() -> None:
    """Print the plan and everything it is based on."""
    parser = argparse.ArgumentParser(prog="python -m bench.model", description=__doc__)
    for row in (*fields(Need), *fields(Costs)):
        name = f"--{row.name.replace('_', '-')}"
        parser.add_argument(name, type=type(row.default), default=row.default)
    asked = vars(parser.parse_args())
    need = Need(**{row.name: asked[row.name] for row in fields(Need)})
    costs = Costs(**{row.name: asked[row.name] for row in fields(Costs)})
    found = plan(need, costs)
    for part in (need, costs):
        print("\n".join(f"{row.name:<24}{getattr(part, row.name):>16,}" for row in fields(part)))
    print(f"\nmasters                 {found.masters:>16,}")
    print(f"  for memory            {found.masters_for_memory:>16,}")
    print(f"  for time              {found.masters_for_time:>16,}")
    print(f"buckets (bucket_size)   {found.buckets:>16,}")
    print(f"server processes        {found.servers:>16,}")
    print(f"memory, GiB             {found.memory_bytes / GIB:>16,.0f}")


if __name__ == "__main__":
    main()
