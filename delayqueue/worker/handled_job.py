"""HandledJob: a job as handlers get it, with what the handlers before have returned."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, NamedTuple, Self

from delayqueue.answers.answer import answer
from delayqueue.answers.jobs import ReservedJob

if TYPE_CHECKING:
    from collections.abc import Mapping

_members = [each.name for each in fields(ReservedJob)]


class HandlerResult(NamedTuple):
    """What one handler has returned, as text (a dict or a list as JSON), or why it has failed."""

    succeeded: bool
    message: str


@answer
class HandledJob(ReservedJob):
    """A ReservedJob with the `results` of the topic's handlers before this one in this attempt, by their names."""

    results: Mapping[str, HandlerResult] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, job: ReservedJob, results: Mapping[str, HandlerResult]) -> Self:
        """The job with these results, which become more as its handlers end."""
        return cls(**{name: getattr(job, name) for name in _members}, results=results)
