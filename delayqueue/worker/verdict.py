"""What becomes of a job after its handlers ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from delayqueue.client.jobs import seconds

if TYPE_CHECKING:
    from delayqueue.client.jobs import Seconds


@dataclass(frozen=True, slots=True)
class Finished:
    """All handlers are done: the job ends."""


@dataclass(frozen=True, slots=True)
class Released:
    """The attempt failed: the job comes again after `delay_s`; None = as its retry schedule says."""

    message: str
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class Buried:
    """The job is given up, and kept for a person."""

    message: str


Verdict: TypeAlias = Finished | Released | Buried


class Retry(Exception):  # an order, not an error
    """A handler raises it to have the job again after `delay`, whatever its schedule says."""

    def __init__(self, delay: Seconds, message: str = "") -> None:
        super().__init__(message or "to be tried again")
        self.delay_s: float = seconds(delay)


class Bury(Exception):  # an order, not an error
    """A handler raises it to give the job up: trying again would not help."""


def verdict_of(error: Exception) -> Released | Buried:
    """What a handler's exception means."""
    if isinstance(error, Retry):
        return Released(str(error), error.delay_s)
    if isinstance(error, Bury):
        return Buried(str(error))
    return Released(f"{type(error).__name__}: {error}")
