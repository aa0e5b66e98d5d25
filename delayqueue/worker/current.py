"""The job that a handler runs for, and the context, in any function that the handler calls."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from delayqueue.worker.handled_job import HandledJob

_current: Final[ContextVar[tuple[HandledJob, Any]]] = ContextVar("delayqueue.current")


def current_job() -> HandledJob:
    """The job that the running handler or task was called for. Raises LookupError outside of one."""
    return _current.get()[0]


def current_context() -> Any:
    """What the worker's lifespan has yielded; None without one. Raises LookupError outside of a handler or task."""
    return _current.get()[1]


def tags_of_current_job() -> Sequence[str]:
    """The tags of the job that the running handler or task was called for; () outside of one."""
    current = _current.get(None)
    return current[0].tags if current else ()


@contextmanager
def handling(job: HandledJob, context: Any) -> Iterator[None]:
    """Make the job and the context the current ones for the handlers that run in this block."""
    before = _current.set((job, context))
    try:
        yield
    finally:
        _current.reset(before)
