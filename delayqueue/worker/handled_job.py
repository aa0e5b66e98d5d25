"""HandledJob: a job as handlers get it, with what the handlers before have returned."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from delayqueue.answers.answer import answer
from delayqueue.answers.jobs import ReservedJob

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_members = [each.name for each in fields(ReservedJob)]

# takes a percentage and a message of a job; None = not told
Tell: TypeAlias = "Callable[[float | None, str | None], None]"


class HandlerResult(NamedTuple):
    """What one handler has returned, as text (a dict or a list as JSON), or why it has failed."""

    succeeded: bool
    message: str


def ignore_progress(_percent: float | None, _message: str | None) -> None:
    """Take the progress of a job that no worker handles."""


@answer
class HandledJob(ReservedJob):
    """A ReservedJob with the `results` of the topic's handlers before this one in this attempt, by their names."""

    results: Mapping[str, HandlerResult] = field(default_factory=dict, compare=False, repr=False)
    tell: Tell = field(default=ignore_progress, compare=False, repr=False)

    @classmethod
    def of(cls, job: ReservedJob, results: Mapping[str, HandlerResult], tell: Tell) -> Self:
        """The job with these results, which become more as its handlers end, and what is told of its progress."""
        members = {name: getattr(job, name) for name in _members}
        return cls(**members, results=results, tell=tell)

    def progress(self, percent: float | None, message: str | None = None) -> None:
        """Say how far this attempt is, 0 to 100 percent, and what it is at: the page, get() and list() show it.

        It returns at once, in `async` handlers and plain ones alike, and never fails: the worker tells the server the
        last word, twice a second at most. None keeps the percentage as it was.
        """
        self.tell(percent, message)
