"""Whether pushes and handlers are spans of OpenTelemetry: where the program has loaded it, and set up an SDK."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from delayqueue.client.address import ServerAddress
    from delayqueue.client.calls import Call
    from delayqueue.client.jobs import ReservedJob

T = TypeVar("T")


def sending(call: Call[T], to: ServerAddress) -> AbstractContextManager[Call[T]]:
    """Gives the call as it is to be sent: a push is a span, whose context goes with its jobs."""
    if call.path != "/push" or not _is_on():
        return nullcontext(call)
    from delayqueue.client import spans  # noqa: PLC0415  # it needs the API

    return spans.sending(call, to)


def processing(job: ReservedJob, no_failure: type[BaseException]) -> AbstractContextManager[object]:
    """A run of a job's handlers is a span, linked to that of its push; what they raise, but `no_failure`, fails it."""
    if not _is_on():
        return nullcontext()
    from delayqueue.client import spans  # noqa: PLC0415  # it needs the API

    return spans.processing(job, no_failure)


def _is_on() -> bool:
    """Who sets up an SDK has loaded the API, so it is never loaded here."""
    if sys.modules.get("opentelemetry.trace") is None:
        return False
    from opentelemetry import trace  # noqa: PLC0415  # not everywhere

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
