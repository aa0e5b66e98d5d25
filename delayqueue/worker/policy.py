"""When a job without its own retry schedule is tried again, and when it is given up."""

from __future__ import annotations

from random import random
from typing import TYPE_CHECKING, Final, NamedTuple

from delayqueue.client.jobs import retry_request
from delayqueue.domain import retry as schedules
from delayqueue.domain.push_rules import given
from delayqueue.domain.retry import MAX_STEPS

if TYPE_CHECKING:
    from types import EllipsisType

    from delayqueue.client.jobs import Retry

# 1 s, 2 s, 4 s, … and then each hour: about eight hours, so a partner may be down for part of a night
DEFAULT_RETRY: Final = {"base": "1s", "factor": 2, "cap": "1h"}
DEFAULT_MAX_ATTEMPTS: Final = 20
MOST_ATTEMPTS: Final = MAX_STEPS + 1


class Policy(NamedTuple):
    """The delays after failures, None = the default ones, and the number of attempts.

    `max_attempts`: None = no limit, ... = one more than `retry` has delays, or else the default.
    """

    retry: Retry | None = None
    max_attempts: int | EllipsisType | None = ...

    def check(self) -> None:
        """Raises ValueError with the reason if the policy is invalid."""
        most = self.max_attempts
        if isinstance(most, int) and not 1 <= most <= MOST_ATTEMPTS:
            raise ValueError(f"max_attempts {most}: must be 1 to {MOST_ATTEMPTS}, or None")
        delays_s = self.delays_s()
        if not delays_s and most not in (..., 1):
            raise ValueError(f"max_attempts {most}: needs a delay in retry")

    @property
    def last_attempt(self) -> int | None:
        """The attempt after which the job is given up; None = never."""
        return None if self.max_attempts is None else len(self.delays_s()) + 1

    def delays_s(self) -> tuple[float, ...]:
        """The schedule. If there are more attempts than delays, the last delay is repeated."""
        steps = self._steps()
        delays_ms = _delays_ms(DEFAULT_RETRY if self.retry is None else self.retry, steps)
        if steps is not None:
            delays_ms = (*delays_ms, *delays_ms[-1:] * steps)[:steps]
        return tuple(delay_ms / 1000 for delay_ms in delays_ms)

    def _steps(self) -> int | None:
        """The number of delays; None = as many as `retry` says."""
        most = self.max_attempts
        if most is None:
            return MAX_STEPS
        if isinstance(most, int):
            return most - 1
        return DEFAULT_MAX_ATTEMPTS - 1 if self.retry is None else None


def _delays_ms(retry: Retry, steps: int | None) -> tuple[int, ...]:
    """The delays in ms; a formula without a number of delays gets `steps`."""
    request = given(retry_request(retry))
    if request.keys().isdisjoint({"delays", "preset"}):
        if steps == 0:
            return ()
        request = {"max": steps or DEFAULT_MAX_ATTEMPTS - 1} | request
    return schedules.expanded(request, random)
