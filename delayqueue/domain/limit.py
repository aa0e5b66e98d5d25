"""Limits of a topic: deliveries a second and at once, what becomes of buried jobs, how many jobs it may have. Pure.

The checks take a value that a user wrote and return what it means; they raise BadValue.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final, Self, TypeVar

from delayqueue.errors import BadValue

# A rate is stored in thousandths of a millisecond; above this value it makes no difference.
MAX_RATE = 100_000
MIN_RATE = 0.001  # one in about 17 minutes
MAX_BURST = 1_000_000
MAX_CONCURRENCY = 1_000_000
MAX_JOBS = 1_000_000_000


class WhenFull(StrEnum):
    """What a push does whose topic has `max_jobs`, instead of being refused."""

    DROP_OLDEST = "drop_oldest"


T = TypeVar("T", int, float)
Changes = Mapping[str, float | str | None]  # limits by name, None = no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`rate`: deliveries a second, `burst` of them at once after a pause; `concurrency`: jobs reserved at once.

    `group_concurrency`: jobs of one group reserved at once. `group_order`: one, and none while one waits for
    its retry. `buried_retain_ms`: how long a buried job is kept. None = no limit, or for buried jobs the server's
    setting. `buried_to`: the topic that gets a job for each that is buried, None = none does.
    `max_jobs`: how many jobs it may have that have not ended; `when_full`: what a push does that finds as many, None =
    it is refused. `declared`: it comes from a config file.
    """

    rate: float | None = None
    burst: int | None = None
    concurrency: int | None = None
    group_concurrency: int | None = None
    group_order: bool = False
    buried_retain_ms: int | None = None
    buried_to: str | None = None
    max_jobs: int | None = None
    when_full: str | None = None
    declared: bool = False

    @classmethod
    def read(cls, written: Mapping[str, object]) -> Self:
        """Parse the limit that a script wrote."""
        return cls(**{name: written[name] for name in cls.__slots__ if name in written})  # type: ignore[arg-type]

    def matches(self, other: "Limit") -> bool:
        """Whether the limit in force equals this one; if this one names no burst, any burst matches."""
        wanted = self.changes()
        if not self.burst:
            wanted["burst"] = other.burst
        return other.declared == self.declared and other.changes() == wanted

    def changes(self) -> dict[str, float | str | None]:
        """Every value that can be limited, by name."""
        return {name: value for name, value in asdict(self).items() if name != "declared"}


def _within(least: T, most: T, zh: str = "", en: str = "") -> Callable[[T], T]:
    """The check of a number; the texts name its unit."""

    def check(number: T) -> T:
        if not least <= number <= most:
            raise BadValue(f"取值范围{zh}{least} - {most}", f"must be {least} to {most}{en}")
        return number

    return check


check_rate: Final = _within(MIN_RATE, MAX_RATE, "每秒", " a second")
check_burst: Final = _within(1, MAX_BURST)
check_concurrency: Final = _within(1, MAX_CONCURRENCY)
check_max_jobs: Final = _within(1, MAX_JOBS)


def loop_in(limits: Mapping[str, Limit]) -> str | None:
    """A topic whose `buried_to` leads back to it by these limits; None if there is none."""
    for topic in limits:
        to, seen = limits[topic].buried_to, set[str]()
        while to is not None and to not in seen:
            if to == topic:
                return topic
            seen.add(to)
            to = limits[to].buried_to if to in limits else None
    return None
