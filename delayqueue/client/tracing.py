"""OpenTelemetry spans for pushes and handlers, if the program has loaded its API and set up an SDK."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.client.address import ServerAddress
    from delayqueue.client.api_request import ApiRequest

T = TypeVar("T")


def sending(request: ApiRequest[T], to: ServerAddress) -> AbstractContextManager[ApiRequest[T]]:
    """Give the request as it should be sent: a push gets a span, whose context travels with its jobs."""
    if request.path != "/push" or not _is_on():
        return nullcontext(request)
    from delayqueue.client import spans  # noqa: PLC0415  # imports opentelemetry

    return spans.sending(request, to)


def processing(job: ReservedJob, no_failure: type[BaseException]) -> AbstractContextManager[object]:
    """A span for a run of a job's handlers, linked to its push; any exception but `no_failure` marks it as failed."""
    if not _is_on():
        return nullcontext()
    from delayqueue.client import spans  # noqa: PLC0415  # imports opentelemetry

    return spans.processing(job, no_failure)


def _is_on() -> bool:
    """Whether an SDK is set up; if one is, the API is loaded, so it is never imported here."""
    if sys.modules.get("opentelemetry.trace") is None:
        return False
    from opentelemetry import trace  # noqa: PLC0415  # not installed everywhere

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
