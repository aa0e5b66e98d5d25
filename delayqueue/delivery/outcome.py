"""The outcome of a subscriber's call, and what later subscribers get of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Final, NamedTuple, Self

from delayqueue.domain.job import Reserved

RESULT_BYTES: Final = 64 * 1024  # of a subscriber's answer, as later ones may get it
TOO_LONG: Final = f"is longer than {RESULT_BYTES} bytes"

_values = attrgetter(*(each.name for each in fields(Reserved)))


class WebhookOutcome(NamedTuple):
    """`message` is the subscriber's answer.

    `gone`: the subscriber wants no more calls. `retry_after_ms`: no call before that.

    `status` is the HTTP status of the answer, 0 if none came. `lacks` says why the message is only the beginning of the
    answer: "is longer than ..."; "" if it is all of it.
    """

    succeeded: bool
    message: str
    retry_after_ms: int = 0
    gone: bool = False
    status: int = 0
    lacks: str = ""


class EarlierResult(NamedTuple):
    """An earlier subscriber's result: its message, as a success or a failure."""

    succeeded: bool
    message: str


@dataclass(slots=True)
class Event(Reserved):
    """A job for a subscriber: its own copy, with the results of earlier subscribers, by name.

    `trial`: it is made up, and in no queue.
    """

    results: Mapping[str, EarlierResult] = field(default_factory=dict)
    trial: bool = False

    @classmethod
    def of(cls, job: Reserved, results: Mapping[str, EarlierResult]) -> Self:
        """The job with these results."""
        event = cls(*_values(job))
        event.results = results
        return event
