"""When a job that brings no retry schedule of its own comes again, and when it is given up."""

from __future__ import annotations

from random import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from delayqueue.client.jobs import retry_request
from delayqueue.domain import retry as schedules
from delayqueue.domain.retry import MAX_STEPS

if TYPE_CHECKING:
    from types import EllipsisType

    from delayqueue.client.jobs import Retry

# 1 s, 2 s, 4 s, … and then each hour: over some eight hours, so a partner may be down for a night's part
DEFAULT_RETRY: Final = {"base": "1s", "factor": 2, "cap": "1h"}
DEFAULT_MAX_ATTEMPTS: Final = 20
MOST_ATTEMPTS: Final = MAX_STEPS + 1


class Policy(NamedTuple):
    """The delays after failures, None = the default ones, and how many attempts there are.

    `max_attempts`: None = without an end, ... = as many as `retry` has delays and one, or else the default.
    """

    retry: Retry | None = None
    max_attempts: int | EllipsisType | None = ...

    def check(self) -> None:
        """Raises ValueError if it cannot be; it says why."""
        most = self.max_attempts
        if isinstance(most, int) and not 1 <= most <= MOST_ATTEMPTS:
            raise ValueError(f"max_attempts {most}: must be 1 to {MOST_ATTEMPTS}, or None")
        delays_s = self.delays_s()
        if not delays_s and most not in (..., 1):
            raise ValueError(f"max_attempts {most}: needs a delay in retry")

    @property
    def last_attempt(self) -> int | None:
        """That after which the job is given up; None = never."""
        return None if self.max_attempts is None else len(self.delays_s()) + 1

    def delays_s(self) -> tuple[float, ...]:
        """The schedule. Where there are more attempts than it has delays, its last one is repeated."""
        steps = self._steps()
        delays_ms = _written_out(DEFAULT_RETRY if self.retry is None else self.retry, steps)
        if steps is not None:
            delays_ms = (*delays_ms, *delays_ms[-1:] * steps)[:steps]
        return tuple(delay_ms / 1000 for delay_ms in delays_ms)

    def _steps(self) -> int | None:
        """How many delays there are; None = as many as `retry` says."""
        most = self.max_attempts
        if most is None:
            return MAX_STEPS
        if isinstance(most, int):
            return most - 1
        return DEFAULT_MAX_ATTEMPTS - 1 if self.retry is None else None


def _written_out(retry: Retry, steps: int | None) -> tuple[int, ...]:
    """The delays in ms; a formula that does not say how many has `steps`."""
    match retry_request(retry):
        case {"delays": delays}:
            return schedules.explicit(delays)
        case {"preset": name}:
            return schedules.preset(name)
        case formula:
            return _by_formula(formula, steps)


def _by_formula(formula: dict[str, Any], steps: int | None) -> tuple[int, ...]:
    if steps == 0:
        return ()
    return schedules.exponential(
        steps=formula.get("max", steps or DEFAULT_MAX_ATTEMPTS - 1),
        base_ms=schedules.duration_ms(formula.get("base", 1)),
        factor=formula.get("factor", 2),
        cap_ms=schedules.duration_ms(formula.get("cap", 86_400)),
        jitter=formula.get("jitter", 0),
        random=random,
    )
