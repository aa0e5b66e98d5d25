"""What becomes of a job after its handlers ran."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from delayqueue import threads
from delayqueue.client.jobs import seconds
from delayqueue.domain.job import MAX_DELAY_S
from delayqueue.domain.message import clean, said_by, said_of

if TYPE_CHECKING:
    from delayqueue.client.jobs import Seconds

LAST_CALLS: Final = 2  # of a traceback, those that the job's message tells
OURS: Final = (str(Path(__file__).parent), threads.__file__)  # between the worker and the handler


@dataclass(frozen=True, slots=True)
class Finished:
    """All handlers are done: the job ends. `message` is what they returned, kept with a job that has `retain`."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """The attempt failed: the job comes again after `delay_s`; None = as its retry schedule says.

    `traceback` is its end, which stands below the message.
    """

    message: str
    delay_s: float | None = None
    traceback: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Buried:
    """The job is given up, and kept for a person."""

    message: str
    traceback: str = field(default="", compare=False)


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


class TimeLimit(Exception):
    """A handler took longer than its `timeout`."""


def verdict_of(error: BaseException) -> Released | Buried:
    """What a handler's exception means."""
    if isinstance(error, Retry):
        return Released(said_of(error), error.delay_s)
    if isinstance(error, Bury):
        return Buried(said_of(error))
    if isinstance(error, TimeLimit):
        return Released(said_of(error), traceback=_end_of(error.__cause__))
    return Released(said_by(error), traceback=_end_of(error))


def told(message: str, calls: str) -> str:
    """A message with the end of a traceback below it, as long as a message may be."""
    return clean(f"{message}\n{calls}") if calls else message


def _end_of(error: BaseException | None) -> str:
    """The last calls before the error."""
    if error is None:
        return ""
    calls = traceback.extract_tb(error.__traceback__, limit=-2 * LAST_CALLS)
    theirs = [call for call in calls if not call.filename.startswith(OURS)]
    return "".join(traceback.format_list(theirs[-LAST_CALLS:])).rstrip()
