"""What happens to a job after its handlers ran."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from delayqueue import threads
from delayqueue.client.times import time_left
from delayqueue.domain.job import MAX_DELAY_S
from delayqueue.domain.text import clean, error_message, message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from delayqueue.client.times import Seconds

LAST_CALLS: Final = 2  # of a traceback, shown in the job's message
OURS: Final = (str(Path(__file__).parent), threads.__file__)  # between worker and handler


@dataclass(frozen=True, slots=True)
class Finished:
    """All handlers are done: the job ends. `message` is what they returned; a job with `retain` keeps it."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """The attempt failed: the job is delivered again after `delay` seconds; None = as its retry schedule says.

    `traceback` is the end of one, shown below the message.
    """

    message: str
    delay: float | None = None
    traceback: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Buried:
    """The job is buried, until somebody looks at it."""

    message: str
    traceback: str = field(default="", compare=False)


Verdict: TypeAlias = Finished | Released | Buried


class Retry(Exception):  # an order, not an error
    """A handler raises it to get the job again after `delay`, whatever its schedule says.

    A delay below 0 is that of a time that has passed: now. Raises ValueError if it is longer than a delay can be.
    """

    delay: float | None = None  # in seconds; for a subclass without one: as the schedule says

    def __init__(self, delay: Seconds, message: str = "") -> None:
        super().__init__(message or "to be tried again")
        delay_s = time_left(delay)
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise ValueError(f"delay {delay_s}: must be 0 to {MAX_DELAY_S} seconds")
        self.delay = delay_s


class Bury(Exception):  # an order, not an error
    """A handler raises it to bury the job: another try would not help."""


class TimeLimit(Exception):
    """A handler took longer than its `timeout`."""


def verdict_of(error: BaseException, *, is_hopeless: bool = False) -> Released | Buried:
    """What a handler's exception means. `is_hopeless`: another attempt would raise it again."""
    if isinstance(error, Retry):
        return Released(message_of(error), error.delay)
    if isinstance(error, Bury):
        return Buried(message_of(error))
    if isinstance(error, TimeLimit):
        return Released(message_of(error), traceback=_end_of(error))
    if is_hopeless:
        return Buried(error_message(error), _end_of(error))
    return Released(error_message(error), traceback=_end_of(error))


def is_order(error: BaseException) -> bool:
    """Whether the error is an order (Retry, Bury), so that its traceback tells nothing."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_order, error.exceptions))
    return isinstance(error, (Retry, Bury))


def verdict_of_group(
    group: BaseExceptionGroup[BaseException],
    verdict_on: Callable[[BaseException], Released | Buried],
) -> Released | Buried:
    """What errors mean that were raised together, as by asyncio.TaskGroup; `verdict_on` tells it of each one."""
    verdicts = [verdict_on(error) for error in group.exceptions]
    if len(verdicts) == 1:
        return verdicts[0]
    several = verdict_of_several(verdicts)
    return replace(several, message=clean(f"{error_message(group)}: {several.message}"))


def verdict_of_several(verdicts: Sequence[Released | Buried]) -> Released | Buried:
    """One verdict for several failures. Buried if another attempt would help none of them.

    It is delivered again by its schedule, unless each one has told a delay: then after the shortest.
    """
    message = clean("; ".join(one.message for one in verdicts))
    calls = "\n".join(one.traceback for one in verdicts if one.traceback)
    delays = [one.delay for one in verdicts if isinstance(one, Released)]
    if not delays:
        return Buried(message, calls)
    told = [delay for delay in delays if delay is not None]
    return Released(message, min(told) if len(told) == len(delays) else None, calls)


def with_traceback(message: str, calls: str) -> str:
    """A message followed by the end of a traceback, cut to the maximum length."""
    return clean(f"{message}\n{calls}") if calls else message


def _end_of(error: BaseException | None) -> str:
    """The last calls of theirs before the error, or before its cause."""
    if error is None:
        return ""
    calls = traceback.extract_tb(error.__traceback__, limit=-2 * LAST_CALLS)
    theirs = [call for call in calls if not call.filename.startswith(OURS)]
    if not theirs:
        return _end_of(error.__cause__)
    return "".join(traceback.format_list(theirs[-LAST_CALLS:])).rstrip()
