"""What becomes of a job after its handlers ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from delayqueue.client.jobs import seconds
from delayqueue.domain.job import MAX_DELAY_S
from delayqueue.domain.message import said_by, said_of

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
    """A handler raises it to have the job again after `delay`, whatever its schedule says.

    Raises ValueError if the delay is out of range.
    """

    delay_s: float | None = None  # of a subclass that does not say: as the schedule does

    def __init__(self, delay: Seconds, message: str = "") -> None:
        super().__init__(message or "to be tried again")
        delay_s = seconds(delay)
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise ValueError(f"delay {delay_s}: must be 0 to {MAX_DELAY_S} seconds")
        self.delay_s = delay_s


class Bury(Exception):  # an order, not an error
    """A handler raises it to give the job up: trying again would not help."""


def verdict_of(error: BaseException) -> Released | Buried:
    """What a handler's exception means."""
    if isinstance(error, Retry):
        return Released(said_of(error), error.delay_s)
    if isinstance(error, Bury):
        return Buried(said_of(error))
    return Released(said_by(error))
