"""What became of one call of a subscriber, and what a subscriber is told of those before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Self

from delayqueue.domain.job import Reserved


class Outcome(NamedTuple):
    """`message` says what the other side said. `gone`: it wants no more calls. `retry_after_ms`: none before that.

    `error` is what a Python handler raised, `status` the HTTP status of a webhook's answer, 0 where none came.
    """

    succeeded: bool
    message: str
    retry_after_ms: int = 0
    gone: bool = False
    error: BaseException | None = None
    status: int = 0


class Earlier(NamedTuple):
    """What a subscriber said that comes before: its message, as a success or a failure."""

    succeeded: bool
    message: str


@dataclass(slots=True)
class Event(Reserved):
    """A job as a subscriber is called with it: a copy of its own, with the results of those before it, by name.

    `trial`: it is made up, and stands in no queue.
    """

    results: Mapping[str, Earlier] = field(default_factory=dict)
    trial: bool = False

    @classmethod
    def of(cls, job: Reserved, results: Mapping[str, Earlier]) -> Self:
        """The job with these results."""
        of_job = {each.name: getattr(job, each.name) for each in fields(Reserved)}
        return cls(**of_job, results=results)
