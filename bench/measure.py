"""A measure: a name, what it does to one server in one round, and the figures that come out."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.target import Server

# jobs of a load that must not fall due while anything is measured
SLEEP_FROM_S, SLEEP_TO_S = 86_400, 2 * 86_400


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything. The defaults are those behind the published figures."""

    rounds: int = 3
    seconds: int = 5
    pop_jobs: int = 40_000
    cycle_depth: int = 20_000
    burst_jobs: int = 60_000
    lateness_seconds: int = 20
    weighed_jobs: int = 100_000
    polls: int = 9_000
    sleeping: tuple[int, ...] = (10_000, 200_000, 2_000_000)
    idle_jobs: int = 1_000_000
    idle_seconds: int = 30
    grouped_jobs: int = 5_000
    cliff: float = 1.0
    soak_minutes: float = 30

    def quick(self) -> "Scale":
        """Figures in a minute or two; they are rough."""
        return replace(
            self,
            rounds=1,
            seconds=2,
            pop_jobs=12_000,
            cycle_depth=8_000,
            burst_jobs=12_000,
            lateness_seconds=6,
            weighed_jobs=20_000,
            polls=1_000,
            sleeping=(1_000, 100_000),
            idle_jobs=20_000,
            idle_seconds=5,
            grouped_jobs=1_000,
            cliff=0.1,
            soak_minutes=1,
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `more_is_better` says how to read a ratio."""

    value: float
    unit: str
    more_is_better: bool = False


Figures = dict[
    str, Figure
]  # what one round of a measure found out about one server, by their names


@dataclass(frozen=True, slots=True)
class Measure:
    """`repeated`: cheap enough for several rounds, targets in turn. `by_default`: runs if no measure is named.

    `run` may raise BenchError.
    """

    name: str
    help: str
    run: Callable[[Server, Scale], Figures]
    repeated: bool = True
    by_default: bool = True


def new_topic() -> str:
    """A topic that no other load uses."""
    return f"bench-{secrets.token_hex(4)}"


def per_second(value: float) -> Figure:
    """A rate of jobs: more is better."""
    return Figure(value, "jobs/s", more_is_better=True)
